// print_tile shows a fragment as the matrix that it is.
#include "common/device/device.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

/// What `action` writes to the standard output.
template <class F>
std::string printed_by(F action) {
  std::fflush(stdout);
  std::FILE* file = std::tmpfile();
  const int kept = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  action();
  std::fflush(stdout);
  dup2(kept, STDOUT_FILENO);
  close(kept);
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

TEST_CASE("print_tile prints every element at its row and column") {
  const auto kernel = +[] {
    Fragment<S_tag, 2, 2> S;
    for (int r = 0; r < S.rows; ++r)
      for (int c = 0; c < S.cols; ++c) S(r, c) = static_cast<float>(100 * row_of(r) + col_of(c));
    print_tile("S", S);
  };
  const std::string text = printed_by([&] {
    Session session;
    launch(kernel, 1, 32, 0, nullptr);
  });
  std::string expected = "S, 32 x 16, warp 0:\n";
  for (int row = 0; row < 32; ++row) {
    for (int col = 0; col < 16; ++col) {
      char number[16];
      std::snprintf(number, sizeof number, "%9.4f", 100.0 * row + col);
      expected += number;
    }
    expected += "\n";
  }
  CHECK(text == expected);
}

}  // namespace
}  // namespace fa2::tests

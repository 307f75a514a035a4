// The reference against hand-made cases and against an evaluation that shares nothing with it.
#include "common/harness/reference.h"

#include <cmath>

#include "common/harness/float16.h"
#include "common/harness/workload.h"
#include "common/testing/catch.h"

using namespace fa2;

namespace {

/// The weights of one row by the definition alone: a list of visible keys, no running anything.
struct PlainRow {
  std::vector<long double> O;
  long double LSE = 0;
};

PlainRow plain_row(const Workload& w, int b, int h, int i, const std::vector<int>& visible) {
  const Problem& p = w.problem();
  const int h_kv = h * p.heads_kv / p.heads_q;
  PlainRow out{std::vector<long double>(p.d), 0};
  long double sum = 0;
  for (const int j : visible) {
    long double x = 0;
    for (int c = 0; c < p.d; ++c)
      x += static_cast<long double>(decode(p.dtype, w.inputs().Q.row(b, h, i)[c])) *
           decode(p.dtype, w.inputs().K.row(b, h_kv, j)[c]);
    const long double weight = std::exp(x * p.scale);
    sum += weight;
    for (int c = 0; c < p.d; ++c)
      out.O[c] += weight * decode(p.dtype, w.inputs().V.row(b, h_kv, j)[c]);
  }
  for (long double& o : out.O) o /= sum;
  out.LSE = std::log(sum);
  return out;
}

void check_against_plain(const Workload& w, size_t n, const std::vector<int>& visible) {
  const Reference& r = w.reference();
  const PlainRow expected = plain_row(w, r.rows[n].b, r.rows[n].h, r.rows[n].i, visible);
  for (int c = 0; c < r.d; ++c)
    CHECK(std::fabs(r.O_row(n)[c] - static_cast<double>(expected.O[c])) < 1e-10);
  CHECK(std::fabs(r.LSE[n] - static_cast<double>(expected.LSE)) < 1e-10);
}

std::vector<int> first_keys(int n) {
  std::vector<int> keys;
  for (int j = 0; j < n; ++j) keys.push_back(j);
  return keys;
}

}  // namespace

TEST_CASE("the reference is the definition", "[harness]") {
  for (const char* text : {"b=2 h=4/2 q=5 k=7", "bf16 h=3 q=3 k=9 layout=packed scale=0.3"}) {
    const Workload w(parse_spec(text));
    for (size_t n = 0; n < w.reference().rows.size(); ++n)
      check_against_plain(w, n, first_keys(w.problem().Nk));
  }
}

TEST_CASE("the reference has a mask of its own, aligned at the bottom right (cutlass #2336)",
          "[harness]") {
  const Workload longer(parse_spec("causal q=2 k=5"));  // row 0 sees 4 keys, row 1 all 5
  check_against_plain(longer, 0, {0, 1, 2, 3});
  check_against_plain(longer, 1, {0, 1, 2, 3, 4});
  const Workload square(parse_spec("causal q=3 k=3"));
  check_against_plain(square, 0, {0});
  check_against_plain(square, 1, {0, 1});
  check_against_plain(square, 2, {0, 1, 2});
  const Workload shorter(parse_spec("causal q=4 k=2"));  // rows 0 and 1 see nothing
  check_against_plain(shorter, 2, {0});
  check_against_plain(shorter, 3, {0, 1});
}

TEST_CASE("rows without weight are O = 0, LSE = -inf", "[harness]") {
  for (const char* text : {"causal q=4 k=2", "q=2 k=0", "q=3 k=9 inputs=all_minus_inf"}) {
    const Workload w(parse_spec(text));
    INFO(text);
    for (int c = 0; c < 64; ++c) CHECK(w.reference().O_row(0)[c] == 0);
    CHECK(w.reference().LSE[0] == -INFINITY);
    CHECK(w.reference().O_tolerance[0] == 0);
  }
}

TEST_CASE("NaN in Q and K reaches the rows that see it, in the reference too", "[harness]") {
  const Workload w(parse_spec("causal b=2 h=2 q=60 k=60 inputs=nan_K"));
  const Reference& r = w.reference();
  int key = -1;
  for (int j = 0; j < 60; ++j)
    for (const uint16_t bits : w.inputs().K.row(1, 1, j))
      if (std::isnan(decode_fp16(bits))) key = j;
  REQUIRE(key > 0);
  for (size_t n = 0; n < r.rows.size(); ++n) {
    const bool sees = r.rows[n].b == 1 && r.rows[n].h == 1 && r.rows[n].i >= key;
    CHECK(std::isnan(r.O_row(n)[0]) == sees);
    CHECK(std::isnan(r.LSE[n]) == sees);
  }
}

TEST_CASE("NaN in V may reach the rows of q tiles that visit its tile", "[harness]") {
  const Workload w(parse_spec("causal q=256 k=256 inputs=nan_V"));
  int key = -1, column = -1;
  for (int j = 0; j < 256; ++j)
    for (int c = 0; c < 64; ++c)
      if (std::isnan(decode_fp16(w.inputs().V.row(0, 0, j)[c]))) key = j, column = c;
  REQUIRE((key >= 85 && key <= 170));
  const Tile tile = {64, 32, 4, 1};
  const int first_row = (key / 32 * 32) / 64 * 64;  // of the first q tile that visits its k/v tile
  CHECK(w.V_may_reach({0, 0, first_row}, column, tile));
  CHECK(w.V_may_reach({0, 0, 255}, column, tile));
  CHECK_FALSE(w.V_may_reach({0, 0, first_row - 1}, column, tile));
  CHECK_FALSE(w.V_may_reach({0, 0, 255}, (column + 1) % 64, tile));
}

TEST_CASE("tolerances are of the size of 16-bit rounding, row by row", "[harness]") {
  const Workload w(parse_spec("causal q=512 k=512"));
  const Reference& r = w.reference();
  CHECK(r.O_tolerance[0] < 5e-3);  // one key: values up to about 3
  CHECK(r.O_tolerance[0] > 1e-4);
  CHECK(r.O_tolerance[511] < 5e-4);  // an average of many keys: values of about 0.1
  CHECK(r.O_tolerance[511] > 1e-5);
  CHECK(r.LSE_tolerance[511] < 1e-4);
}

TEST_CASE("a large problem is checked on some rows of every head", "[harness]") {
  const Workload w(parse_spec("b=2 h=3 q=300 k=200"), 1e6);
  const Reference& r = w.reference();
  CHECK_FALSE(r.all_rows);
  std::vector<int> rows_of_head(6);
  for (const RowIndex& at : r.rows) ++rows_of_head[at.b * 3 + at.h];
  for (const int rows : rows_of_head) CHECK((rows >= 6 && rows < 40));
  CHECK(r.rows.front().i == 0);
  CHECK(r.rows.back().i == 299);
  check_against_plain(w, r.rows.size() - 1, first_keys(200));
}

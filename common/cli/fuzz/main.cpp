// fa2-fuzz: random problems over the whole contract, on every stage.
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "common/cli/fuzz/campaign.h"
#include "common/cli/terminal.h"
#include "common/cli/text_table.h"
#include "common/harness/text.h"

namespace {

using namespace fa2::fuzzing;

enum ExitCode { done = 0, wrong = 1, cannot_run = 2 };

/// On a terminal one line that renews itself, in a log one every half minute.
class Ticker {
 public:
  void operator()(int64_t problems) {
    ++ticks_;
    const std::string line = fa2::with_commas(problems) + " problems in " +
                             std::to_string(ticks_ / 2) + " s, none wrong so far";
    if (terminal_)
      std::fprintf(stderr, "\r\033[K%s", line.c_str());
    else if (ticks_ % 60 == 0)
      std::fprintf(stderr, "%s\n", line.c_str());
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO);
  int ticks_ = 0;
};

std::string table_of(const Outcome& outcome) {
  fa2::cli::Table table{{"kernel", "problems", "not run here"}, {}};
  for (const Kernel& kernel : outcome.kernels)
    table.rows.push_back(
        {label(kernel), fa2::with_commas(kernel.run), fa2::with_commas(kernel.skipped)});
  return table.text(fa2::cli::terminal_width());
}

int fuzz(const std::vector<std::string>& arguments) {
  const auto options = parse_options(arguments);
  if (!options) return done;
  std::vector<Kernel> kernels = kernels_of(*options);
  std::printf("Random problems from seed %llu on.\n",
              static_cast<unsigned long long>(options->seed));
  std::fflush(stdout);
  Ticker ticker;
  const Outcome outcome = run(*options, std::move(kernels), [&](int64_t n) { ticker(n); });
  ticker.clear();
  std::fputs(table_of(outcome).c_str(), stdout);
  if (outcome.failure) {
    const Kernel& kernel = outcome.kernels[outcome.failed_kernel];
    std::printf("%s\n  again:  %s\n", to_text(*outcome.failure, *kernel.stage).c_str(),
                again(*options, kernel, outcome.failure->seed).c_str());
    return wrong;
  }
  std::printf("%s random problems, none wrong.\n", fa2::with_commas(outcome.run).c_str());
  if (outcome.run > 0) return done;
  std::fputs("fa2 fuzz: no problem was run; try another --seed, --stage or more --minutes.\n",
             stderr);
  return cannot_run;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = fuzz({argv + 1, argv + argc});
    fa2::cli::end_output();
    return status;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fa2 fuzz: %s\n", e.what());
  }
  return cannot_run;
}

// fa2-warmup [N]: runs the warm-ups, or number N, on the simulator and shows what each is about.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "stage1_naive/warmup/cases.h"

using namespace fa2::warmup;

namespace {

bool show(const Case& c) {
  const Result result = run_on_sim(c);
  const std::string wrong = result.finding.empty() ? judge(c, result.out) : result.finding;
  const fa2_counters& n = result.counters;
  std::printf("%-16s %-6s %8llu mma %8llu ldmatrix %8llu wavefronts %8llu ideal\n", c.name.c_str(),
              wrong.empty() ? "ok" : "wrong", static_cast<unsigned long long>(n.mma),
              static_cast<unsigned long long>(n.ldmatrix),
              static_cast<unsigned long long>(n.shared_wavefronts_tiles),
              static_cast<unsigned long long>(n.shared_wavefronts_ideal_tiles));
  if (!wrong.empty()) std::printf("%s\n", wrong.c_str());
  return wrong.empty();
}

bool show_number(int number) {
  static const char* const titles[] = {"who holds what of a matrix", "ldmatrix", "the swizzle",
                                       "cp.async and its wait", "online softmax"};
  std::printf("\n%d  %s\n\n", number, titles[number - 1]);
  const std::vector<Case> all = cases();
  bool ok = true;
  if (number == 3) ok = show(all[2]);
  ok &= show(all[number <= 2 ? number - 1 : number]);
  if (number == 4)
    for (const Case& mistake : mistakes())
      std::printf("\n%s:\n%s\n", mistake.name.c_str(), run_on_sim(mistake).finding.c_str());
  return ok;
}

}  // namespace

int main(int count, char** arguments) {
  const int number = count == 2 ? std::atoi(arguments[1]) : 0;
  if (count > 2 || (count == 2 && (number < 1 || number > 5))) {
    std::fprintf(stderr,
                 "fa2-warmup: there are the warm-ups 1 to 5; leave the number away for all\n");
    return 1;
  }
  bool ok = true;
  for (int n = 1; n <= 5; ++n)
    if (number == 0 || n == number) ok &= show_number(n);
  if (std::fflush(stdout) != 0) {
    std::fprintf(stderr, "fa2-warmup: The output could not be written. Is the disk full?\n");
    return 2;
  }
  return ok ? 0 : 1;
}

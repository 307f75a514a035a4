#include "common/cli/fuzz/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "common/device/error.h"

namespace fa2::fuzzing {
namespace {

/// Another one every time; small, so that a person can copy it.
uint64_t new_seed() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count()) *
         1000 % 1'000'000'000;
}

}  // namespace

std::optional<Options> parse_options(std::vector<std::string> arguments) {
  Options o;
  o.seed = new_seed();
  double minutes = -1;
  std::string backend = "sim";
  CLI::App app("Runs random problems over the whole contract and makes the first failure small.",
               "./fa2 fuzz");
  app.footer("Exit code: 0 none is wrong, 1 one is, 2 cannot run here.");
  app.add_option("--minutes", minutes, "Stop after this long (default: 1, or none with --count)")
      ->check(CLI::Range(1e-3, 1e6))
      ->type_name("M");
  app.add_option("--count", o.count, "Stop after this many problems")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000'000}))
      ->type_name("K");
  app.add_option("--seed", o.seed, "Of the first problem (default: a new one every time)")
      ->type_name("S");
  app.add_option("--stage", o.stage, "One stage by number or name (default: all)")->type_name("N");
  app.add_option("--variant", o.variant, "One variant of that stage, e.g. lazy")->type_name("NAME");
  app.add_option("--backend", backend, "sim or cuda")
      ->check(CLI::IsMember({"sim", "cuda"}))
      ->type_name("NAME");
  app.add_option("--threads", o.threads, "Problems at once (default: one per core)")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return {};
  } catch (const CLI::ParseError& e) {
    throw Error(std::string(e.what()) + " (see ./fa2 fuzz --help)");
  }
  o.backend = backend == "cuda" ? Backend::cuda : Backend::sim;
  if (minutes >= 0)
    o.seconds = 60 * minutes;
  else if (o.count > 0)
    o.seconds = 0;
  return o;
}

}  // namespace fa2::fuzzing

#pragma once
// The command line of fa2-fuzz.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/registry.h"

namespace fa2::fuzzing {

struct Options {
  Backend backend = Backend::sim;
  std::string stage;    // a number or a name; "": all
  std::string variant;  // "": all
  uint64_t seed = 0;    // of the first problem
  int64_t count = 0;    // problems; 0: as many as the time allows
  double seconds = 60;  // 0: as many as count says
  int threads = 0;      // 0: all cores
};

/// Throws Error with a sentence for a person. Nothing if only help was wanted.
std::optional<Options> parse_options(std::vector<std::string> arguments);

}  // namespace fa2::fuzzing

#pragma once
// --against: which rows differ from an earlier file of results.
#include <string>
#include <vector>

#include "common/cli/compare/record.h"

namespace fa2::compare {

struct Comparison {
  std::vector<std::string> drifted;  // one line per row that differs, saying how
  int unchanged = 0;                 // rows that agree
  int unrecorded = 0;                // rows that the file does not have
  bool machine_recorded = false;     // the file has rows of this backend and, on CUDA, this GPU
};

/// Times drifted if they differ by more than half of both spreads together and by more than 5%,
/// which is what a GPU under a power cap varies by; counters if any differs at all; outcomes if
/// they are not the same.
Comparison compare_with(const std::vector<Record>& now, const std::vector<Record>& then);

/// Sentences about it, and the exit code: 0 nothing drifted, 1 something did, 2 nothing to compare.
std::string text_of(const Comparison& c, const std::string& file, const Environment& here);
int exit_code_of(const Comparison& c);

}  // namespace fa2::compare

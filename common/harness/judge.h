#pragma once
// Is a result right? Every comparison is written so that NaN fails.
#include <string>

#include "common/harness/buffers.h"
#include "common/harness/workload.h"

namespace fa2 {

struct Verdict {
  bool ok = true;
  std::string message;     // the first thing that is wrong, in one sentence
  double max_abs_err = 0;  // of O, over all finite expected elements
  double tolerance = 0;    // what the row with the largest share of its tolerance was allowed
  double worst_share = 0;  // that share: at most 1 if ok
  double max_lse_err = 0;
};

/// What the contract says of one element of O.
enum class Element {
  right,
  excused,    // a NaN or infinity of the inputs may reach it
  unwritten,  // wrong, as are the next two
  finite,     // though its inputs are not
  apart,      // from the reference, by more than allowed
};

/// Judges the element in this column of the reference's row `n`.
Element judge_O(const Workload& workload, size_t n, int column, uint16_t bits, const Tile& tile);

/// Checks what a call wrote: that nothing around the outputs changed, that every element was
/// written, and that O and LSE are within the tolerance of the reference. `tile` is the one that
/// ran: the contract says how far a NaN of V may reach in terms of it.
Verdict judge(const Workload& workload, const Outputs& outputs, const Tile& tile);

}  // namespace fa2

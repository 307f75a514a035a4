#pragma once
// What a correct kernel must return: attention in double precision on the same 16-bit inputs, with
// its own mask and its own conversions, and how far from it a 16-bit kernel may be.
#include <cstdint>
#include <vector>

#include "common/harness/inputs.h"

namespace fa2 {

struct RowIndex {
  int b, h, i;
};

/// The truth about some or all rows. Everything is in the order of `rows`.
struct Reference {
  int d = 0;
  bool all_rows = true;
  std::vector<RowIndex> rows;
  std::vector<double> O;  // [row][d]; NaN or infinity where the inputs' reach the row
  std::vector<double> LSE;
  std::vector<double> O_tolerance;  // largest allowed |error| of any element of the row
  std::vector<double> LSE_tolerance;

  const double* O_row(size_t n) const { return O.data() + n * static_cast<size_t>(d); }
};

/// Computes the reference on all cores.
///
/// The tolerance of a row of O is twice the error of a 16-bit evaluation of that row (S and softmax
/// in fp32, P and O rounded to 16 bits), plus a floor for rows where that evaluation is exact by
/// luck: two rounding errors of P as they add up over the keys, and what fp32 leaves uncertain in
/// the logits. Per row and not per tensor, so that one row of large values hides nothing in others.
///
/// If it would take more than `max_products` multiplications for S, only some rows of every head
/// are computed: the first and the last, those at tile edges, and random ones.
Reference make_reference(const Spec& spec, const Problem& problem, const InputTensors& inputs,
                         double max_products = 1e18);

}  // namespace fa2

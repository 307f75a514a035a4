#pragma once
// Sizes that follow from a problem.
#include <cstdint>

#include "common/device/problem.h"

namespace fa2 {

/// The sizes of one [batch, head, row, d] tensor.
struct Shape {
  int64_t batch, heads, rows, d;
  int64_t elements() const { return batch * heads * rows * d; }
};

inline Shape shape_q(const Problem& p) { return {p.batch, p.heads_q, p.Nq, p.d}; }
inline Shape shape_kv(const Problem& p) { return {p.batch, p.heads_kv, p.Nk, p.d}; }

/// The strides of a tensor without gaps.
inline Strides contiguous(const Shape& s) { return {s.heads * s.rows * s.d, s.rows * s.d, s.d}; }

/// How many elements lie between the first and the last of a tensor, both included.
inline int64_t extent(const Shape& s, const Strides& stride) {
  if (s.elements() == 0) return 0;
  return (s.batch - 1) * stride.batch + (s.heads - 1) * stride.head + (s.rows - 1) * stride.row +
         s.d;
}

/// Whether the call writes anything.
inline bool has_output(const Problem& p) { return p.batch > 0 && p.Nq > 0; }

/// How many (batch, query head, row) there are: the elements of LSE.
inline int64_t output_rows(const Problem& p) { return int64_t{p.batch} * p.heads_q * p.Nq; }

}  // namespace fa2

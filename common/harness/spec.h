#pragma once
// A test problem: a shape, how its tensors lie in memory, and what is in them. A line of text holds
// all of it, so that a failure can be replayed.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/harness/fa2.h"
#include "common/harness/shape.h"

namespace fa2 {

/// How a tensor lies in memory. What lies between its rows is filled with NaN.
enum class Layout {
  bhnd,       // [batch, head, row, d], contiguous
  bnhd,       // [batch, row, head, d]: what PyTorch calls a transposed view
  row_gap,    // 8 elements between rows
  head_gap,   // rows of padding between heads, and more between batches
  packed,     // a slice of [batch, row, 3, head, d], as of one QKV projection
  far_batch,  // 2^31 elements between batches: 32-bit offsets overflow
  far_row,    // 2^25 elements between rows: the same inside one head
};
inline constexpr int layout_count = 7;
const char* name_of(Layout layout);
Strides strides_of(Layout layout, const Shape& shape);

/// What is in Q, K and V: independent unit-variance noise, different in every batch and head,
/// and...
enum class Inputs {
  normal,          // nothing else
  large_logits,    // Q and K times 8
  zeros,           // Q = K = 0: a plain mean of V
  constant_rows,   // all rows of Q, and all of K, alike
  dominant_key,    // one key whose logit is 30 above the rest
  negative,        // every logit about -120: a maximum that starts at 0 loses the row
  negative_start,  // the first 128 keys at -120
  ascending,       // logits grow by 0.04 a key: the maximum rises in every tile
  ascending_slow,  // by 0.005 a key: by less than stage 6 bothers to rescale for
  descending,      // logits fall by 0.04 a key
  large_V,         // V times 4096
  tiny_V,          // V times 2^-20: subnormal in fp16
  nan_Q,           // a NaN in one row of Q
  nan_K,           // a NaN in one key
  nan_V,           // a NaN in one element of V
  inf_Q,
  inf_K,
  inf_V,           // the same with infinity
  nan_first_head,  // Q, K and V of the first batch and head all NaN
  all_minus_inf,   // every logit -inf: rows without weight
};
inline constexpr int inputs_count = 20;
const char* name_of(Inputs inputs);

struct Spec {
  Dtype dtype = Dtype::fp16;
  bool causal = false;
  int64_t batch = 1, heads_q = 1, heads_kv = 1, Nq = 64, Nk = 64, d = 64;
  float scale = 0;                     // 0: 1 / sqrt(d)
  std::array<Layout, 4> layouts = {};  // of Q, K, V, O
  Inputs inputs = Inputs::normal;
  uint64_t seed = 1;

  bool operator==(const Spec&) const = default;
};

/// "fp16 causal b=2 h=4/2 q=65 k=129 d=64 scale=0 layout=bhnd,bhnd,bhnd,bhnd inputs=normal seed=1"
std::string to_text(const Spec& spec);

/// The inverse. Fields may be missing or in another order. Throws Failure naming the wrong word.
Spec parse_spec(std::string_view text);

/// The problem as a caller of the C interface states it.
fa2_problem to_problem(const Spec& spec);

}  // namespace fa2

// Warm-up 5: online softmax. out = softmax(S) V for one row, in one pass over the keys.
//
// The invariant, after every step: with m the largest score so far, l is the sum of exp(S - m) and
// O the sum of exp(S - m) V over the keys so far. A new maximum changes the m in both sums, so both
// are multiplied by exp(m_old - m_new). The quotient O / l is the answer for the keys so far.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

template <class F>
__device__ float over_warp(float x, F combine) {
  for (int mask = 1; mask < 32; mask *= 2) x = combine(x, shuffle_xor(x, mask));
  return x;
}

/// Lane i looks at key j + i of each step and holds column i of V and O. `keys` is 32 times a whole.
__global__ void attend(gptr<const float> S, gptr<const float> V, gptr<float> out, int keys) {
  const float log2_e = 1.44269504f;  // exp(x) = exp2(x log2(e))
  float m = -INFINITY, l = 0.f, O = 0.f;
  for (int j = 0; j < keys; j += 32) {
    const float s = S[j + lane_id()] * log2_e;
    const float m_new = max(m, over_warp(s, [](float a, float b) { return max(a, b); }));
    const float alpha = fast_exp2(m - m_new), p = fast_exp2(s - m_new);
    m = m_new;
    l = alpha * l + over_warp(p, [](float a, float b) { return a + b; });
    O = alpha * O;
    for (int i = 0; i < 32; ++i) O += __shfl_sync(0xffffffff, p, i) * V[(j + i) * 32 + lane_id()];
  }
  out[lane_id()] = O / l;
}
}  // namespace

void online_softmax(const void* S, const void* V, float* out, int keys) {
  launch(attend, 1, 32, 0, nullptr, static_cast<const float*>(S), static_cast<const float*>(V), out,
         keys);
}
}  // namespace fa2::inline FA2_BACKEND

#include "common/harness/inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/harness/float16.h"
#include "common/harness/parallel.h"
#include "common/harness/random.h"

namespace fa2 {
namespace {

enum class Tensor : uint64_t { Q = 1, K = 2, V = 3 };

uint64_t key_of(uint64_t seed, Tensor tensor, int64_t b, int64_t h, int64_t i) {
  uint64_t key = mix(seed) ^ static_cast<uint64_t>(tensor);
  for (const int64_t part : {b, h, i}) key = mix(key ^ static_cast<uint64_t>(part));
  return key;
}

/// Noise times `factor`. `same_rows` repeats row 0.
void fill_noise(HostTensor& x, Dtype type, uint64_t seed, Tensor tensor, float factor,
                bool same_rows) {
  const Shape s = x.shape();
  parallel_for(s.batch * s.heads * s.rows, [&](int64_t n) {
    const int64_t i = n % s.rows, h = n / s.rows % s.heads, b = n / s.rows / s.heads;
    const uint64_t key = key_of(seed, tensor, b, h, same_rows ? 0 : i);
    auto row = x.row(b, h, i);
    for (size_t c = 0; c < row.size(); ++c) row[c] = encode(type, factor * normal(key + c));
  });
}

/// What is added to the logit of key j, apart from noise.
float logit_shift(Inputs inputs, uint64_t seed, int64_t b, int64_t h, int64_t j, int64_t Nk) {
  switch (inputs) {
    case Inputs::negative:
      return -120.f;
    case Inputs::negative_start:
      return j < 128 ? -120.f : 0.f;
    case Inputs::ascending:
      return 0.04f * static_cast<float>(j);
    case Inputs::ascending_slow:
      return 0.005f * static_cast<float>(j);
    case Inputs::descending:
      return -0.04f * static_cast<float>(j);
    case Inputs::dominant_key:
      return static_cast<uint64_t>(j) ==
                     key_of(seed, Tensor::K, b, h, 0) % static_cast<uint64_t>(Nk)
                 ? 30.f
                 : 0.f;
    default:
      return 0.f;
  }
}

/// Column 0 carries the shift: Q has 1 / scale there, K the shift of its row.
void shift_logits(InputTensors& x, const Spec& spec, const Problem& p) {
  const float unit = std::min(1.f / p.scale, 1000.f);
  for_each_row(x.Q.shape(), [&](int64_t b, int64_t h, int64_t i) {
    x.Q.row(b, h, i)[0] = encode(p.dtype, unit);
  });
  for_each_row(x.K.shape(), [&](int64_t b, int64_t h, int64_t j) {
    x.K.row(b, h, j)[0] = encode(p.dtype, logit_shift(spec.inputs, spec.seed, b, h, j, p.Nk));
  });
}

bool shifts_logits(Inputs inputs) {
  return inputs == Inputs::negative || inputs == Inputs::negative_start ||
         inputs == Inputs::ascending || inputs == Inputs::ascending_slow ||
         inputs == Inputs::descending || inputs == Inputs::dominant_key;
}

/// Puts one value in the last batch and head, somewhere in its middle: the other batches and heads,
/// and under a causal mask the rows before it, must not notice.
void plant(HostTensor& x, uint64_t seed, float value, Dtype type) {
  const Shape s = x.shape();
  if (s.elements() == 0) return;
  Random random(seed);
  const int64_t row = std::min(s.rows - 1, s.rows / 3 + random.in(0, s.rows / 3));
  x.row(s.batch - 1, s.heads - 1, row)[random.in(0, s.d - 1)] = encode(type, value);
}

void fill_head(HostTensor& x, float value, Dtype type) {
  if (x.shape().elements() == 0) return;
  for (int64_t i = 0; i < x.shape().rows; ++i)
    std::ranges::fill(x.row(0, 0, i), encode(type, value));
}

/// Q is positive and K is -inf in column 0, so that every logit is -inf.
void sink_logits(InputTensors& x, Dtype type) {
  for_each_row(x.Q.shape(), [&](int64_t b, int64_t h, int64_t i) {
    auto row = x.Q.row(b, h, i);
    row[0] = encode(type, 0.5f + std::fabs(decode(type, row[0])));
  });
  for_each_row(x.K.shape(), [&](int64_t b, int64_t h, int64_t j) {
    x.K.row(b, h, j)[0] = encode(type, -std::numeric_limits<float>::infinity());
  });
}

void plant_nonfinite(InputTensors& x, const Spec& spec, Dtype type) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  switch (spec.inputs) {
    case Inputs::nan_Q:
      return plant(x.Q, spec.seed, nan, type);
    case Inputs::nan_K:
      return plant(x.K, spec.seed, nan, type);
    case Inputs::nan_V:
      return plant(x.V, spec.seed, nan, type);
    case Inputs::inf_Q:
      return plant(x.Q, spec.seed, inf, type);
    case Inputs::inf_K:
      return plant(x.K, spec.seed, inf, type);
    case Inputs::inf_V:
      return plant(x.V, spec.seed, inf, type);
    case Inputs::all_minus_inf:
      return sink_logits(x, type);
    case Inputs::nan_first_head:
      for (HostTensor* tensor : {&x.Q, &x.K, &x.V}) fill_head(*tensor, nan, type);
      return;
    default:
      return;
  }
}

}  // namespace

bool has_nonfinite(Inputs inputs) { return inputs >= Inputs::nan_Q; }

InputTensors make_inputs(const Spec& spec, const Problem& p) {
  InputTensors x = {HostTensor(shape_q(p), p.Q), HostTensor(shape_kv(p), p.K),
                    HostTensor(shape_kv(p), p.V)};
  const bool alike = spec.inputs == Inputs::constant_rows;
  float qk = 1.f, v = 1.f;
  if (spec.inputs == Inputs::large_logits) qk = 8.f;
  if (spec.inputs == Inputs::zeros) qk = 0.f;
  if (spec.inputs == Inputs::large_V) v = 4096.f;
  if (spec.inputs == Inputs::tiny_V) v = 0x1p-20f;
  fill_noise(x.Q, p.dtype, spec.seed, Tensor::Q, qk, alike);
  fill_noise(x.K, p.dtype, spec.seed, Tensor::K, qk, alike);
  fill_noise(x.V, p.dtype, spec.seed, Tensor::V, v, false);
  if (shifts_logits(spec.inputs)) shift_logits(x, spec, p);
  plant_nonfinite(x, spec, p.dtype);
  return x;
}

}  // namespace fa2

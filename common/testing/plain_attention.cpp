#include "common/testing/plain_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/harness/float16.h"
#include "common/harness/random.h"
#include "common/harness/shape.h"

namespace fa2::testing {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

enum class Mistake {
  none,
  writes_nothing,
  writes_zeros,
  writes_nan,
  writes_noise,
  hides_nan,
  ignores_Q_and_K,
  unscaled,
  scaled_twice,
  mask_top_left,
  mask_ignored,
  mask_off_by_one,
  last_row_missing,
  last_key_missing,
  one_head_for_all,
  one_batch_for_all,
  kv_head_modulo,
  strides_ignored,
  uses_padding_keys,
  maximum_from_zero,
  empty_rows_nan,
  empty_rows_skipped,
  LSE_in_log2,
  LSE_without_maximum,
  LSE_zero_if_empty,
  sums_in_16_bits,
  probabilities_in_8_bits,
  writes_between_rows,
  writes_behind_O,
  writes_before_LSE,
  writes_behind_workspace,
  nan_spreads_to_all,
};

struct Row {
  int b, h, i;
};

/// One row at a time, in fp32, the mistake at its place.
class PlainAttention {
 public:
  PlainAttention(Mistake mistake, const Problem& p, const Tensors& x)
      : mistake_(mistake), p_(p), x_(x) {
    if (mistake_ == Mistake::strides_ignored) {
      p_.Q = p_.O = {int64_t{p.heads_q} * p.Nq * p.d, int64_t{p.Nq} * p.d, p.d};
      p_.K = p_.V = {int64_t{p.heads_kv} * p.Nk * p.d, int64_t{p.Nk} * p.d, p.d};
    }
  }

  void run() {
    for (int b = 0; b < p_.batch; ++b)
      for (int h = 0; h < p_.heads_q; ++h) {
        decode_keys(b, h);
        for (int i = 0; i < p_.Nq; ++i) attend({b, h, i});
      }
    uint16_t* O = static_cast<uint16_t*>(x_.O);
    if (mistake_ == Mistake::writes_between_rows && p_.O.row > p_.d) O[p_.d] = 0;
    if (mistake_ == Mistake::writes_behind_O) O[extent(shape_q(p_), p_.O)] = 0;
    if (mistake_ == Mistake::writes_before_LSE) x_.LSE[-1] = 0;
    if (mistake_ == Mistake::writes_behind_workspace) static_cast<char*>(x_.workspace)[16] = 0;
  }

 private:
  uint16_t* O_row(Row at) const {
    return static_cast<uint16_t*>(x_.O) + at.b * p_.O.batch + at.h * p_.O.head + at.i * p_.O.row;
  }

  const uint16_t* row(const void* base, const Strides& s, int64_t b, int64_t h, int64_t i) const {
    if (mistake_ == Mistake::one_head_for_all) h = 0;
    if (mistake_ == Mistake::one_batch_for_all) b = 0;
    return static_cast<const uint16_t*>(base) + b * s.batch + h * s.head + i * s.row;
  }

  int kv_head(int h) const {
    if (mistake_ == Mistake::kv_head_modulo) return h % p_.heads_kv;
    return h / (p_.heads_q / p_.heads_kv);
  }

  bool sees(int i, int j) const {
    if (mistake_ == Mistake::last_key_missing && j == p_.Nk - 1 && j > 0) return false;
    if (!p_.causal || mistake_ == Mistake::mask_ignored) return true;
    if (mistake_ == Mistake::mask_top_left) return j <= i;
    if (mistake_ == Mistake::mask_off_by_one) return j < i + p_.Nk - p_.Nq;
    return j <= i + p_.Nk - p_.Nq;
  }

  float scale() const {
    if (mistake_ == Mistake::unscaled) return 1.f;
    if (mistake_ == Mistake::scaled_twice) return p_.scale * p_.scale;
    return p_.scale;
  }

  /// K and V of this head as floats.
  void decode_keys(int b, int h) {
    keys_ = p_.Nk + (mistake_ == Mistake::uses_padding_keys && b + 1 < p_.batch ? 1 : 0);
    K_.clear();
    V_.clear();
    for (int j = 0; j < keys_; ++j)
      for (int c = 0; c < p_.d; ++c) {
        K_.push_back(decode(p_.dtype, row(x_.K, p_.K, b, kv_head(h), j)[c]));
        V_.push_back(decode(p_.dtype, row(x_.V, p_.V, b, kv_head(h), j)[c]));
      }
  }

  /// The scaled scores of a row, -inf where it sees nothing, and their maximum.
  std::vector<float> scores(Row at, float* m) const {
    std::vector<float> q(p_.d), S(keys_, -inf);
    for (int c = 0; c < p_.d; ++c) q[c] = decode(p_.dtype, row(x_.Q, p_.Q, at.b, at.h, at.i)[c]);
    *m = mistake_ == Mistake::maximum_from_zero ? 0.f : -inf;
    for (int j = 0; j < keys_; ++j) {
      if (!sees(at.i, j)) continue;
      float sum = 0;
      for (int c = 0; c < p_.d; ++c) sum += q[c] * K_[j * p_.d + c];
      S[j] = mistake_ == Mistake::ignores_Q_and_K ? 0.f : sum * scale();
      *m = std::max(*m, S[j]);
    }
    return S;
  }

  float keep(float value) const {
    return mistake_ == Mistake::sums_in_16_bits ? rounded(p_.dtype, value) : value;
  }

  void attend(Row at) const {
    if (mistake_ == Mistake::writes_nothing) return;
    if (mistake_ == Mistake::last_row_missing && at.i == p_.Nq - 1 && at.i > 0) return;
    float m = 0, l = 0;
    std::vector<float> P = scores(at, &m);
    const float subtrahend = m == -inf && mistake_ != Mistake::empty_rows_nan ? 0.f : m;
    for (float& x : P) l += x = std::exp(x - subtrahend);
    if (l == 0 && mistake_ == Mistake::empty_rows_skipped) return;
    std::vector<float> O(p_.d, 0.f);
    for (size_t j = 0; j < P.size(); ++j) {
      if (!sees(at.i, static_cast<int>(j)) && mistake_ != Mistake::nan_spreads_to_all) continue;
      float weight = l == 0 ? 0.f : rounded(p_.dtype, P[j] / l);
      if (mistake_ == Mistake::probabilities_in_8_bits) weight = std::round(weight * 256) / 256;
      for (int c = 0; c < p_.d; ++c) O[c] = keep(O[c] + weight * V_[j * p_.d + c]);
    }
    write(at, O, m, l);
  }

  void write(Row at, const std::vector<float>& O, float m, float l) const {
    for (int c = 0; c < p_.d; ++c) O_row(at)[c] = encode(p_.dtype, written(at, c, O[c]));
    float LSE = l == 0 ? -inf : m + std::log(l);
    if (mistake_ == Mistake::LSE_in_log2) LSE *= 1.44269504f;
    if (mistake_ == Mistake::LSE_without_maximum) LSE = std::log(l);
    if (mistake_ == Mistake::LSE_zero_if_empty && l == 0) LSE = 0;
    x_.LSE[(int64_t{at.b} * p_.heads_q + at.h) * p_.Nq + at.i] = LSE;
  }

  float written(Row at, int c, float value) const {
    if (mistake_ == Mistake::writes_zeros) return 0.f;
    if (mistake_ == Mistake::writes_nan) return std::nanf("");
    if (mistake_ == Mistake::writes_noise) return normal(mix(at.i) + c);
    if (mistake_ == Mistake::hides_nan) return std::isnan(value) ? 0.f : value;
    return value;
  }

  const Mistake mistake_;
  Problem p_;
  Tensors x_;
  int keys_ = 0;
  std::vector<float> K_, V_;  // [key][d] of the current head
};

constexpr TileRow tiles[] = {{TileMode::same, 64, {64, 128, 4, 1}, 0},
                             {TileMode::same, 128, {64, 128, 4, 1}, 0}};

template <Mistake mistake>
const Variant variant = {
    "", tiles,
    [](const Problem&) { return size_t{mistake == Mistake::writes_behind_workspace ? 16u : 0u}; },
    [](const Problem& p, const Tensors& x, int, void*) { PlainAttention(mistake, p, x).run(); }};

template <Mistake mistake>
PlainStage plain(const char* name) {
  return {{"plain_attention", 1, {&variant<mistake>, 1}}, name};
}

}  // namespace

std::span<const PlainStage> plain_stages() {
#define FA2_PLAIN(mistake) plain<Mistake::mistake>(#mistake)
  static const PlainStage all[] = {
      plain<Mistake::none>(""),
      FA2_PLAIN(writes_nothing),
      FA2_PLAIN(writes_zeros),
      FA2_PLAIN(writes_nan),
      FA2_PLAIN(writes_noise),
      FA2_PLAIN(hides_nan),
      FA2_PLAIN(ignores_Q_and_K),
      FA2_PLAIN(unscaled),
      FA2_PLAIN(scaled_twice),
      FA2_PLAIN(mask_top_left),
      FA2_PLAIN(mask_ignored),
      FA2_PLAIN(mask_off_by_one),
      FA2_PLAIN(last_row_missing),
      FA2_PLAIN(last_key_missing),
      FA2_PLAIN(one_head_for_all),
      FA2_PLAIN(one_batch_for_all),
      FA2_PLAIN(kv_head_modulo),
      FA2_PLAIN(strides_ignored),
      FA2_PLAIN(uses_padding_keys),
      FA2_PLAIN(maximum_from_zero),
      FA2_PLAIN(empty_rows_nan),
      FA2_PLAIN(empty_rows_skipped),
      FA2_PLAIN(LSE_in_log2),
      FA2_PLAIN(LSE_without_maximum),
      FA2_PLAIN(LSE_zero_if_empty),
      FA2_PLAIN(sums_in_16_bits),
      FA2_PLAIN(probabilities_in_8_bits),
      FA2_PLAIN(writes_between_rows),
      FA2_PLAIN(writes_behind_O),
      FA2_PLAIN(writes_before_LSE),
      FA2_PLAIN(writes_behind_workspace),
      FA2_PLAIN(nan_spreads_to_all),
  };
#undef FA2_PLAIN
  return all;
}

}  // namespace fa2::testing

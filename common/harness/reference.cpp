#include "common/harness/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "common/harness/float16.h"
#include "common/harness/parallel.h"
#include "common/harness/random.h"

namespace fa2 {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

/// K and V of one head as floats. K is transposed, so that inner loops run over keys.
struct KeysAndValues {
  size_t Nk, d;
  std::vector<float> K_transposed;  // [d][Nk]
  std::vector<float> V;             // [Nk][d]
  std::vector<double> K_norm;       // [Nk]

  KeysAndValues(const Problem& p, const InputTensors& x, int b, int h_kv)
      : Nk(p.Nk), d(p.d), K_transposed(Nk * d), V(Nk * d), K_norm(Nk) {
    for (size_t j = 0; j < Nk; ++j) {
      const auto K_row = x.K.row(b, h_kv, j), V_row = x.V.row(b, h_kv, j);
      double square = 0;
      for (size_t c = 0; c < d; ++c) {
        const float k = decode(p.dtype, K_row[c]);
        K_transposed[c * Nk + j] = k;
        V[j * d + c] = decode(p.dtype, V_row[c]);
        square += double{k} * k;
      }
      K_norm[j] = std::sqrt(square);
    }
  }
};

/// The definition of the mask, key by key.
bool sees(const Problem& p, int i, int j) {
  if (!p.causal) return true;
  const int from_last_row = p.Nq - 1 - i, from_last_key = p.Nk - 1 - j;
  return from_last_key >= from_last_row;
}

/// scale * q K^T for the first `n` keys, accumulated as Real.
template <class Real>
std::vector<Real> logits(const Problem& p, const std::vector<float>& q, const KeysAndValues& kv,
                         size_t n) {
  std::vector<Real> x(n, Real(0));
  for (size_t c = 0; c < kv.d; ++c) {
    const Real q_c = q[c];
    const float* k = kv.K_transposed.data() + c * kv.Nk;
    for (size_t j = 0; j < n; ++j) x[j] += q_c * static_cast<Real>(k[j]);
  }
  for (Real& value : x) {
    if (std::fabs(value) > std::numeric_limits<float>::max())  // as fp32 would
      value = std::copysign(std::numeric_limits<Real>::infinity(), value);
    value *= static_cast<Real>(p.scale);
  }
  return x;
}

/// O by a careful 16-bit kernel: fp32 throughout, but P and O rounded to 16 bits.
std::vector<float> evaluate_in_16_bits(const Problem& p, const std::vector<float>& q,
                                       const KeysAndValues& kv, size_t n) {
  std::vector<float> P = logits<float>(p, q, kv, n);
  float m = -std::numeric_limits<float>::infinity(), l = 0;
  for (const float x : P) m = std::max(m, x);
  for (float& x : P) l += x = std::exp(x - m);
  std::vector<float> O(kv.d, 0.f);
  for (size_t j = 0; j < n; ++j) {
    const float weight = rounded(p.dtype, P[j] / l);
    const float* v = kv.V.data() + j * kv.d;
    for (size_t c = 0; c < kv.d; ++c) O[c] += weight * v[c];
  }
  for (float& o : O) o = rounded(p.dtype, o);
  return O;
}

/// The sums over keys that the truth and its tolerance are made of, per column.
struct Sums {
  std::vector<double> O;        // sum p v
  std::vector<double> squares;  // sum p^2 v^2: how rounding errors of P add up
  std::vector<double> second;   // sum p v^2: how much errors of the logits matter
};

Sums sum_over_keys(const std::vector<double>& P, const KeysAndValues& kv) {
  const size_t d = kv.d;
  Sums sums{std::vector<double>(d), std::vector<double>(d), std::vector<double>(d)};
  for (size_t j = 0; j < P.size(); ++j) {
    const float* v = kv.V.data() + j * d;
    const double p = P[j];
    for (size_t c = 0; c < d; ++c) {
      const double pv = p * v[c];
      sums.O[c] += pv;
      sums.squares[c] += pv * pv;
      sums.second[c] += pv * v[c];
    }
  }
  return sums;
}

/// Where the rows of one call to compute_row go.
struct RowOutput {
  double *O, *LSE, *O_tolerance, *LSE_tolerance;
};

void set_row(const RowOutput& out, size_t d, double O, double LSE) {
  std::fill_n(out.O, d, O);
  *out.LSE = LSE;
  *out.O_tolerance = *out.LSE_tolerance = 0;
}

double floor_of(const Problem& p, const Sums& sums, double logit_error, const double* O) {
  double rounding = 0, spread = 0;
  for (size_t c = 0; c < sums.O.size(); ++c) {
    if (!std::isfinite(O[c])) continue;
    rounding = std::max(rounding, std::sqrt(sums.squares[c]));
    spread = std::max(spread, std::sqrt(std::max(0., sums.second[c] - O[c] * O[c])));
  }
  return 2 * unit_roundoff(p.dtype) * rounding + logit_error * spread +
         2 * subnormal_roundoff(p.dtype) + 1e-6 * rounding;
}

void compute_row(const Problem& p, const InputTensors& inputs, const RowIndex& at,
                 const KeysAndValues& kv, const RowOutput& out) {
  size_t n = 0;
  while (n < kv.Nk && sees(p, at.i, static_cast<int>(n))) ++n;
  std::vector<float> q(kv.d);
  const auto Q_row = inputs.Q.row(at.b, at.h, at.i);
  double q_norm = 0;
  for (size_t c = 0; c < kv.d; ++c) {
    q[c] = decode(p.dtype, Q_row[c]);
    q_norm += double{q[c]} * q[c];
  }
  q_norm = std::sqrt(q_norm);

  std::vector<double> P = logits<double>(p, q, kv, n);
  double m = -inf, l = 0, largest_product = 0;
  for (size_t j = 0; j < n; ++j) {
    if (std::isnan(P[j]) || P[j] == inf) return set_row(out, kv.d, nan, nan);
    m = std::max(m, P[j]);
    if (P[j] != -inf) largest_product = std::max(largest_product, q_norm * kv.K_norm[j]);
  }
  if (m == -inf) return set_row(out, kv.d, 0, -inf);
  for (double& x : P) l += x = std::exp(x - m);
  for (double& x : P) x /= l;

  const Sums sums = sum_over_keys(P, kv);
  std::copy(sums.O.begin(), sums.O.end(), out.O);
  *out.LSE = m + std::log(l);
  const double logit_error = 0x1p-20 * p.scale * largest_product;
  *out.LSE_tolerance = 2e-5 + logit_error + 0x1p-21 * std::fabs(*out.LSE);

  const std::vector<float> O_16 = evaluate_in_16_bits(p, q, kv, n);
  double error_16 = 0;
  for (size_t c = 0; c < kv.d; ++c)
    if (std::isfinite(out.O[c])) error_16 = std::max(error_16, std::fabs(O_16[c] - out.O[c]));
  *out.O_tolerance = 2 * error_16 + floor_of(p, sums, logit_error, out.O);
}

/// Which rows of a head to compute when all are too many.
std::vector<int> sample_rows(const Spec& spec, const Problem& p, int64_t bh, int64_t count) {
  std::set<int> rows;
  for (const int64_t i : {0, 63, 64, 127, 128, p.Nq - 1})
    if (i < p.Nq) rows.insert(static_cast<int>(i));
  Random random(spec.seed ^ mix(static_cast<uint64_t>(bh)));
  for (int64_t n = 0; n < count; ++n) rows.insert(static_cast<int>(random.in(0, p.Nq - 1)));
  return {rows.begin(), rows.end()};
}

std::vector<RowIndex> choose_rows(const Spec& spec, const Problem& p, double max_products,
                                  bool* all_rows) {
  const double per_row = static_cast<double>(p.Nk) * p.d;
  const double heads = static_cast<double>(p.batch) * p.heads_q;
  *all_rows = heads * p.Nq * per_row <= max_products;
  std::vector<RowIndex> rows;
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.heads_q; ++h) {
      if (*all_rows) {
        for (int i = 0; i < p.Nq; ++i) rows.push_back({b, h, i});
        continue;
      }
      const int64_t count = static_cast<int64_t>(max_products / per_row / heads);
      for (const int i : sample_rows(spec, p, int64_t{b} * p.heads_q + h, count))
        rows.push_back({b, h, i});
    }
  return rows;
}

}  // namespace

Reference make_reference(const Spec& spec, const Problem& p, const InputTensors& inputs,
                         double max_products) {
  Reference out;
  out.d = p.d;
  if (!has_output(p)) return out;
  out.rows = choose_rows(spec, p, max_products, &out.all_rows);
  const size_t count = out.rows.size();
  out.O.resize(count * static_cast<size_t>(p.d));
  out.LSE.resize(count);
  out.O_tolerance.resize(count);
  out.LSE_tolerance.resize(count);

  // One piece of work: up to 64 rows of one head, which share the conversion of K and V.
  std::vector<size_t> begins;
  for (size_t n = 0; n < count; ++n) {
    const bool new_head =
        n == 0 || out.rows[n].h != out.rows[n - 1].h || out.rows[n].b != out.rows[n - 1].b;
    if (new_head || n - begins.back() == 64) begins.push_back(n);
  }
  begins.push_back(count);
  parallel_for(static_cast<int64_t>(begins.size()) - 1, [&](int64_t piece) {
    const RowIndex& first = out.rows[begins[piece]];
    const KeysAndValues kv(p, inputs, first.b, first.h / (p.heads_q / p.heads_kv));
    for (size_t n = begins[piece]; n < begins[piece + 1]; ++n)
      compute_row(p, inputs, out.rows[n], kv,
                  {&out.O[n * p.d], &out.LSE[n], &out.O_tolerance[n], &out.LSE_tolerance[n]});
  });
  return out;
}

}  // namespace fa2

#pragma once
// A small attention forward in the manner of stage 6, with nothing from common/device but the
// primitives: for tests of determinism and speed that must not change when the stages do.
#include <cmath>
#include <vector>

#include "common/device/backend_sim.h"
#include "common/sim/session.h"

namespace fa2::tests {

/// One block per 64 query rows and head, 4 warps of 16 rows; N a multiple of 64; K and V tiles of
/// 64 rows. Swizzled unless `swizzle` is false.
template <int d, bool swizzle>
__global__ void attention(gptr<const half> Q, gptr<const half> K, gptr<const half> V, gptr<half> O,
                          gptr<float> LSE, int N, float scale_log2) {
  constexpr int B = 64, chunks = d / 8;
  const sptr<half> Q_smem = dyn_smem<half>(0, B * d, Use::tiles, "Q_smem");
  const sptr<half> K_smem = dyn_smem<half>(2 * B * d, B * d, Use::tiles, "K_smem");
  const sptr<half> V_smem = dyn_smem<half>(4 * B * d, B * d, Use::tiles, "V_smem");
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int first_row = static_cast<int>(blockIdx.x) * B;
  const int64_t head = static_cast<int64_t>(blockIdx.y) * N * d;
  const auto at = [](int row, int chunk) {
    return row * d + (swizzle ? chunk ^ row % 8 : chunk) * 8;
  };
  const auto load = [&](sptr<half> tile, gptr<const half> from) {
    for (int i = thread; i < B * chunks; i += 128)
      cp_async_16(tile + at(i / chunks, i % chunks), from + i * 8, true);
  };
  load(Q_smem, Q + (head + first_row * d));

  reg<O_tag> O_reg[d / 8][4];
  for (auto& block : O_reg)
    for (auto& o : block) o = 0.f;
  reg<stat_tag> m[2] = {-INFINITY, -INFINITY}, l[2] = {0.f, 0.f};
  for (int j = 0; j < N; j += B) {
    load(K_smem, K + (head + j * d));
    load(V_smem, V + (head + j * d));
    cp_async_commit();
    cp_async_wait<0>();
    block_barrier();

    reg<S_tag> S[B / 8][4];
    for (auto& block : S)
      for (auto& s : block) s = 0.f;
    for (int k = 0; k < d / 16; ++k) {
      uint32_t A[4];
      ldmatrix_x4(A, Q_smem + at(warp * 16 + lane % 16, k * 2 + lane / 16));
      for (int n = 0; n < B / 8; n += 2) {
        uint32_t b[4];
        ldmatrix_x4(b, K_smem + at(n * 8 + lane % 8 + lane / 16 * 8, k * 2 + lane / 8 % 2));
        mma_m16n8k16<half>(S[n], A, b[0], b[1], S[n]);
        mma_m16n8k16<half>(S[n + 1], A, b[2], b[3], S[n + 1]);
      }
    }
    for (int r = 0; r < 2; ++r) {
      reg<stat_tag> m_new = m[r];
      for (auto& s : S) m_new = max(m_new, max(s[2 * r], s[2 * r + 1]));
      m_new = max(m_new, shuffle_xor(m_new, 1));
      m_new = max(m_new, shuffle_xor(m_new, 2));
      const reg<stat_tag> alpha = fast_exp2((m[r] - m_new) * scale_log2);
      m[r] = m_new;
      l[r] *= alpha;
      for (auto& o : O_reg) o[2 * r] *= alpha, o[2 * r + 1] *= alpha;
      for (auto& s : S)
        for (int e = 2 * r; e < 2 * r + 2; ++e) {
          s[e] = fast_exp2(fma(s[e], scale_log2, -m_new * scale_log2));
          l[r] += s[e];
        }
    }
    for (int k = 0; k < B / 16; ++k) {
      const uint32_t P[4] = {pack2<half>(S[2 * k][0], S[2 * k][1]),
                             pack2<half>(S[2 * k][2], S[2 * k][3]),
                             pack2<half>(S[2 * k + 1][0], S[2 * k + 1][1]),
                             pack2<half>(S[2 * k + 1][2], S[2 * k + 1][3])};
      for (int n = 0; n < d / 8; n += 2) {
        uint32_t b[4];
        ldmatrix_x4_trans(b, V_smem + at(k * 16 + lane % 16, n + lane / 16));
        mma_m16n8k16<half>(O_reg[n], P, b[0], b[1], O_reg[n]);
        mma_m16n8k16<half>(O_reg[n + 1], P, b[2], b[3], O_reg[n + 1]);
      }
    }
    block_barrier();
  }
  for (int r = 0; r < 2; ++r) {
    l[r] += shuffle_xor(l[r], 1);
    l[r] += shuffle_xor(l[r], 2);
    const reg<stat_tag> inverse = reciprocal_or_zero(l[r]);
    const int row = first_row + warp * 16 + lane / 4 + 8 * r;
    for (int n = 0; n < d / 8; ++n)
      store2(O + (head + row * d + n * 8 + lane % 4 * 2),
             pack2<half>(O_reg[n][2 * r] * inverse, O_reg[n][2 * r + 1] * inverse));
    if (lane % 4 == 0)
      LSE[static_cast<int64_t>(blockIdx.y) * N + row] =
          (m[r] * scale_log2 + log2(l[r])) * 0.693147181f;
  }
}

/// Random inputs and the outputs of one run.
struct Attention {
  int heads, N, d;
  std::vector<half> Q, K, V, O;
  std::vector<float> LSE;

  Attention(int heads, int N, int d) : heads(heads), N(N), d(d) {
    const size_t size = static_cast<size_t>(heads) * N * d;
    uint32_t state = 1;
    for (auto* x : {&Q, &K, &V}) {
      x->resize(size);
      for (half& e : *x) {
        state = state * 1664525u + 1013904223u;
        e = half(static_cast<float>(state >> 8) * 0x1p-22f - 2.f);
      }
    }
    O.resize(size);
    LSE.resize(static_cast<size_t>(heads) * N);
  }

  template <bool swizzle = true>
  fa2_counters run(const sim::Config& config) {
    sim::Session session(config);
    session.expose("Q", Q.data(), 2 * Q.size(), false);
    session.expose("K", K.data(), 2 * K.size(), false);
    session.expose("V", V.data(), 2 * V.size(), false);
    session.expose("O", O.data(), 2 * O.size(), true);
    session.expose("LSE", LSE.data(), 4 * LSE.size(), true);
    const float scale = 1.44269504f / std::sqrt(static_cast<float>(d));
    const dim3 grid(static_cast<unsigned>(N / 64), static_cast<unsigned>(heads));
    launch(d == 64 ? attention<64, swizzle> : attention<128, swizzle>, grid, 128,
           static_cast<size_t>(3 * 64 * d * 2), nullptr, Q.data(), K.data(), V.data(), O.data(),
           LSE.data(), N, scale);
    return session.counters();
  }

  /// The largest difference of O from a double-precision evaluation, over every 7th row.
  double error() const {
    double worst = 0;
    for (int h = 0; h < heads; ++h)
      for (int i = 0; i < N; i += 7) {
        const auto at = [&](const std::vector<half>& x, int row, int e) {
          return static_cast<double>(
              static_cast<float>(x[(static_cast<size_t>(h) * N + row) * d + e]));
        };
        std::vector<double> P(static_cast<size_t>(N));
        double m = -INFINITY, l = 0;
        for (int j = 0; j < N; ++j) {
          double s = 0;
          for (int e = 0; e < d; ++e) s += at(Q, i, e) * at(K, j, e);
          m = std::max(m, P[static_cast<size_t>(j)] = s / std::sqrt(static_cast<double>(d)));
        }
        for (double& p : P) l += p = std::exp(p - m);
        for (int e = 0; e < d; ++e) {
          double o = 0;
          for (int j = 0; j < N; ++j) o += P[static_cast<size_t>(j)] * at(V, j, e);
          worst = std::max(worst, std::abs(o / l - at(O, i, e)));
        }
      }
    return worst;
  }
};

}  // namespace fa2::tests

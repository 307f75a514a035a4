// Stage 1: standard attention, as three kernels. S and P live in global memory.
//
//   S = Q K^T                 one block per (head, q tile, kv tile): writes S in fp32
//   P = softmax(scale * S)    one warp per row: reads S three times, writes P in 16 bits and LSE
//   O = P V                   one block per (head, q tile): reads P back
//
// The products run on the tensor cores with the tile code of all later stages, so what stage 2
// gains is the memory traffic alone: per (q, k) pair this stage moves 4 bytes of S out, 3 x 4 in, 2
// bytes of P out and 2 in, where the inputs and outputs are only O(N d). The caller lends the
// workspace, 6 bytes per pair: 51 GB at B2 H16 N16384, which is why nobody trains on long sequences
// this way.
//
// Causal: tiles of S above the diagonal are skipped, and never read.
// Look at: global bytes (they grow with Nq Nk), blocks.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

constexpr int Br = 64, Bc = 128, warps = 4, threads = 32 * warps;

constexpr int S_smem_bytes(int d) { return (Br + Bc) * d * 2; }
constexpr int PV_smem_bytes(int d) { return Br * Bc * 2 + Bc * d * 2; }

constexpr TileRow row(TileMode mode, int d) {
  const int bytes = S_smem_bytes(d) > PV_smem_bytes(d) ? S_smem_bytes(d) : PV_smem_bytes(d);
  return {mode, d, {Br, Bc, warps, 1}, bytes};
}
constexpr TileRow tiles[] = {row(TileMode::same, 64), row(TileMode::same, 128),
                             row(TileMode::tuned, 64), row(TileMode::tuned, 128)};

/// S and P of all heads, row-major [batch * heads_q, Nq, columns], S first.
template <class T>
struct Workspace {
  int columns;  // Nk rounded up to whole tiles: rows stay aligned, and P is zero behind key Nk
  gptr<float> S;
  gptr<T> P;

  __device__ __forceinline__ Workspace(const Problem& p, const Tensors& x, int bh)
      : columns(ceil_div(p.Nk, Bc) * Bc),
        S(static_cast<float*>(x.workspace)),
        P(reinterpret_cast<T*>(static_cast<float*>(x.workspace) +
                               int64_t{p.batch} * p.heads_q * p.Nq * columns)) {
    S = S + int64_t{bh} * p.Nq * columns;
    P = P + int64_t{bh} * p.Nq * columns;
  }
};

size_t workspace_bytes(const Problem& p) {
  return size_t(p.batch) * p.heads_q * p.Nq * ceil_div(p.Nk, Bc) * Bc * 6;
}

template <class T, int d>
__global__ void __launch_bounds__(threads, 1) multiply_S(const Problem p, const Tensors x) {
  const int Tc = ceil_div(p.Nk, Bc), BH = p.batch * p.heads_q;
  const int bh = blockIdx.x % BH, i = blockIdx.x / BH / Tc, j = blockIdx.x / BH % Tc;
  if (j >= key_tiles(p, i * Br, Br, Bc).count) return;  // no row of the tile sees a key of it
  const Head<T> head(p, x, bh);
  const auto Q_smem = smem_tile<T, d>(0, Br, "Q_smem");
  const auto K_smem = smem_tile<T, d>(Br * d * 2, Bc, "K_smem");
  load_tile<Br, threads>(Q_smem, head.Q + int64_t{i} * Br * p.Q.row, p.Q.row, p.Nq - i * Br);
  load_tile<Bc, threads>(K_smem, head.K + int64_t{j} * Bc * p.K.row, p.K.row, p.Nk - j * Bc);
  cp_async_commit();
  cp_async_wait<0>();
  block_barrier();  // both tiles have landed for every thread's part

  Fragment<S_tag, Br / 16, Bc / warps / 8> S;
  const int col0 = warp_id() * (Bc / warps);
  multiply_QK(S, Q_smem, 0, K_smem, col0);
  mask(S, p, i * Br, j * Bc + col0);
  const Workspace<T> work(p, x, bh);
  UNROLL for (int r = 0; r < S.rows; ++r) {
    const int q = i * Br + row_of(r);
    if (q < p.Nq)
      UNROLL for (int c = 0; c < S.cols; ++c)
          work.S[int64_t{q} * work.columns + j * Bc + col0 + col_of(c)] = S(r, c);
  }
}

/// One warp per row. The 32 lanes share their partial results through shared memory.
template <class T>
__global__ void __launch_bounds__(threads, 1) softmax_P(const Problem p, const Tensors x) {
  const int64_t row = int64_t{blockIdx.x} * warps + warp_id();
  if (row >= int64_t{p.batch} * p.heads_q * p.Nq) return;
  const int bh = static_cast<int>(row / p.Nq), i = static_cast<int>(row % p.Nq);
  const Workspace<T> work(p, x, bh);
  const gptr<float> S = work.S + int64_t{i} * work.columns;
  const gptr<T> P = work.P + int64_t{i} * work.columns;
  const auto partial = dyn_smem<float>(0, threads, Use::statistics, "partial") + warp_id() * 32;
  const float scale = log2_scale(p);
  const int seen = visible_keys(p, i);
  // P V reads whole tiles, as many as the last row of the q tile sees.
  const int written = key_tiles(p, i / Br * Br, Br, Bc).count * Bc;

  reg<stat_tag> m = -INFINITY;
  for (int k = lane_id(); k < seen; k += 32) m = max(m, S[k]);
  partial[lane_id()] = m;
  warp_barrier();  // every lane's maximum is written
  for (int lane = 0; lane < 32; ++lane) m = max(m, partial[lane]);
  m = m * scale;   // in log2 units
  warp_barrier();  // every lane's maximum is read

  reg<stat_tag> l = 0.f;
  for (int k = lane_id(); k < seen; k += 32)
    l += fast_exp2(fma(reg<S_tag>(S[k]), scale, -finite(m)));
  partial[lane_id()] = l;
  warp_barrier();  // every lane's sum is written
  l = 0.f;
  for (int lane = 0; lane < 32; ++lane) l += partial[lane];
  const reg<stat_tag> inv_l = reciprocal_or_zero(l);

  for (int k = lane_id() * 2; k < written; k += 64) {  // two at a time: 4-byte stores
    reg<S_tag> pair[2] = {0.f, 0.f};
    for (int e = 0; e < 2; ++e)
      if (k + e < seen) pair[e] = fast_exp2(fma(reg<S_tag>(S[k + e]), scale, -finite(m))) * inv_l;
    store2(P + k, pack2<T>(pair[0], pair[1]));
  }
  if (lane_id() == 0) Head<T>(p, x, bh).LSE[i] = natural_log_sum(m, l);
}

template <class T, int d>
__global__ void __launch_bounds__(threads, 1) multiply_O(const Problem p, const Tensors x) {
  const int BH = p.batch * p.heads_q, bh = blockIdx.x % BH, i = blockIdx.x / BH;
  constexpr int O_cols = d / warps;  // this warp's part of O: all rows, some columns
  const Head<T> head(p, x, bh);
  const Workspace<T> work(p, x, bh);
  const auto P_smem = smem_tile<T, Bc>(0, Br, "P_smem");
  const auto V_smem = smem_tile<T, d>(Br * Bc * 2, Bc, "V_smem");
  const int count = key_tiles(p, i * Br, Br, Bc).count;

  Fragment<O_tag, Br / 16, O_cols / 8> O;
  O.fill(0.f);
  for (int j = 0; j < count; ++j) {
    const gptr<const T> P_ij = work.P + (int64_t{i} * Br * work.columns + j * Bc);
    load_tile<Br, threads>(P_smem, P_ij, work.columns, p.Nq - i * Br);
    load_tile<Bc, threads>(V_smem, head.V + int64_t{j} * Bc * p.V.row, p.V.row, p.Nk - j * Bc);
    cp_async_commit();
    cp_async_wait<0>();
    block_barrier();  // both tiles have landed for every thread's part
    UNROLL for (int k = 0; k < Bc / 16; ++k) {
      Operand<Br / 16, 1> P;
      UNROLL for (int r = 0; r < Br / 16; ++r)
          ldmatrix_x4(P.block[r][0], rows_by_column(P_smem, r * 16).at(0, k));
      multiply_PV(O, P, V_smem, k * 16, warp_id() * (O_cols / 16));
    }
    block_barrier();  // every warp is done with both tiles
  }
  store_O(O, p, head, i * Br, warp_id() * O_cols, [](int) { return 1.f; });
}

void forward(const Problem& p, const Tensors& x, int row_index, Stream stream) {
  dispatch<std::size(tiles)>(p, row_index, [&]<class T, int row>(T, constant<row>) {
    constexpr int d = tiles[row].d;
    const int64_t BH = int64_t{p.batch} * p.heads_q, Tr = ceil_div(p.Nq, Br);
    const int64_t Tc = ceil_div(p.Nk, Bc);
    if (Tc > 0)
      launch(multiply_S<T, d>, grid_of(BH * Tr * Tc), dim3(threads), S_smem_bytes(d), stream, p, x);
    launch(softmax_P<T>, grid_of((BH * p.Nq + warps - 1) / warps), dim3(threads), threads * 4,
           stream, p, x);
    launch(multiply_O<T, d>, grid_of(BH * Tr), dim3(threads), PV_smem_bytes(d), stream, p, x);
  });
}

constexpr Variant variants[] = {{"", tiles, workspace_bytes, forward}};

}  // namespace

FA2_STAGE(stage1_naive) = {"stage1_naive", 1, variants};

}  // namespace fa2::inline FA2_BACKEND

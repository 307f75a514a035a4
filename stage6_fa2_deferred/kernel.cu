// Stage 6: divide once, at the end. FlashAttention-2, its algorithm (paper, section 3.1).
//
// Parent: stage5_fa2_registers, which normalizes O after every tile as FA1 does. Nothing needs
// that: O is kept un-normalized, P V accumulates straight into it, and each row is divided by l
// once. The row sum is combined across lanes once as well.
//
//   row "paper"  O and l are rescaled by alpha in every tile (the paper)
//   row "lazy"   only when some row's maximum grew by more than 8 in log2 units. Exact: P, l and O
//                share the stale maximum, and 2^8 is far from overflow. Beyond the paper: it is
//                FA4's conditional rescale. Lanes test it before any shuffle, on a bound that is
//                cheaper than the maximum but never below 0: rows far below 0 always rescale.
//
// Look at: normalizations (once per row), multiplications on O (half, then nearly none).
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

/// Byte offsets in shared memory.
struct Layout {
  int Q, KV, bytes;

  __host__ __device__ constexpr Layout(int d, Tile t)
      : Q(0),  // [Br][d]
        KV(Q + t.Br * d * 2),
        bytes(KV + kv_bytes(d, t)) {}
};

constexpr TileRow row(TileMode mode, int d, Tile t, float min_blocks_per_sm = 0) {
  return {mode, d, t, Layout(d, t).bytes, min_blocks_per_sm};
}
// [change]
constexpr TileRow tiles[] = {
    row(TileMode::same, 64, {64, 128, 4, 1}),
    row(TileMode::same, 128, {64, 128, 4, 1}),
    row(TileMode::same_b, 64, {128, 64, 4, 4}),
    row(TileMode::tuned, 64, {256, 128, 8, 4}, /*blocks per SM*/ 0.9f),
    row(TileMode::tuned, 64, {128, 64, 4, 4}, /*blocks per SM*/ 1.5f),
    row(TileMode::tuned, 64, {64, 128, 4, 1}),
    row(TileMode::tuned, 128, {256, 64, 8, 4}, /*blocks per SM*/ 0.9f),
    row(TileMode::tuned, 128, {128, 32, 4, 4}, /*blocks per SM*/ 1.5f),
    row(TileMode::tuned, 128, {64, 128, 4, 1}),
};

/// O and LSE of one q tile.
template <class T, int row>
__global__ void __launch_bounds__(32 * tiles[row].tile.warps, 1)
    fa2_forward(const Problem p, const Tensors x, float threshold) {
  // A tile too large for the GPU that is compiled for never runs there.
  if (tiles[row].smem_bytes > shared_limit) return;
  // [end of change]
  constexpr int d = tiles[row].d, Br = tiles[row].tile.Br, Bc = tiles[row].tile.Bc;
  constexpr int warps = tiles[row].tile.warps, threads = 32 * warps;
  constexpr int S_rows = Br / warps, S_cols = Bc;  // this warp's part of S: some rows, all columns
  constexpr int O_rows = Br / warps;               // the same rows of O
  constexpr Layout at(d, tiles[row].tile);
  const int S_row0 = warp_id() * S_rows, S_col0 = 0, O_row0 = warp_id() * O_rows;
  const int bh = blockIdx.x, i = query_tile();
  if (i >= ceil_div(p.Nq, Br)) return;

  const Head<T> head(p, x, bh);
  const KeyTiles tiles_of_K = key_tiles(p, i * Br, Br, Bc);
  const float scale = log2_scale(p);
  const auto Q_smem = smem_tile<T, d>(at.Q, Br, "Q_smem");

  load_tile<Br, threads>(Q_smem, head.Q + int64_t{i} * Br * p.Q.row, p.Q.row, p.Nq - i * Br);
  KvPipeline<T, d, Bc, warps, tiles[row].tile.depth> kv(p, head, at.KV, tiles_of_K.count);
  kv.start();
  // [change]
  // Of this lane's rows. The four lanes of a quad have the same m, each its own part of l.
  reg<stat_tag> m[S_rows / 8], l[S_rows / 8];
  // [end of change]
  UNROLL for (int r = 0; r < S_rows / 8; ++r) m[r] = -INFINITY, l[r] = 0.f;
  Fragment<O_tag, O_rows / 16, d / 8> O;
  O.fill(0.f);

  const int seen = kv.tiles_of_warp(key_tiles(p, i * Br + S_row0, S_rows, Bc));
  for (int j = 0; j < tiles_of_K.count; kv.release_V(j), ++j) {
    Fragment<S_tag, S_rows / 16, S_cols / 8> S;
    const SmemTile<T, d> K_smem = kv.wait_K(j);
    if (j < seen) multiply_QK(S, Q_smem, S_row0, K_smem, S_col0);
    kv.release_K(j);
    if (j >= seen) continue;  // this warp's rows see no key of the tile
    if (kv.hides_keys(j, i * Br))
      mask(S, p, recomputed(i) * Br + S_row0, j * Bc + S_col0);  // keeps no i Br for few tiles

    // [change]
    bool grew = false;
    UNROLL for (int r = 0; r < S.rows; ++r) grew |= fma(lane_bound(S, r), scale, -m[r]) > threshold;
    if (warp_any(grew)) UNROLL for (int r = 0; r < S.rows; ++r) {
        const reg<stat_tag> m_new = max(m[r], quad_max(lane_max(S, r)) * scale);  // in log2 units
        const reg<stat_tag> alpha = fast_exp2(m[r] - finite(m_new));
        m[r] = m_new;
        l[r] *= alpha;
        UNROLL for (int c = 0; c < O.cols; ++c) O(r, c) *= alpha;
      }
    UNROLL for (int r = 0; r < S.rows; ++r) l[r] = exponentiate(S, r, scale, m[r], l[r]);
    const auto P = pack<T>(S);
    const SmemTile<T, d> V_smem = kv.wait_V(j);

    multiply_PV(O, P, V_smem, S_col0, 0);
  }

  const Head<T> out(p, x, bh);  // rather than keeping head's pointers through the loop
  UNROLL for (int r = 0; r < S_rows / 8; ++r) l[r] = quad_sum(l[r]);
  store_O(O, p, out, i * Br + O_row0, 0, [&](int r) { return reciprocal_or_zero(l[r]); });
  // [end of change]
  store_LSE(p, out, i * Br + O_row0, m, l);
}

// [change]
void forward(const Problem& p, const Tensors& x, int row_index, Stream stream, float threshold) {
  dispatch<std::size(tiles)>(p, row_index, [&]<class T, int row>(T, constant<row>) {
    const dim3 grid = grid_of(int64_t{p.batch} * p.heads_q, ceil_div(p.Nq, tiles[row].tile.Br));
    launch(fa2_forward<T, row>, grid, dim3(32 * tiles[row].tile.warps), tiles[row].smem_bytes,
           stream, p, x, threshold);
  });
}

constexpr Variant variants[] = {
    {"paper", tiles, no_workspace,
     [](const Problem& p, const Tensors& x, int r, Stream s) { forward(p, x, r, s, -INFINITY); }},
    {"lazy", tiles, no_workspace,
     [](const Problem& p, const Tensors& x, int r, Stream s) { forward(p, x, r, s, 8.f); }},
};
// [end of change]

}  // namespace

FA2_STAGE(stage6_fa2_deferred) = {"stage6_fa2_deferred", 6, variants};

}  // namespace fa2::inline FA2_BACKEND

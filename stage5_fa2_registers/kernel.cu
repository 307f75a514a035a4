// Stage 5: the row statistics stay in registers.
//
// Parent: stage4_fa2_warps. A warp owns its rows, and the four lanes of a quad hold a row between
// them (fragment.h). So m, l and the factors need no shared memory: each lane keeps them, and the
// quad meets by two shuffles for the maximum and two for the sum, per row and tile.
// Official code: softmax.h, row_max and row_sum, Allreduce<4>.
//
// Look at: statistics bytes and warp syncs (0 now), shuffles (8 per warp of 16 rows and tile).
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

/// Byte offsets in shared memory.
struct Layout {
  // [change]
  int Q, KV, bytes;

  __host__ __device__ constexpr Layout(int d, Tile t)
      : Q(0),  // [Br][d]
        KV(Q + t.Br * d * 2),
        bytes(KV + kv_bytes(d, t)) {}
  // [end of change]
};

constexpr TileRow row(TileMode mode, int d, Tile t, float min_blocks_per_sm = 0) {
  return {mode, d, t, Layout(d, t).bytes, min_blocks_per_sm};
}
constexpr TileRow tiles[] = {
    row(TileMode::same, 64, {64, 128, 4, 1}),
    row(TileMode::same, 128, {64, 128, 4, 1}),
    row(TileMode::same_b, 64, {128, 64, 4, 4}),
    row(TileMode::tuned, 64, {128, 64, 4, 4}, /*blocks per SM*/ 1.5f),
    row(TileMode::tuned, 64, {64, 128, 4, 1}),
    row(TileMode::tuned, 128, {64, 128, 4, 1}),
};

/// O and LSE of one q tile.
template <class T, int row>
__global__ void __launch_bounds__(32 * tiles[row].tile.warps, 1)
    fa2_forward(const Problem p, const Tensors x) {
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
  // [change]
  const auto Q_smem = smem_tile<T, d>(at.Q, Br, "Q_smem");

  load_tile<Br, threads>(Q_smem, head.Q + int64_t{i} * Br * p.Q.row, p.Q.row, p.Nq - i * Br);
  KvPipeline<T, d, Bc, warps, tiles[row].tile.depth> kv(p, head, at.KV, tiles_of_K.count);
  kv.start();

  // Of this lane's rows. The four lanes of a quad have the same m and l.
  reg<stat_tag> m[S_rows / 8], l[S_rows / 8];
  UNROLL for (int r = 0; r < S_rows / 8; ++r) m[r] = -INFINITY, l[r] = 0.f;
  // [end of change]
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
    reg<stat_tag> f_O[S_rows / 8], f_P[S_rows / 8];
    UNROLL for (int r = 0; r < S.rows; ++r) {
      const reg<stat_tag> m_new = max(m[r], quad_max(lane_max(S, r)) * scale);  // in log2 units
      const reg<stat_tag> alpha = fast_exp2(m[r] - finite(m_new));
      m[r] = m_new;
      const reg<stat_tag> l_old = alpha * l[r];
      l[r] = l_old + quad_sum(exponentiate(S, r, scale, m_new));
      f_P[r] = reciprocal_or_zero(l[r]);
      f_O[r] = l_old * f_P[r];
    }
    const auto P = pack<T>(S);
    const SmemTile<T, d> V_smem = kv.wait_V(j);

    UNROLL for (int slice = 0; slice < d / 16; ++slice) {
      Fragment<O_tag, S_rows / 16, 2> PV;
      PV.fill(0.f);
      multiply_PV(PV, P, V_smem, S_col0, slice);
      UNROLL for (int r = 0; r < O.rows; ++r) {
        UNROLL for (int c = 0; c < 4; ++c) {
          O(r, 4 * slice + c) = fma(f_P[r], PV(r, c), f_O[r] * O(r, 4 * slice + c));
        }
      }
    }
  }

  const Head<T> out(p, x, bh);  // rather than keeping head's pointers through the loop
  store_O(O, p, out, i * Br + O_row0, 0, [](int) { return 1.f; });  // normalized already
  store_LSE(p, out, i * Br + O_row0, m, l);
  // [end of change]
}

void forward(const Problem& p, const Tensors& x, int row_index, Stream stream) {
  dispatch<std::size(tiles)>(p, row_index, [&]<class T, int row>(T, constant<row>) {
    const dim3 grid = grid_of(int64_t{p.batch} * p.heads_q, ceil_div(p.Nq, tiles[row].tile.Br));
    launch(fa2_forward<T, row>, grid, dim3(32 * tiles[row].tile.warps), tiles[row].smem_bytes,
           stream, p, x);
  });
}

constexpr Variant variants[] = {{"", tiles, no_workspace, forward}};

}  // namespace

FA2_STAGE(stage5_fa2_registers) = {"stage5_fa2_registers", 5, variants};

}  // namespace fa2::inline FA2_BACKEND

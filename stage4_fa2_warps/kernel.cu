// Stage 4: warps split the rows of Q. FlashAttention-2, change 2 (paper, section 3.3).
//
// Parent: stage3_fa2_seqpar. There each warp holds all rows of S and a share of the columns, so P V
// is a partial sum that crosses the warps through shared memory. Here each warp owns Br / warps
// rows and all columns: its P V is the whole sum of its rows, and the exchange is gone.
//
// The statistics still go through shared memory, but inside the warp: __syncwarp orders them. No
// other warp waits for them, so K is released before them.
//
// Look at: partial_o bytes (0 now), block barriers (only those of the K and V copies are left).
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

/// Byte offsets in shared memory.
struct Layout {
  // [change]
  int Q, KV, partial, m, l, f_O, f_P, bytes;

  __host__ __device__ constexpr Layout(int d, Tile t)
      : Q(0),  // [Br][d]
        KV(Q + t.Br * d * 2),
        partial(KV + kv_bytes(d, t)),  // [Br][4]: one max or sum per lane of a row
        m(partial + t.Br * 4 * 4),
        l(m + t.Br * 4),      // [Br]: the row sums; m: the row maxima
        f_O(l + t.Br * 4),    // [Br]: factors of the old O
        f_P(f_O + t.Br * 4),  // [Br]: factors of P V
        bytes(f_P + t.Br * 4) {}
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
  const auto Q_smem = smem_tile<T, d>(at.Q, Br, "Q_smem");
  const auto partial_smem = dyn_smem<float>(at.partial, Br * 4, Use::statistics, "partial");
  const auto m_smem = dyn_smem<float>(at.m, Br, Use::statistics, "m");
  const auto l_smem = dyn_smem<float>(at.l, Br, Use::statistics, "l");
  const auto f_O_smem = dyn_smem<float>(at.f_O, Br, Use::statistics, "f_O");
  const auto f_P_smem = dyn_smem<float>(at.f_P, Br, Use::statistics, "f_P");

  load_tile<Br, threads>(Q_smem, head.Q + int64_t{i} * Br * p.Q.row, p.Q.row, p.Nq - i * Br);
  KvPipeline<T, d, Bc, warps, tiles[row].tile.depth> kv(p, head, at.KV, tiles_of_K.count);
  kv.start();

  const int owned = S_row0 + lane_id();  // the row whose statistics this thread keeps
  const bool owner = lane_id() < S_rows;
  // [end of change]
  if (owner) m_smem[owned] = -INFINITY, l_smem[owned] = 0.f;
  Fragment<O_tag, O_rows / 16, d / 8> O;
  O.fill(0.f);

  // [change]
  const int seen = kv.tiles_of_warp(key_tiles(p, i * Br + S_row0, S_rows, Bc));
  for (int j = 0; j < tiles_of_K.count; kv.release_V(j), ++j) {
    Fragment<S_tag, S_rows / 16, S_cols / 8> S;
    const SmemTile<T, d> K_smem = kv.wait_K(j);
    if (j < seen) multiply_QK(S, Q_smem, S_row0, K_smem, S_col0);
    kv.release_K(j);
    if (j >= seen) continue;  // this warp's rows see no key of the tile
    if (kv.hides_keys(j, i * Br))
      mask(S, p, recomputed(i) * Br + S_row0, j * Bc + S_col0);  // keeps no i Br for few tiles

    const auto partial = [&](int r) { return (S_row0 + row_of(r)) * 4 + lane_id() % 4; };
    UNROLL for (int r = 0; r < S.rows; ++r) partial_smem[partial(r)] = lane_max(S, r);
    warp_barrier();  // this warp's partial maxima are written

    reg<stat_tag> alpha = 0.f;
    if (owner) {
      reg<stat_tag> largest = -INFINITY;
      UNROLL for (int k = 0; k < 4; ++k) largest = max(largest, partial_smem[owned * 4 + k]);
      const reg<stat_tag> m = m_smem[owned], m_new = max(m, largest * scale);  // in log2 units
      alpha = fast_exp2(m - finite(m_new));
      m_smem[owned] = m_new;
    }
    warp_barrier();  // this warp's m are written, its partial maxima read

    UNROLL for (int r = 0; r < S.rows; ++r) {
      const reg<stat_tag> m_row = m_smem[S_row0 + row_of(r)];
      partial_smem[partial(r)] = exponentiate(S, r, scale, m_row);
    }
    const auto P = pack<T>(S);
    const SmemTile<T, d> V_smem = kv.wait_V(j);
    warp_barrier();  // this warp's partial sums are written

    if (owner) {
      reg<stat_tag> sum = 0.f;
      UNROLL for (int k = 0; k < 4; ++k) sum += partial_smem[owned * 4 + k];
      const reg<stat_tag> l = alpha * l_smem[owned], l_new = l + sum;
      const reg<stat_tag> f_P = reciprocal_or_zero(l_new);
      l_smem[owned] = l_new;
      f_O_smem[owned] = l * f_P;
      f_P_smem[owned] = f_P;
    }
    warp_barrier();  // this warp's f_O and f_P are written

    UNROLL for (int slice = 0; slice < d / 16; ++slice) {
      Fragment<O_tag, S_rows / 16, 2> PV;
      PV.fill(0.f);
      multiply_PV(PV, P, V_smem, S_col0, slice);
      UNROLL for (int r = 0; r < O.rows; ++r) {
        const reg<stat_tag> f_O = f_O_smem[O_row0 + row_of(r)], f_P = f_P_smem[O_row0 + row_of(r)];
        UNROLL for (int c = 0; c < 4; ++c) {
          O(r, 4 * slice + c) = fma(f_P, PV(r, c), f_O * O(r, 4 * slice + c));
        }
      }
    }
  }
  // [end of change]

  const Head<T> out(p, x, bh);  // rather than keeping head's pointers through the loop
  store_O(O, p, out, i * Br + O_row0, 0, [](int) { return 1.f; });  // normalized already
  if (owner) store_LSE(p, out, i * Br + owned, m_smem[owned], l_smem[owned]);
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

FA2_STAGE(stage4_fa2_warps) = {"stage4_fa2_warps", 4, variants};

}  // namespace fa2::inline FA2_BACKEND

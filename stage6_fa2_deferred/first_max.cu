// Variant of stage 6: m is the maximum of the first key tile, and nobody asks again.
//
// Any m will do that keeps P inside 16 bits. "lazy" tests in every tile whether m still does; that
// test waits for all of S, and the exponentials wait for the test. Here P simply overflows where a
// score is more than 16 above m (in log2 units; bf16: 127): it is infinite, and O is infinite or NaN
// from then on, whatever comes. So one look at O at the end says whether all was well. If not, the
// block does its q tile again by the paper's rule. Exact: P, l and O share one m.
//
// Not in FlashAttention-2. What it costs: a q tile of which some row's scores grow by 11 (natural
// units) after the first key tile takes twice as long.
//
// Look at: votes (one per q tile and warp), exponentials of statistics and multiplications on O
// (those of the first key tile), time.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

/// Byte offsets in shared memory. The second pass has mbarriers of its own.
struct Layout {
  int Q, KV, lost, bytes;

  __host__ __device__ constexpr Layout(int d, Tile t)
      : Q(0),  // [Br][d]
        KV(Q + t.Br * d * 2),
        lost(KV + kv_bytes(d, t) + mbarrier_bytes(t)),  // [warps]: an infinite P
        bytes(lost + t.warps * 4) {}
};

constexpr TileRow row(TileMode mode, int d, Tile t) { return {mode, d, t, Layout(d, t).bytes}; }
constexpr TileRow tiles[] = {
    row(TileMode::same, 64, {64, 128, 4, 1}),
    row(TileMode::same, 128, {64, 128, 4, 1}),
    row(TileMode::tuned, 64, {256, 128, 8, 4}),
    row(TileMode::tuned, 128, {256, 64, 8, 4}),
};

/// The first pass keeps the m of its first tile, the second follows every maximum.
enum Pass { first, second };

/// O and LSE of one q tile. Returns whether some P was infinite. (`recomputed`: the second pass finds
/// its place again rather than keeping registers through the first.)
template <class T, int row, Pass pass>
__device__ __forceinline__ bool attend(const Problem& p, const Tensors& x) {
  constexpr int d = tiles[row].d, Br = tiles[row].tile.Br, Bc = tiles[row].tile.Bc;
  constexpr int warps = tiles[row].tile.warps, threads = 32 * warps, rows = Br / warps;
  constexpr Layout at(d, tiles[row].tile);
  const int bh = recomputed(static_cast<int>(blockIdx.x)), i = recomputed(query_tile());
  const int row0 = recomputed(warp_id()) * rows;  // this warp's rows of S and O
  if (i >= ceil_div(p.Nq, Br)) return false;

  const Head<T> head(p, x, bh);
  const KeyTiles tiles_of_K = key_tiles(p, i * Br, Br, Bc);
  const float scale = log2_scale(p);
  const auto Q_smem = smem_tile<T, d>(at.Q, Br, "Q_smem");

  load_tile<Br, threads>(Q_smem, head.Q + int64_t{i} * Br * p.Q.row, p.Q.row, p.Nq - i * Br);
  KvPipeline<T, d, Bc, warps, tiles[row].tile.depth, pass> kv(p, head, at.KV, tiles_of_K.count);
  kv.start();
  reg<stat_tag> m[rows / 8], l[rows / 8];
  UNROLL for (int r = 0; r < rows / 8; ++r) m[r] = -INFINITY, l[r] = 0.f;
  Fragment<O_tag, rows / 16, d / 8> O;
  O.fill(0.f);

  const int seen = kv.tiles_of_warp(key_tiles(p, i * Br + row0, rows, Bc));
  for (int j = 0; j < tiles_of_K.count; kv.release_V(j), ++j) {
    Fragment<S_tag, rows / 16, Bc / 8> S;
    const SmemTile<T, d> K_smem = kv.wait_K(j);
    if (j < seen) multiply_QK(S, Q_smem, row0, K_smem, 0);
    kv.release_K(j);
    if (j >= seen) continue;  // this warp's rows see no key of the tile
    if (kv.hides_keys(j, i * Br))
      mask(S, p, recomputed(i) * Br + row0, j * Bc);  // few tiles: keeps no i Br

    // A row that sees a key sees key 0, so it has a maximum from the first tile on.
    if (j == 0 || pass == second) UNROLL for (int r = 0; r < S.rows; ++r) {
        const reg<stat_tag> m_new = max(m[r], quad_max(lane_max(S, r)) * scale);  // in log2 units
        const reg<stat_tag> alpha = fast_exp2(m[r] - finite(m_new));
        m[r] = m_new;
        l[r] *= alpha;
        UNROLL for (int c = 0; c < O.cols; ++c) O(r, c) *= alpha;
      }
    UNROLL for (int r = 0; r < S.rows; ++r) l[r] = exponentiate(S, r, scale, m[r], l[r]);
    const auto P = pack<T>(S);
    multiply_PV(O, P, kv.wait_V(j), 0, 0);
  }

  const Head<T> out(p, x, bh);  // rather than keeping head's pointers through the loop
  UNROLL for (int r = 0; r < rows / 8; ++r) l[r] = quad_sum(l[r]);
  store_O(O, p, out, i * Br + warp_id() * rows, 0, [&](int r) { return reciprocal_or_zero(l[r]); });
  store_LSE(p, out, i * Br + warp_id() * rows, m, l);
  if (pass == second) return false;

  // Stored already: a warp that is done early need not wait with that.
  bool lost = false;
  UNROLL for (int r = 0; r < O.rows; ++r) lost |= !(O(r, 0) - O(r, 0) == 0.f);
  const auto lost_smem = dyn_smem<int>(at.lost, warps, Use::statistics, "lost");
  lost = warp_any(lost);
  if (lane_id() == 0) lost_smem[warp_id()] = lost;
  block_barrier();  // every warp has said so, and is done with K, V and Q
  UNROLL for (int w = 0; w < warps; ++w) lost |= lost_smem[w] != 0;
  return lost;
}

template <class T, int row>
__global__ void __launch_bounds__(32 * tiles[row].tile.warps, 1)
    first_max_forward(const Problem p, const Tensors x) {
  // A tile too large for the GPU that is compiled for never runs there.
  if (tiles[row].smem_bytes > shared_limit) return;
  if (attend<T, row, first>(p, x)) attend<T, row, second>(p, x);
}

void forward(const Problem& p, const Tensors& x, int row_index, Stream stream) {
  dispatch<std::size(tiles)>(p, row_index, [&]<class T, int row>(T, constant<row>) {
    const dim3 grid = grid_of(int64_t{p.batch} * p.heads_q, ceil_div(p.Nq, tiles[row].tile.Br));
    launch(first_max_forward<T, row>, grid, dim3(32 * tiles[row].tile.warps), tiles[row].smem_bytes,
           stream, p, x);
  });
}

constexpr Variant variants[] = {{"", tiles, no_workspace, forward}};

}  // namespace

FA2_STAGE(stage6_fa2_deferred_first_max) = {"stage6_fa2_deferred/first_max", 6, variants};

}  // namespace fa2::inline FA2_BACKEND

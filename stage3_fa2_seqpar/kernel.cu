// Stage 3: one block per query tile. FlashAttention-2, change 1 (paper, section 3.2).
//
// Parent: stage2_fa1. There one block walks over all q tiles of a head, so B * H blocks are all the
// GPU gets: 8 heads leave 124 of 132 SMs idle. The rows of Q do not depend on each other, so the
// loop over q tiles becomes the grid: B * H * ceil(Nq / Br) blocks.
//
// Look at: blocks. Nothing else moves but one block barrier per q tile.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

/// Byte offsets in shared memory.
struct Layout {
  int Q, KV, partial, m, l, f_O, f_P, partial_O, bytes;

  __host__ __device__ constexpr Layout(int d, Tile t)
      : Q(0),  // [Br][d]
        KV(Q + t.Br * d * 2),
        partial(KV + kv_bytes(d, t)),  // [Br][4 per warp]: a max or sum of each lane
        m(partial + t.Br * 4 * t.warps * 4),
        l(m + t.Br * 4),      // [Br]: the row sums; m: the row maxima
        f_O(l + t.Br * 4),    // [Br]: factors of the old O
        f_P(f_O + t.Br * 4),  // [Br]: factors of P V
        // [warps][warps - 1] slices of Br / warps x 16
        partial_O(f_P + t.Br * 4),
        bytes(partial_O + (t.warps - 1) * t.Br * 16 * 4) {}
};

constexpr TileRow row(TileMode mode, int d, Tile t, float min_blocks_per_sm = 0) {
  return {mode, d, t, Layout(d, t).bytes, min_blocks_per_sm};
}
constexpr TileRow tiles[] = {
    row(TileMode::same, 64, {64, 128, 4, 1}),
    row(TileMode::same, 128, {64, 128, 4, 1}),
    row(TileMode::tuned, 64, {64, 192, 4, 1}),
    row(TileMode::tuned, 128, {64, 128, 4, 1}),
};

/// Of a slice of P V, every warp keeps the rows that it owns and gives the others to their owners,
/// as float4 in fragment order: lane after lane, so that no two lanes share a bank.
template <int warps, int M16, int own_M16>
__device__ __forceinline__ void send_partials(const Fragment<O_tag, M16, 2>& PV,
                                              Fragment<O_tag, own_M16, 2>& own,
                                              sptr<float4_t> partial_O) {
  const int lane = recomputed(lane_id());
  UNROLL for (int to = 0; to < warps; ++to) {
    const int from = warp_id() < to ? warp_id() : warp_id() - 1;
    UNROLL for (int b = 0; b < 2 * own_M16; ++b) {
      const auto& e = PV.block[to * own_M16 + b / 2][b % 2];
      if (to == warp_id()) {
        UNROLL for (int k = 0; k < 4; ++k) own.block[b / 2][b % 2][k] = e[k];
      } else {
        partial_O[((to * (warps - 1) + from) * 2 * own_M16 + b) * 32 + lane] =
            float4_t{e[0], e[1], e[2], e[3]};
      }
    }
  }
}

/// Adds what the other warps gave to the rows that this warp owns.
template <int warps, int own_M16>
__device__ __forceinline__ void add_partials(Fragment<O_tag, own_M16, 2>& own,
                                             sptr<float4_t> partial_O) {
  const int lane = recomputed(lane_id());
  UNROLL for (int from = 0; from < warps - 1; ++from) UNROLL for (int b = 0; b < 2 * own_M16; ++b) {
    const float4_t v = partial_O[((warp_id() * (warps - 1) + from) * 2 * own_M16 + b) * 32 + lane];
    auto& e = own.block[b / 2][b % 2];
    e[0] += v.x, e[1] += v.y, e[2] += v.z, e[3] += v.w;
  }
}

// [change]
/// O and LSE of one q tile.
template <class T, int row>
__global__ void __launch_bounds__(32 * tiles[row].tile.warps, 1)
    fa2_forward(const Problem p, const Tensors x) {
  constexpr int d = tiles[row].d, Br = tiles[row].tile.Br, Bc = tiles[row].tile.Bc;
  constexpr int warps = tiles[row].tile.warps, threads = 32 * warps;
  constexpr int S_rows = Br, S_cols = Bc / warps;  // this warp's part of S: all rows, some columns
  constexpr int O_rows = Br / warps;               // the rows of O that this warp keeps
  constexpr Layout at(d, tiles[row].tile);
  const int S_row0 = 0, S_col0 = warp_id() * S_cols, O_row0 = warp_id() * O_rows;
  const int bh = blockIdx.x, i = query_tile();
  if (i >= ceil_div(p.Nq, Br)) return;
  // [end of change]

  const Head<T> head(p, x, bh);
  const KeyTiles tiles_of_K = key_tiles(p, i * Br, Br, Bc);
  const float scale = log2_scale(p);
  const auto Q_smem = smem_tile<T, d>(at.Q, Br, "Q_smem");
  const auto partial_smem = dyn_smem<float>(at.partial, Br * 4 * warps, Use::statistics, "partial");
  const auto m_smem = dyn_smem<float>(at.m, Br, Use::statistics, "m");
  const auto l_smem = dyn_smem<float>(at.l, Br, Use::statistics, "l");
  const auto f_O_smem = dyn_smem<float>(at.f_O, Br, Use::statistics, "f_O");
  const auto f_P_smem = dyn_smem<float>(at.f_P, Br, Use::statistics, "f_P");
  const auto partial_O_smem =
      dyn_smem<float4_t>(at.partial_O, (warps - 1) * Br * 4, Use::partial_o, "partial_O");

  load_tile<Br, threads>(Q_smem, head.Q + int64_t{i} * Br * p.Q.row, p.Q.row, p.Nq - i * Br);
  // Depth 1 only: the statistics are ordered by the block barriers of its copies as well.
  KvPipeline<T, d, Bc, warps, 1> kv(p, head, at.KV, tiles_of_K.count);
  kv.start();

  const int owned = threadIdx.x;  // the row whose statistics this thread keeps
  const bool owner = owned < Br;
  if (owner) m_smem[owned] = -INFINITY, l_smem[owned] = 0.f;
  Fragment<O_tag, O_rows / 16, d / 8> O;
  O.fill(0.f);

  for (int j = 0; j < tiles_of_K.count; ++j) {
    Fragment<S_tag, S_rows / 16, S_cols / 8> S;
    const SmemTile<T, d> K_smem = kv.wait_K(j);
    multiply_QK(S, Q_smem, S_row0, K_smem, S_col0);
    if (kv.hides_keys(j, i * Br))
      mask(S, p, recomputed(i) * Br + S_row0, j * Bc + S_col0);  // keeps no i Br for few tiles

    const auto partial = [&](int r) {
      return (S_row0 + row_of(r)) * 4 * warps + warp_id() * 4 + lane_id() % 4;
    };
    UNROLL for (int r = 0; r < S.rows; ++r) partial_smem[partial(r)] = lane_max(S, r);
    kv.release_K(j);  // its barrier also: every partial maximum is written

    reg<stat_tag> alpha = 0.f;
    if (owner) {
      reg<stat_tag> largest = -INFINITY;
      UNROLL for (int k = 0; k < 4 * warps; ++k) {
        largest = max(largest, partial_smem[owned * 4 * warps + k]);
      }
      const reg<stat_tag> m = m_smem[owned], m_new = max(m, largest * scale);  // in log2 units
      alpha = fast_exp2(m - finite(m_new));
      m_smem[owned] = m_new;
    }
    block_barrier();  // every m is written, every partial maximum read

    UNROLL for (int r = 0; r < S.rows; ++r) {
      const reg<stat_tag> m_row = m_smem[S_row0 + row_of(r)];
      partial_smem[partial(r)] = exponentiate(S, r, scale, m_row);
    }
    const auto P = pack<T>(S);
    const SmemTile<T, d> V_smem = kv.wait_V(j);  // its barrier also: every partial sum is written

    if (owner) {
      reg<stat_tag> sum = 0.f;
      UNROLL for (int k = 0; k < 4 * warps; ++k) sum += partial_smem[owned * 4 * warps + k];
      const reg<stat_tag> l = alpha * l_smem[owned], l_new = l + sum;
      const reg<stat_tag> f_P = reciprocal_or_zero(l_new);
      l_smem[owned] = l_new;
      f_O_smem[owned] = l * f_P;
      f_P_smem[owned] = f_P;
    }

    UNROLL for (int slice = 0; slice < d / 16; ++slice) {
      Fragment<O_tag, S_rows / 16, 2> PV;
      PV.fill(0.f);
      multiply_PV(PV, P, V_smem, S_col0, slice);
      if (slice > 0) block_barrier();  // every warp has read the last slice
      Fragment<O_tag, O_rows / 16, 2> own;
      send_partials<warps>(PV, own, partial_O_smem);
      block_barrier();  // the slice is written, and (for the first) f_O and f_P
      add_partials<warps>(own, partial_O_smem);
      UNROLL for (int r = 0; r < O.rows; ++r) {
        const reg<stat_tag> f_O = f_O_smem[O_row0 + row_of(r)], f_P = f_P_smem[O_row0 + row_of(r)];
        UNROLL for (int c = 0; c < 4; ++c) {
          O(r, 4 * slice + c) = fma(f_P, own(r, c), f_O * O(r, 4 * slice + c));
        }
      }
    }
    kv.release_V(j);
  }

  const Head<T> out(p, x, bh);  // rather than keeping head's pointers through the loop
  store_O(O, p, out, i * Br + O_row0, 0, [](int) { return 1.f; });  // normalized already
  if (owner) store_LSE(p, out, i * Br + owned, m_smem[owned], l_smem[owned]);
}

// [change]
void forward(const Problem& p, const Tensors& x, int row_index, Stream stream) {
  dispatch<std::size(tiles)>(p, row_index, [&]<class T, int row>(T, constant<row>) {
    const dim3 grid = grid_of(int64_t{p.batch} * p.heads_q, ceil_div(p.Nq, tiles[row].tile.Br));
    launch(fa2_forward<T, row>, grid, dim3(32 * tiles[row].tile.warps), tiles[row].smem_bytes,
           stream, p, x);
  });
}
// [end of change]

constexpr Variant variants[] = {{"", tiles, no_workspace, forward}};

}  // namespace

FA2_STAGE(stage3_fa2_seqpar) = {"stage3_fa2_seqpar", 3, variants};

}  // namespace fa2::inline FA2_BACKEND

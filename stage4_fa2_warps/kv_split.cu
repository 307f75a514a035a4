// Variant of stage 4: warps split the keys and combine once, at the end.
//
// Some lectures word change 2 this way. Every warp takes its columns of each S, as in stage 3, but
// keeps an O, m and l of its own for all Br rows, so nothing crosses the warps inside the loop. At
// the end the four O are weighted by what their sums are worth, and added through shared memory.
//
// What it costs: each warp holds a whole Br x d of O in registers. Br = 64 at d = 128 would spill,
// so Br is 32 there, and K and V are read twice as often. FlashAttention-2 splits Q instead.
// (Inference with few queries does split K and V, but between blocks.) The registers are full:
// `recomputed` keeps addresses out of them.
//
// Look at: partial_o bytes (once per q tile, not per tile of K), global bytes at d = 128, mma.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

/// Byte offsets in shared memory. After the loop, partial O takes the place of K and V.
struct Layout {
  int Q, KV, partial, m, l, f_O, f_P, bytes;

  __host__ __device__ constexpr Layout(int d, Tile t)
      : Q(0),
        KV(Q + t.Br * d * 2),
        partial(KV + kv_bytes(d, t)),         // [warps][Br][4]: a max or sum of each lane
        m(partial + t.warps * t.Br * 4 * 4),  // [warps][Br]: the row maxima of a warp's keys
        l(m + t.warps * t.Br * 4),            // [warps][Br]: their row sums
        f_O(l + t.warps * t.Br * 4),          // [warps][Br]: factors of the old O
        f_P(f_O + t.warps * t.Br * 4),        // [warps][Br]: factors of P V
        bytes(f_P + t.warps * t.Br * 4) {}
};

constexpr TileRow row(int d, Tile t) { return {TileMode::same, d, t, Layout(d, t).bytes}; }
constexpr TileRow tiles[] = {row(64, {64, 128, 4, 1}), row(128, {32, 128, 4, 1})};

/// O and LSE of one q tile.
template <class T, int row>
__global__ void __launch_bounds__(32 * tiles[row].tile.warps, 1)
    kv_split_forward(const Problem p, const Tensors x) {
  constexpr int d = tiles[row].d, Br = tiles[row].tile.Br, Bc = tiles[row].tile.Bc;
  constexpr int warps = tiles[row].tile.warps, threads = 32 * warps;
  constexpr int S_cols = Bc / warps;       // this warp's part of S: all rows, some columns
  constexpr int O_blocks = d / warps / 8;  // of O it writes all rows, some columns, at the end
  constexpr Layout at(d, tiles[row].tile);
  const int S_col0 = warp_id() * S_cols, lane = recomputed(lane_id());
  const int bh = blockIdx.x, i = query_tile();
  if (i >= ceil_div(p.Nq, Br)) return;

  const Head<T> head(p, x, bh);
  const KeyTiles tiles_of_K = key_tiles(p, i * Br, Br, Bc);
  const float scale = log2_scale(p);
  const auto Q_smem = smem_tile<T, d>(at.Q, Br, "Q_smem");
  const auto m_of_all = dyn_smem<float>(at.m, warps * Br, Use::statistics, "m");
  const auto l_of_all = dyn_smem<float>(at.l, warps * Br, Use::statistics, "l");
  // This warp's part of the others.
  const auto m_smem = m_of_all + warp_id() * Br, l_smem = l_of_all + warp_id() * Br;
  const auto own = [&](int offset, int count, const char* name) {
    return dyn_smem<float>(offset, warps * Br * count, Use::statistics, name) +
           warp_id() * Br * count;
  };
  const auto partial_smem = own(at.partial, 4, "partial");
  const auto f_O_smem = own(at.f_O, 1, "f_O"), f_P_smem = own(at.f_P, 1, "f_P");

  load_tile<Br, threads>(Q_smem, head.Q + int64_t{i} * Br * p.Q.row, p.Q.row, p.Nq - i * Br);
  KvPipeline<T, d, Bc, warps, 1> kv(p, head, at.KV, tiles_of_K.count);
  kv.start();

  UNROLL for (int owned = lane; owned < Br; owned += 32) {
    m_smem[owned] = -INFINITY;
    l_smem[owned] = 0.f;
  }
  Fragment<O_tag, Br / 16, d / 8> O;
  O.fill(0.f);

  for (int j = 0; j < tiles_of_K.count; ++j) {
    Fragment<S_tag, Br / 16, S_cols / 8> S;
    multiply_QK(S, Q_smem, 0, kv.wait_K(j), S_col0);
    kv.release_K(j);
    const int first_row = recomputed(i) * Br;
    if (j >= key_tiles(p, first_row, Br, Bc).first_mask)
      mask(S, p, first_row, j * Bc + recomputed(S_col0));
    UNROLL for (int r = 0; r < S.rows; ++r) partial_smem[recomputed(row_of(r) * 4 + lane % 4)] =
        lane_max(S, r);
    warp_barrier();  // this warp's partial maxima are written

    reg<stat_tag> alpha[Br / 32];
    UNROLL for (int k = 0; k < Br / 32; ++k) {
      const int owned = lane + 32 * k;
      reg<stat_tag> largest = -INFINITY;
      UNROLL for (int q = 0; q < 4; ++q) largest = max(largest, partial_smem[owned * 4 + q]);
      const reg<stat_tag> m = m_smem[owned], m_new = max(m, largest * scale);  // in log2 units
      alpha[k] = fast_exp2(m - finite(m_new));
      m_smem[owned] = m_new;
    }
    warp_barrier();  // this warp's m are written, its partial maxima read

    UNROLL for (int r = 0; r < S.rows; ++r) {
      const reg<stat_tag> m_row = m_smem[row_of(r)];
      partial_smem[recomputed(row_of(r) * 4 + lane % 4)] = exponentiate(S, r, scale, m_row);
    }
    const auto P = pack<T>(S);
    const SmemTile<T, d> V_smem = kv.wait_V(j);
    warp_barrier();  // this warp's partial sums are written

    UNROLL for (int k = 0; k < Br / 32; ++k) {
      const int owned = lane + 32 * k;
      reg<stat_tag> sum = 0.f;
      UNROLL for (int q = 0; q < 4; ++q) sum += partial_smem[owned * 4 + q];
      const reg<stat_tag> l = alpha[k] * l_smem[owned], l_new = l + sum;
      const reg<stat_tag> f_P = reciprocal_or_zero(l_new);
      l_smem[owned] = l_new;
      f_O_smem[owned] = l * f_P;
      f_P_smem[owned] = f_P;
    }
    warp_barrier();  // this warp's f_O and f_P are written

    UNROLL for (int slice = 0; slice < d / 16; ++slice) {
      Fragment<O_tag, Br / 16, 2> PV;
      if (slice > 0) warp_barrier();  // orders nothing here: overlapping slices, ptxas would spill
      PV.fill(0.f);
      multiply_PV(PV, P, V_smem, S_col0, slice);
      UNROLL for (int r = 0; r < O.rows; ++r) {
        const reg<stat_tag> f_O = f_O_smem[row_of(r)], f_P = f_P_smem[row_of(r)];
        UNROLL for (int c = 0; c < 4; ++c) {
          O(r, 4 * slice + c) = fma(f_P, PV(r, c), f_O * O(r, 4 * slice + c));
        }
      }
    }
    kv.release_V(j);
  }
  block_barrier();  // every warp's m and l are written, and K and V are read

  // The maximum, and the sum over all warps, of one row.
  const auto total = [&](int owned, reg<stat_tag>& m) {
    m = -INFINITY;
    UNROLL for (int w = 0; w < warps; ++w) m = max(m, m_of_all[w * Br + owned]);
    reg<stat_tag> l = 0.f;
    UNROLL for (int w = 0; w < warps; ++w) {
      l += l_of_all[w * Br + owned] * fast_exp2(m_of_all[w * Br + owned] - finite(m));
    }
    return l;
  };
  const Head<T> out(p, x, bh);  // rather than keeping head's pointers through the loop
  constexpr int exchanged = warps * (warps - 1) * O_blocks * 32;  // float4 of 16 rows
  const auto partial_O = dyn_smem<float4_t>(at.KV, exchanged, Use::partial_o, "partial_O");
  const auto place = [&](int from, int to, int n) {  // where one warp's part for another begins
    return ((to * (warps - 1) + (from < to ? from : from - 1)) * O_blocks + n) * 32 + lane;
  };
  UNROLL for (int block = 0; block < Br / 16; ++block) {
    reg<stat_tag> weight[2], m = 0.f;  // what this warp's O is worth, of two rows
    UNROLL for (int r = 0; r < 2; ++r) {
      const int owned = row_of(2 * block + r);
      const reg<stat_tag> l = total(owned, m);
      weight[r] = l_smem[owned] * fast_exp2(m_smem[owned] - finite(m)) * reciprocal_or_zero(l);
    }
    if (block > 0) block_barrier();  // the last 16 rows are read
    Fragment<O_tag, 1, O_blocks> sum;
    UNROLL for (int to = 0; to < warps; ++to) UNROLL for (int n = 0; n < O_blocks; ++n) {
      const auto& e = O.block[block][to * O_blocks + n];
      const reg<O_tag> v[4] = {e[0] * weight[0], e[1] * weight[0], e[2] * weight[1],
                               e[3] * weight[1]};
      if (to == warp_id())
        UNROLL for (int k = 0; k < 4; ++k) sum.block[0][n][k] = v[k];
      else
        partial_O[place(warp_id(), to, n)] = float4_t{v[0], v[1], v[2], v[3]};
    }
    block_barrier();  // 16 rows are written
    UNROLL for (int from = 0; from < warps; ++from) UNROLL for (int n = 0; n < O_blocks; ++n) {
      if (from == warp_id()) continue;
      const float4_t v = partial_O[place(from, warp_id(), n)];
      auto& e = sum.block[0][n];
      e[0] += v.x, e[1] += v.y, e[2] += v.z, e[3] += v.w;
    }
    store_O(sum, p, out, i * Br + 16 * block, warp_id() * O_blocks * 8, [](int) { return 1.f; });
  }
  const int owned = threadIdx.x;
  if (owned < Br && i * Br + owned < p.Nq) {
    reg<stat_tag> m = 0.f;
    const reg<stat_tag> l = total(owned, m);
    out.LSE[i * Br + owned] = natural_log_sum(m, l);
  }
}

void forward(const Problem& p, const Tensors& x, int row_index, Stream stream) {
  dispatch<std::size(tiles)>(p, row_index, [&]<class T, int row>(T, constant<row>) {
    const dim3 grid = grid_of(int64_t{p.batch} * p.heads_q, ceil_div(p.Nq, tiles[row].tile.Br));
    launch(kv_split_forward<T, row>, grid, dim3(32 * tiles[row].tile.warps), tiles[row].smem_bytes,
           stream, p, x);
  });
}

constexpr Variant variants[] = {{"", tiles, no_workspace, forward}};

}  // namespace

FA2_STAGE(stage4_fa2_warps_kv_split) = {"stage4_fa2_warps/kv_split", 4, variants};

}  // namespace fa2::inline FA2_BACKEND

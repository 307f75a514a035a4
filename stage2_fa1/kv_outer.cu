// Variant of stage 2: the loops of FA1's paper. K and V outside, Q inside, O in global memory.
//
//   for each kv tile j:                              one block per (batch, head)
//     load K_j, V_j
//     for each q tile i that sees it:
//       load Q_i, O_i, m_i, l_i                      O, m and l in fp32, in the workspace
//       S, m_new, P, l_new, O as in stage 2
//       store O_i, m_i, l_i
//
// K and V are read once per head, but every pair of tiles reads Q, and reads and writes O, in fp32:
// 10 Br d bytes in place of the 4 Bc d of K and V. Stage 2 turns the loops around: O stays in
// registers, and each q tile is on its own, which is what lets stage 3 give it a block.
//
// Look at: global bytes, of more than two tiles of K; stores among them.
#define stage2_fa1 stage2_under_kv_outer  // the stage's layout, tiles and exchange of partial O
#include "stage2_fa1/kernel.cu"
#undef stage2_fa1

namespace fa2::inline FA2_BACKEND {
namespace {

/// What the paper keeps in global memory besides its tensors, of one head.
struct Kept {
  gptr<float> O, m, l;

  __device__ __forceinline__ Kept(const Problem& p, const Tensors& x, int bh, int d, int Nq_padded)
      : O(static_cast<float*>(x.workspace)), m(O), l(O) {
    const int64_t rows = int64_t{p.batch} * p.heads_q * Nq_padded, first = int64_t{bh} * Nq_padded;
    m = O + (rows * d + first);
    l = O + (rows * (d + 1) + first);
    O = O + first * d;
  }
};

size_t kept_bytes(const Problem& p) {
  constexpr int Br = tiles[0].tile.Br;
  return size_t(p.batch) * p.heads_q * ceil_div(p.Nq, Br) * Br * (p.d + 2) * 4;
}
static_assert([] {  // kept_bytes() does not know which row will run
  for (const TileRow& row : tiles)
    if (row.tile.Br != tiles[0].tile.Br) return false;
  return true;
}());

/// One pair of tiles, K_j and V_j being in shared memory.
template <class T, int row>
__device__ __forceinline__ void visit(const Problem& p, const Tensors& x, int bh, int i, int j) {
  constexpr int d = tiles[row].d, Br = tiles[row].tile.Br, Bc = tiles[row].tile.Bc;
  constexpr int warps = tiles[row].tile.warps, threads = 32 * warps;
  constexpr int S_cols = Bc / warps, O_rows = Br / warps;
  constexpr Layout at(d, tiles[row].tile);
  const int S_col0 = warp_id() * S_cols, O_row0 = warp_id() * O_rows;
  const KeyTiles tiles_of_K = key_tiles(p, i * Br, Br, Bc);
  const float scale = log2_scale(p);
  const auto Q_smem = smem_tile<T, d>(at.Q, Br, "Q_smem");
  const auto K_smem = smem_tile<T, d>(at.KV, Bc, "K_smem");
  const auto V_smem = smem_tile<T, d>(at.KV + Bc * d * 2, Bc, "V_smem");
  const auto partial_smem = dyn_smem<float>(at.partial, Br * 4 * warps, Use::statistics, "partial");
  const auto m_smem = dyn_smem<float>(at.m, Br, Use::statistics, "m");
  const auto f_O_smem = dyn_smem<float>(at.f_O, Br, Use::statistics, "f_O");
  const auto f_P_smem = dyn_smem<float>(at.f_P, Br, Use::statistics, "f_P");
  const auto partial_O_smem =
      dyn_smem<float4_t>(at.partial_O, (warps - 1) * Br * 4, Use::partial_o, "partial_O");

  const Head<T> head(p, x, bh);
  load_tile<Br, threads>(Q_smem, head.Q + int64_t{i} * Br * p.Q.row, p.Q.row, p.Nq - i * Br);
  cp_async_commit();
  const Kept kept(p, x, bh, d, ceil_div(p.Nq, Br) * Br);
  const int owned = threadIdx.x;  // the row whose statistics this thread keeps
  const bool owner = owned < Br;
  reg<stat_tag> m = -INFINITY, l = 0.f, alpha = 0.f;
  if (owner && j > 0) {
    m = kept.m[i * Br + owned];
    l = kept.l[i * Br + owned];
  }
  cp_async_wait<0>();
  block_barrier();  // Q_i, and for the first i K_j and V_j, have landed for every thread's part

  Fragment<S_tag, Br / 16, S_cols / 8> S;
  multiply_QK(S, Q_smem, 0, K_smem, S_col0);
  if (j >= tiles_of_K.first_mask) mask(S, p, i * Br, j * Bc + S_col0);
  const auto partial = [&](int r) { return row_of(r) * 4 * warps + warp_id() * 4 + lane_id() % 4; };
  UNROLL for (int r = 0; r < S.rows; ++r) partial_smem[partial(r)] = lane_max(S, r);
  block_barrier();  // every partial maximum is written
  if (owner) {
    reg<stat_tag> largest = -INFINITY;
    UNROLL for (int k = 0; k < 4 * warps; ++k) {
      largest = max(largest, partial_smem[owned * 4 * warps + k]);
    }
    const reg<stat_tag> m_new = max(m, largest * scale);  // in log2 units
    alpha = fast_exp2(m - finite(m_new));
    m_smem[owned] = m = m_new;
  }
  block_barrier();  // every m is written, every partial maximum read

  UNROLL for (int r = 0; r < S.rows; ++r) {
    const reg<stat_tag> m_row = m_smem[row_of(r)];
    partial_smem[partial(r)] = exponentiate(S, r, scale, m_row);
  }
  const auto P = pack<T>(S);
  block_barrier();  // every partial sum is written

  if (owner) {
    reg<stat_tag> sum = 0.f;
    UNROLL for (int k = 0; k < 4 * warps; ++k) sum += partial_smem[owned * 4 * warps + k];
    const reg<stat_tag> l_old = alpha * l, f_P = reciprocal_or_zero(l_old + sum);
    l = l_old + sum;
    f_O_smem[owned] = l_old * f_P;
    f_P_smem[owned] = f_P;
  }
  const bool last = j == tiles_of_K.count - 1;
  UNROLL for (int slice = 0; slice < d / 16; ++slice) {
    Fragment<O_tag, Br / 16, 2> PV;
    PV.fill(0.f);
    multiply_PV(PV, P, V_smem, S_col0, slice);
    if (slice > 0) block_barrier();  // every warp has read the last slice
    Fragment<O_tag, O_rows / 16, 2> O;
    send_partials<warps>(PV, O, partial_O_smem);
    block_barrier();  // the slice is written, and (for the first) f_O and f_P
    add_partials<warps>(O, partial_O_smem);
    UNROLL for (int r = 0; r < O.rows; ++r) {
      const int at_row = O_row0 + row_of(r);
      const reg<stat_tag> f_O = f_O_smem[at_row], f_P = f_P_smem[at_row];
      UNROLL for (int c = 0; c < O.cols; ++c) {
        const int64_t k = (int64_t{i} * Br + at_row) * d + 16 * slice + col_of(c);
        const reg<O_tag> O_old = j > 0 ? reg<O_tag>(kept.O[k]) : reg<O_tag>(0.f);
        O(r, c) = fma(f_P, O(r, c), f_O * O_old);
        if (!last) kept.O[k] = O(r, c);
      }
    }
    if (last) store_O(O, p, head, i * Br + O_row0, 16 * slice, [](int) { return 1.f; });
  }
  if (owner && !last) {
    kept.m[i * Br + owned] = m;
    kept.l[i * Br + owned] = l;
  }
  if (owner && last) store_LSE(p, head, i * Br + owned, m, l);
}

template <class T, int row>
__global__ void __launch_bounds__(32 * tiles[row].tile.warps, 1)
    kv_outer_forward(const Problem p, const Tensors x) {
  constexpr int d = tiles[row].d, Br = tiles[row].tile.Br, Bc = tiles[row].tile.Bc;
  constexpr int threads = 32 * tiles[row].tile.warps;
  constexpr Layout at(d, tiles[row].tile);
  const int bh = blockIdx.x, Tr = ceil_div(p.Nq, Br), Tc = ceil_div(p.Nk, Bc);
  const Head<T> head(p, x, bh);
  for (int j = 0; j < Tc; ++j) {
    block_barrier();  // every warp is done with K_{j-1} and V_{j-1}
    load_tile<Bc, threads>(smem_tile<T, d>(at.KV, Bc, "K_smem"), head.K + int64_t{j} * Bc * p.K.row,
                           p.K.row, p.Nk - j * Bc);
    load_tile<Bc, threads>(smem_tile<T, d>(at.KV + Bc * d * 2, Bc, "V_smem"),
                           head.V + int64_t{j} * Bc * p.V.row, p.V.row, p.Nk - j * Bc);
    for (int i = 0; i < Tr; ++i)
      if (j < key_tiles(p, i * Br, Br, Bc).count) visit<T, row>(p, x, bh, i, j);
    cp_async_wait<0>();  // if no q tile saw them
  }
  for (int i = threadIdx.x; i < p.Nq; i += threads) {  // rows of q tiles that see no key
    if (key_tiles(p, i / Br * Br, Br, Bc).count > 0) continue;
    for (int c = 0; c < d; c += 2) store2(head.O + (i * p.O.row + c), 0u);
    head.LSE[i] = -INFINITY;
  }
}

void kv_outer(const Problem& p, const Tensors& x, int row_index, Stream stream) {
  dispatch<std::size(tiles)>(p, row_index, [&]<class T, int row>(T, constant<row>) {
    const dim3 grid = grid_of(int64_t{p.batch} * p.heads_q);
    launch(kv_outer_forward<T, row>, grid, dim3(32 * tiles[row].tile.warps), tiles[row].smem_bytes,
           stream, p, x);
  });
}

constexpr Variant kv_outer_variants[] = {{"", tiles, kept_bytes, kv_outer}};

}  // namespace

FA2_STAGE(stage2_fa1_kv_outer) = {"stage2_fa1/kv_outer", 2, kv_outer_variants};

}  // namespace fa2::inline FA2_BACKEND

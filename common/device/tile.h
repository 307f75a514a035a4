#pragma once
// Tiles of Q, K, V and P in shared memory, and the products of tiles.
#include "common/device/fragment.h"

namespace fa2::inline FA2_BACKEND {

/// Rows of `width` 16-bit elements. Chunk c (16 bytes) of row r stands at place c ^ (r % 8), so the
/// eight rows that one ldmatrix phase reads lie in different banks: no bank conflicts.
template <class T, int width>
struct SmemTile {
  sptr<T> base;

  __device__ __forceinline__ sptr<T> chunk(int row, int c) const {
    return base + (row * width + (c ^ row % 8) * 8);
  }
};

template <class T, int width>
__device__ __forceinline__ SmemTile<T, width> smem_tile(int byte_offset, int rows,
                                                        const char* name) {
  return {dyn_smem<T>(byte_offset, rows * width, Use::tiles, name)};
}

/// Where this thread's part of the rows from `from` on begins.
template <int width, class T>
__device__ __forceinline__ gptr<const T> own_part(gptr<const T> from, int64_t row_stride) {
  const unsigned thread = threadIdx.x, chunks = width / 8;
  return from + (thread / chunks * row_stride + thread % chunks * 8);
}

/// Starts copying `rows` rows from global memory; the rows from `valid_rows` on become zeros, so a
/// NaN that stands behind the last row never enters the kernel. All `threads` threads take part.
/// `from` is the first row or, if `is_own`, its own_part().
template <int rows, int threads, bool is_own = false, class T, int width>
__device__ __forceinline__ void load_tile(SmemTile<T, width> tile, gptr<const T> from,
                                          int64_t row_stride, int valid_rows) {
  constexpr int chunks = width / 8, rows_per_pass = threads / chunks;
  static_assert(rows % rows_per_pass == 0 && rows_per_pass % 8 == 0);
  const unsigned thread = recomputed(threadIdx.x);
  const int row = thread / chunks, c = thread % chunks;
  const sptr<T> to = tile.chunk(row, c);  // the swizzle repeats every 8 rows
  gptr<const T> source = is_own ? from : from + (row * row_stride + c * 8);
  UNROLL for (int r = 0; r < rows; r += rows_per_pass) {
    cp_async_16(to + r * width, source, r < valid_rows - row);
    source = source + rows_per_pass * row_stride;
  }
}

/// Where this lane's ldmatrix rows lie: `at(r, k)` is its row of the 16 x 16 block r, k, whose
/// chunks are 2k and 2k + 1. The swizzle touches only the low three bits of a chunk, and a row
/// begins at a multiple of eight chunks: so one address serves them all, by XOR and a constant.
template <class T, int width>
struct LaneRows {
  sptr<T> first;

  __device__ __forceinline__ LaneRows(SmemTile<T, width> tile, int first_row, int lane_row,
                                      int chunk)
      : first(tile.chunk(first_row + lane_row, chunk)) {
    // Of Q the compiler would keep all four XORs through the loop: at d = 128 too many registers.
    if constexpr (width == 128) first = recomputed(first);
  }
  __device__ __forceinline__ sptr<T> at(int r, int k) const {
    return (first ^ k % 4 * 16) + (r * 16 * width + k / 4 * 64);
  }
};

/// Rows of the left operand, or of a right operand that ldmatrix transposes (V).
template <class T, int width>
__device__ __forceinline__ LaneRows<T, width> rows_by_column(SmemTile<T, width> t, int first_row) {
  return {t, first_row, lane_id() % 16, lane_id() / 16};
}

/// Rows of a right operand that is stored by its columns already (K, whose rows are K^T's columns).
template <class T, int width>
__device__ __forceinline__ LaneRows<T, width> rows_by_row(SmemTile<T, width> t, int first_row) {
  return {t, first_row, lane_id() % 8 + lane_id() / 16 * 8, lane_id() / 8 % 2};
}

/// S = Q K^T for 16 M16 rows of Q from `first_row` and 8 N8 rows of K from `first_key`.
template <class T, int d, int M16, int N8>
__device__ __forceinline__ void multiply_QK(Fragment<S_tag, M16, N8>& S, SmemTile<T, d> Q,
                                            int first_row, SmemTile<T, d> K, int first_key) {
  const LaneRows<T, d> Q_rows = rows_by_column(Q, first_row);
  const LaneRows<T, d> K_rows = rows_by_row(K, first_key);
  S.fill(0.f);
  UNROLL for (int k = 0; k < d / 16; ++k) {
    uint32_t A[M16][4];
    UNROLL for (int i = 0; i < M16; ++i) ldmatrix_x4(A[i], Q_rows.at(i, k));
    UNROLL for (int n = 0; n < N8 / 2; ++n) {
      uint32_t B[4];
      ldmatrix_x4(B, K_rows.at(n, k));
      UNROLL for (int i = 0; i < M16; ++i) {
        mma_m16n8k16<T>(S.block[i][2 * n], A[i], B[0], B[1], S.block[i][2 * n]);
        mma_m16n8k16<T>(S.block[i][2 * n + 1], A[i], B[2], B[3], S.block[i][2 * n + 1]);
      }
    }
  }
}

/// O += P V for 16 K16 rows of V from `first_key` and 8 N8 of its columns from 16 * `column16`.
template <class T, int d, int M16, int K16, int N8>
__device__ __forceinline__ void multiply_PV(Fragment<O_tag, M16, N8>& O, const Operand<M16, K16>& P,
                                            SmemTile<T, d> V, int first_key, int column16) {
  const LaneRows<T, d> V_rows = rows_by_column(V, first_key);
  UNROLL for (int k = 0; k < K16; ++k) UNROLL for (int n = 0; n < N8 / 2; ++n) {
    uint32_t B[4];
    ldmatrix_x4_trans(B, V_rows.at(k, column16 + n));
    UNROLL for (int i = 0; i < M16; ++i) {
      mma_m16n8k16<T>(O.block[i][2 * n], P.block[i][k], B[0], B[1], O.block[i][2 * n]);
      mma_m16n8k16<T>(O.block[i][2 * n + 1], P.block[i][k], B[2], B[3], O.block[i][2 * n + 1]);
    }
  }
}

}  // namespace fa2::inline FA2_BACKEND

#pragma once
// What a warp holds of a matrix in registers. An mma result of 16 x 8 is spread over the 32 lanes:
//
//   lane 4g + t holds, of row g,     columns 2t and 2t + 1   (elements 0 and 1)
//                  and, of row g + 8, the same columns       (elements 2 and 3)
//
// so the four lanes of a quad share a row. PTX ISA, "Matrix Fragments for mma.m16n8k16".

namespace fa2::inline FA2_BACKEND {

/// A (16 M16) x (8 N8) matrix in fp32. Each lane holds parts of `rows` rows, `cols` elements of
/// each.
template <class Tag, int M16, int N8>
struct Fragment {
  static constexpr int rows = 2 * M16;
  static constexpr int cols = 2 * N8;
  reg<Tag> block[M16][N8][4];

  /// Element c of this lane's row r; it stands at (row_of(r), col_of(c)) of the matrix.
  __device__ __forceinline__ reg<Tag>& operator()(int r, int c) {
    return block[r / 2][c / 2][r % 2 * 2 + c % 2];
  }
  __device__ __forceinline__ void fill(float value) {
    UNROLL for (int i = 0; i < M16; ++i) UNROLL for (int n = 0; n < N8; ++n)
        UNROLL for (int e = 0; e < 4; ++e) block[i][n][e] = value;
  }
};

__device__ __forceinline__ int lane_id() { return static_cast<int>(threadIdx.x) % 32; }
__device__ __forceinline__ int warp_id() { return static_cast<int>(threadIdx.x) / 32; }
__device__ __forceinline__ int row_of(int r, int lane = lane_id()) {
  return r / 2 * 16 + r % 2 * 8 + lane / 4;
}
__device__ __forceinline__ int col_of(int c, int lane = lane_id()) {
  return c / 2 * 8 + lane % 4 * 2 + c % 2;
}

/// A (16 M16) x (16 K16) matrix in 16 bits, as the left operand of mma.
template <int M16, int K16>
struct Operand {
  uint32_t block[M16][K16][4];
};

/// P rounded to 16 bits. The result layout of one mma is the operand layout of the next, so P never
/// leaves the registers. Paper, section 3.1; official code: convert_layout_acc_Aregs.
template <class T, int M16, int N8>
__device__ __forceinline__ Operand<M16, N8 / 2> pack(const Fragment<S_tag, M16, N8>& P) {
  Operand<M16, N8 / 2> packed;
  UNROLL for (int i = 0; i < M16; ++i) UNROLL for (int k = 0; k < N8 / 2; ++k)
      UNROLL for (int q = 0; q < 4; ++q) {
    const auto& b = P.block[i][2 * k + q / 2];
    packed.block[i][k][q] = pack2<T>(b[q % 2 * 2], b[q % 2 * 2 + 1]);
  }
  return packed;
}

}  // namespace fa2::inline FA2_BACKEND

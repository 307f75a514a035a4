// Warm-up 2: ldmatrix. One instruction fills the four registers of all lanes from shared memory.
//
// It loads four 8 x 8 matrices, in the caller's order; lane l passes the address of row l % 8 of
// matrix l / 8. With .trans each is transposed on the way: so V becomes the right operand of P V.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

__global__ void multiply(gptr<const half> A, gptr<const half> B, gptr<float> out) {
  const auto A_smem = dyn_smem<half>(0, 256, Use::tiles, "A_smem");  // both 16 x 16, row-major
  const auto B_smem = dyn_smem<half>(512, 256, Use::tiles, "B_smem");
  for (int e = lane_id(); e < 256; e += 32) A_smem[e] = A[e], B_smem[e] = B[e];
  warp_barrier();  // both are written

  // Matrices 0 and 1: rows 0-7 and 8-15 at columns 0-7; matrices 2 and 3: at columns 8-15.
  const int down = lane_id() % 16 * 16 + lane_id() / 16 * 8;
  // Matrices 0 and 1: columns 0-7 and 8-15 of rows 0-7; matrices 2 and 3: of rows 8-15.
  const int across = (lane_id() % 8 + lane_id() / 16 * 8) * 16 + lane_id() / 8 % 2 * 8;

  uint32_t A_reg[4], B_reg[2][4];
  ldmatrix_x4(A_reg, A_smem + down);
  ldmatrix_x4(B_reg[0], B_smem + across);      // for A B^T, as in S = Q K^T
  ldmatrix_x4_trans(B_reg[1], B_smem + down);  // for A B, as in O = P V
  for (int n = 0; n < 4; ++n) {                // eight columns of a product at a time
    Fragment<S_tag, 1, 1> S;
    S.fill(0.f);
    const uint32_t* B_n = B_reg[n / 2] + n % 2 * 2;
    mma_m16n8k16<half>(S.block[0][0], A_reg, B_n[0], B_n[1], S.block[0][0]);
    for (int e = 0; e < 4; ++e)
      out[n / 2 * 256 + row_of(e / 2) * 16 + n % 2 * 8 + col_of(e % 2)] = S(e / 2, e % 2);
  }
}
}  // namespace

void ldmatrix(const void* A, const void* B, float* out) {
  const auto halves = [](const void* p) { return static_cast<const half*>(p); };
  launch(multiply, 1, 32, 1024, nullptr, halves(A), halves(B), out);
}
}  // namespace fa2::inline FA2_BACKEND

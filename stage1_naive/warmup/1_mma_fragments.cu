// Warm-up 1: who holds what. One warp multiplies a 16 x 16 by a 16 x 8 matrix in one instruction.
//
// A matrix is spread over the registers of 32 lanes. Lane 4g + t has, of the result S, row g and
// row g + 8 at columns 2t and 2t + 1; row_of() and col_of() in common/device/fragment.h say the
// same. Of A it has four registers and of B two, each with two 16-bit elements side by side along
// k. B is given by its columns, as K is: S = A B^T.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

__global__ void print_fragments(gptr<const uint32_t> A, gptr<const uint32_t> B, gptr<float> out) {
  Fragment<S_tag, 1, 1> lane, S;
  lane.fill(lane_id());
  print_tile("the lane that holds each element", lane);

  const int g = lane_id() / 4, t = lane_id() % 4;  // a row of A or B is 8 registers long
  const uint32_t A_reg[4] = {
      A[g * 8 + t],            // row g,     k = 2t, 2t + 1
      A[(g + 8) * 8 + t],      // row g + 8, the same k
      A[g * 8 + t + 4],        // row g,     k = 2t + 8, 2t + 9
      A[(g + 8) * 8 + t + 4],  // row g + 8, the same k
  };
  const uint32_t B_reg[2] = {B[g * 8 + t], B[g * 8 + t + 4]};  // column g of B^T, the same k
  S.fill(0.f);
  mma_m16n8k16<half>(S.block[0][0], A_reg, B_reg[0], B_reg[1], S.block[0][0]);
  print_tile("S = A B^T", S);
  for (int r = 0; r < S.rows; ++r)
    for (int c = 0; c < S.cols; ++c) out[row_of(r) * 8 + col_of(c)] = S(r, c);
}
}  // namespace

void mma_fragments(const void* A, const void* B, float* out) {
  launch(print_fragments, 1, 32, 0, nullptr, static_cast<const uint32_t*>(A),
         static_cast<const uint32_t*>(B), out);
}
}  // namespace fa2::inline FA2_BACKEND

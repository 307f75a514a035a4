// Warm-up 3: the swizzle. The same loads at other addresses, in an eighth of the wavefronts.
//
// Shared memory has 32 banks of 4 bytes, so rows of 64 16-bit elements (128 bytes) all begin in
// bank 0, and the eight rows that one matrix of ldmatrix reads queue up for the same four banks. If
// chunk c (16 bytes) of row r stands at place c ^ (r % 8), they lie in eight different groups of
// four banks and pass at once. SmemTile::chunk in common/device/tile.h is this line.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

/// The sums of the 16 rows of A, as A times a matrix of ones.
template <bool swizzled>
__global__ void sum_rows(gptr<const half> A, gptr<float> out) {
  const auto A_smem = dyn_smem<half>(0, 16 * 64, Use::tiles, "A_smem");
  const auto place = [](int r, int c) { return r * 64 + (swizzled ? c ^ r % 8 : c) * 8; };
  for (int e = lane_id(); e < 16 * 64; e += 32) A_smem[place(e / 64, e % 64 / 8) + e % 8] = A[e];
  warp_barrier();  // A is written

  const uint32_t ones = 0x3c003c00;  // 1.0 twice, in fp16
  Fragment<S_tag, 1, 1> sum;
  sum.fill(0.f);
  for (int k = 0; k < 4; ++k) {
    uint32_t A_reg[4];
    ldmatrix_x4(A_reg, A_smem + place(lane_id() % 16, 2 * k + lane_id() / 16));
    mma_m16n8k16<half>(sum.block[0][0], A_reg, ones, ones, sum.block[0][0]);
  }
  for (int r = 0; r < sum.rows; ++r)  // all columns are equal: the first lane of a quad writes one
    if (lane_id() % 4 == 0) out[row_of(r)] = sum(r, 0);
}
}  // namespace

void swizzle(const void* A, float* out, bool swizzled) {
  launch(swizzled ? sum_rows<true> : sum_rows<false>, 1, 32, 2048, nullptr,
         static_cast<const half*>(A), out);
}
}  // namespace fa2::inline FA2_BACKEND

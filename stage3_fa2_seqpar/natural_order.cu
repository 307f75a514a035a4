// Variant of stage 3: the first q tile comes first, not the last.
//
// With a causal mask the last q tile sees the most keys. Started last, it ends last, while the
// other SMs have nothing left to do. The counters are stage 3's to the digit: only the time
// differs, and only under a mask.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

/// Counts the q tiles from the end: the one that stage 3 starts first starts last.
__device__ __forceinline__ dim3 block_from_the_end() {
  return dim3(blockIdx.x, recomputed(gridDim.y - 1 - blockIdx.y), blockIdx.z);
}

}  // namespace
}  // namespace fa2::inline FA2_BACKEND

// The kernel of the stage, with its blocks numbered that way and under a name of its own.
#undef blockIdx
#define blockIdx block_from_the_end()
#define stage3_fa2_seqpar stage3_in_natural_order
#include "stage3_fa2_seqpar/kernel.cu"
#undef stage3_fa2_seqpar

namespace fa2::inline FA2_BACKEND {

FA2_STAGE(stage3_fa2_seqpar_natural_order) = {"stage3_fa2_seqpar/natural_order", 3, variants};

}  // namespace fa2::inline FA2_BACKEND

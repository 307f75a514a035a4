// Variant of stage 3: the first q tile comes first, not the last.
//
// With a causal mask the last q tile sees the most keys. Started last, it ends last, while the
// other SMs have nothing left to do. The counters are stage 3's to the digit: only the time
// differs, and only under a mask.
#include "common/device/device.h"

namespace fa2::inline FA2_BACKEND {
namespace {

/// In place of query_tile(): the first q tile comes first.
__device__ __forceinline__ int first_query_tile_first() {
  return static_cast<int>(blockIdx.z * gridDim.y + blockIdx.y);
}

}  // namespace
}  // namespace fa2::inline FA2_BACKEND

// The kernel of the stage with that order, and under a name of its own.
#define query_tile first_query_tile_first
#define stage3_fa2_seqpar stage3_in_natural_order
#include "stage3_fa2_seqpar/kernel.cu"
#undef query_tile
#undef stage3_fa2_seqpar

namespace fa2::inline FA2_BACKEND {

FA2_STAGE(stage3_fa2_seqpar_natural_order) = {"stage3_fa2_seqpar/natural_order", 3, variants};

}  // namespace fa2::inline FA2_BACKEND

// Variant of stage 6: rescale whenever some row's maximum grew at all.
//
// Between the rows "paper" (always) and "lazy" (when it grew by more than 8 in log2 units). It
// skips only multiplications by 1, so the results are those of "paper"; how many rescales are left
// says how often a maximum still grows (or a row lies below 0, where the bound cannot tell).
//
// Look at: multiplications on O, against both rows of stage 6.
#define stage6_fa2_deferred stage6_with_threshold_0  // the kernel of the stage under another name
#include "stage6_fa2_deferred/kernel.cu"
#undef stage6_fa2_deferred

namespace fa2::inline FA2_BACKEND {
namespace {

void when_grown(const Problem& p, const Tensors& x, int row, Stream stream) {
  forward(p, x, row, stream, 0.f);
}

constexpr Variant variants_0[] = {{"", tiles, no_workspace, when_grown}};

}  // namespace

FA2_STAGE(stage6_fa2_deferred_threshold_0) = {"stage6_fa2_deferred/threshold_0", 6, variants_0};

}  // namespace fa2::inline FA2_BACKEND

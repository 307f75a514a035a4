// Warm-up 4: cp.async and its wait. A copy that runs while the thread goes on, and lands unnoticed.
//
// cp_async_16 starts copying 16 bytes from global to shared memory and returns at once. A thread
// may read what it has copied after cp_async_commit() and cp_async_wait<0>(). That wait says
// nothing about the other threads' copies: for those a block barrier must follow. On a GPU either
// mistake can give right answers all day; the simulator names the line.
#include "common/device/device.h"
#include "stage1_naive/warmup/warmups.h"

namespace fa2::inline FA2_BACKEND {
namespace {

constexpr int threads = 128, floats = 4 * threads;

/// Copies `in` to shared memory and writes it back in reverse, so each thread reads another's copy.
template <Mistake mistake>
__global__ void reverse(gptr<const float> in, gptr<float> out) {
  const auto smem = dyn_smem<float>(0, floats, Use::tiles, "smem");
  const int thread = threadIdx.x;
  cp_async_16(smem + 4 * thread, in + 4 * thread, true);
  cp_async_commit();
  // Here a kernel computes: this is the time that the copy hides.
  if constexpr (mistake != Mistake::no_wait) cp_async_wait<0>();
  if constexpr (mistake != Mistake::no_barrier) block_barrier();  // every copy has landed
  for (int e = thread; e < floats; e += threads) out[e] = smem[floats - 1 - e];
}
}  // namespace

void cp_async(const void* in, float* out, Mistake mistake) {
  const auto kernel = mistake == Mistake::no_wait      ? reverse<Mistake::no_wait>
                      : mistake == Mistake::no_barrier ? reverse<Mistake::no_barrier>
                                                       : reverse<Mistake::none>;
  launch(kernel, 1, threads, floats * 4, nullptr, static_cast<const float*>(in), out);
}
}  // namespace fa2::inline FA2_BACKEND

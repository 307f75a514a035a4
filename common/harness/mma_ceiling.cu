// What mma.sync alone reaches on this GPU: the ceiling of every stage. (On Hopper the datasheet's
// peak needs wgmma, which FlashAttention-2 does not use.)
#include <algorithm>

#include "common/device/backend_cuda.h"
#include "common/harness/backend_cuda.h"
#include "common/harness/device.h"
#include "common/harness/mma_operand.h"

namespace fa2 {
namespace {

constexpr int warps = 8, products = 8, steps = 65536, runs = 5;

/// Products of operands that stay in registers, `products` of them independent of each other, so
/// that none waits for a result.
__global__ void __launch_bounds__(32 * warps) multiply_only(float* never_written) {
  const uint32_t A[4] = {mma_operand(0), mma_operand(1), mma_operand(2), mma_operand(3)};
  uint32_t B[products][2];
  float D[products][4];
  UNROLL for (int p = 0; p < products; ++p) {
    B[p][0] = mma_operand(4 + p);
    B[p][1] = mma_operand(40 + p);
    UNROLL for (int e = 0; e < 4; ++e) D[p][e] = 0.f;
  }
  for (int step = 0; step < steps; ++step)
    UNROLL for (int p = 0; p < products; ++p)
        on_gpu::mma_m16n8k16<half>(D[p], A, B[p][0], B[p][1], D[p]);
  float sum = 0.f;
  UNROLL for (int p = 0; p < products; ++p) UNROLL for (int e = 0; e < 4; ++e) sum += D[p][e];
  if (sum == 12345.678f) *never_written = sum;  // so that the products are not optimized away
}

}  // namespace

double cuda_mma_tflops() {
  const unsigned blocks = 2 * static_cast<unsigned>(cuda_info().limits.sms);
  cuda::check_usable();
  cuda::Event start, stop;
  double ms[runs];
  for (int run = -1; run < runs; ++run) {  // the first warms up
    start.record(nullptr);
    multiply_only<<<blocks, 32 * warps>>>(nullptr);
    cuda::check(cudaGetLastError(), "measuring mma.sync");
    stop.record(nullptr);
    cuda::check(cudaDeviceSynchronize(), "measuring mma.sync");
    if (run >= 0) ms[run] = stop.milliseconds_since(start);
  }
  std::nth_element(ms, ms + runs / 2, ms + runs);
  constexpr double flops_per_product = 2.0 * 16 * 8 * 16;
  return flops_per_product * products * steps * warps * blocks / (ms[runs / 2] * 1e-3) / 1e12;
}

}  // namespace fa2

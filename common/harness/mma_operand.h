#pragma once
// What the measurements of mma.sync multiply.
#include <cuda_runtime.h>

#include <cstdint>

namespace fa2 {

/// Two fp16 numbers of size 0.5 to 1, of any sign, other ones for every i and thread. They are not
/// constant: the compiler must not know them, and multiplying zeros would draw less power.
__device__ __forceinline__ uint32_t mma_operand(unsigned i) {
  unsigned bits = (i + 1) * 2654435761u * (threadIdx.x + 1);
  bits ^= bits >> 15;
  return (bits & 0x83ff83ffu) | 0x38003800u;
}

}  // namespace fa2

#pragma once
// The primitives on a GPU (sm_80 and later). backend_sim.h has the same names for the simulator;
// the two files are the whole difference between the machines. Shared memory is addressed by 32-bit
// shared addresses, never by generic pointers: those cost registers until the kernels spill.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "common/device/error.h"
#include "common/device/problem.h"

#define FA2_BACKEND on_gpu
#define UNROLL _Pragma("unroll")

namespace fa2::inline on_gpu {

using half = __half;
using bfloat16 = __nv_bfloat16;

// ---- Registers whose arithmetic the simulator counts, by what they hold ------------------------

struct S_tag {};     // scores and probabilities
struct O_tag {};     // the output accumulator and its partial products
struct stat_tag {};  // row statistics: m, l and the factors made from them

template <class Tag>
using reg = float;

// ---- Memory ------------------------------------------------------------------------------------

template <class T>
using gptr = T*;  // global memory

/// One element of shared memory: reads with ld.shared, writes with st.shared.
template <class T>
struct SharedElement {
  uint32_t address;
  __device__ T* generic() const { return static_cast<T*>(__cvta_shared_to_generic(address)); }
  __device__ operator T() && { return *generic(); }
  __device__ void operator=(T value) && { *generic() = value; }
};

/// A pointer into shared memory, as a 32-bit address.
template <class T>
struct sptr {
  uint32_t address;
  __device__ SharedElement<T> operator[](int i) const {
    return {address + i * static_cast<uint32_t>(sizeof(T))};
  }
  __device__ sptr operator+(int i) const {
    return {address + i * static_cast<uint32_t>(sizeof(T))};
  }
  __device__ sptr operator^(int i) const {  // flips bits of the address: for swizzles
    return {address ^ i * static_cast<uint32_t>(sizeof(T))};
  }
};

/// What an array in shared memory is for; the simulator counts its traffic by it.
enum class Use { tiles, statistics, partial_o, barriers };

/// An array of `count` elements in the block's dynamic shared memory, `byte_offset` from its start.
/// `name` labels it in the simulator's messages.
template <class T>
__device__ __forceinline__ sptr<T> dyn_smem(int byte_offset, int /*count*/, Use,
                                            const char* /*name*/) {
  extern __shared__ __align__(128) unsigned char fa2_shared[];
  return {static_cast<uint32_t>(__cvta_generic_to_shared(fa2_shared)) + byte_offset};
}

/// The most shared memory, in bytes, that a block may have on an architecture (860: sm_86), and on
/// the one that is compiled for.
constexpr int shared_limit_of(int architecture) {
  if (architecture >= 900 && architecture < 1200) return 227 * 1024;
  return architecture == 800 || architecture == 870 ? 163 * 1024 : 99 * 1024;
}
#ifdef __CUDA_ARCH__
constexpr int shared_limit = shared_limit_of(__CUDA_ARCH__);
#else
constexpr int shared_limit = shared_limit_of(900);
#endif

// 16 bytes of shared memory moved as one access.
struct alignas(16) float4_t {
  float x, y, z, w;
};

// ---- Barriers ----------------------------------------------------------------------------------

__device__ __forceinline__ void block_barrier() { __syncthreads(); }
__device__ __forceinline__ void warp_barrier() { __syncwarp(); }

// ---- Warp collectives --------------------------------------------------------------------------

template <class R>
__device__ __forceinline__ R shuffle_xor(R value, int lane_mask) {
  return __shfl_xor_sync(0xffffffffu, value, lane_mask);
}

/// `value` of lane 0, in every lane: for what all lanes have in common. The compiler then knows that
/// they have, and keeps it once for the warp.
__device__ __forceinline__ int from_lane_0(int value) { return __shfl_sync(0xffffffffu, value, 0); }

/// True in every lane if `condition` holds in some lane.
__device__ __forceinline__ bool warp_any(bool condition) {
  return __any_sync(0xffffffffu, condition) != 0;
}

/// Four 8x8 matrices of 16-bit elements from shared memory. Lane l passes the address of row l % 8
/// of matrix l / 8; r[i] gets, from matrix i, the two elements of row lane / 4 at columns
/// 2 * (lane % 4) and the next. PTX ISA, ldmatrix.
template <class T>
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], sptr<T> row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row.address)
               : "memory");
}

/// The same with every 8x8 matrix transposed on the way.
template <class T>
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], sptr<T> row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row.address)
               : "memory");
}

/// D = A B + C on a tensor core: A is 16x16, B 16x8, D and C 16x8 in fp32. PTX ISA, mma.m16n8k16.
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&D)[4], const uint32_t (&A)[4], uint32_t B0,
                                             uint32_t B1, const float (&C)[4]) {
  if constexpr (std::is_same_v<T, half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B0), "r"(B1), "f"(C[0]), "f"(C[1]),
          "f"(C[2]), "f"(C[3]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%10,%11,%12,%13};"
        : "=f"(D[0]), "=f"(D[1]), "=f"(D[2]), "=f"(D[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B0), "r"(B1), "f"(C[0]), "f"(C[1]),
          "f"(C[2]), "f"(C[3]));
  }
}

// ---- Asynchronous copies -----------------------------------------------------------------------

/// Starts copying 16 bytes from global to shared memory; writes zeros instead when !valid.
template <class T>
__device__ __forceinline__ void cp_async_16(sptr<T> to, gptr<const T> from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to.address), "l"(from), "r"(valid ? 16 : 0)
               : "memory");
}

/// Closes the group of this thread's copies since the last commit.
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;"); }

/// Waits until at most `Pending` of this thread's groups are still in flight. It says nothing about
/// other threads' copies: a barrier must follow before anyone reads them.
template <int Pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(Pending) : "memory");
}

// ---- mbarriers: counted barriers in shared memory ----------------------------------------------

__device__ __forceinline__ void mbarrier_init(sptr<uint64_t> bar, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(bar.address), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(sptr<uint64_t> bar) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }"
               :
               : "r"(bar.address)
               : "memory");
}

/// This thread arrives once all of its copies so far have landed (counted in the init's arrivals).
__device__ __forceinline__ void cp_async_arrive(sptr<uint64_t> bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(bar.address) : "memory");
}

/// Waits until the phase with this parity (0 for the first) has completed.
__device__ __forceinline__ void mbarrier_wait(sptr<uint64_t> bar, int parity) {
  uint32_t done = 0;
  while (done == 0) {
#if __CUDA_ARCH__ >= 900  // try_wait sleeps in hardware; sm_80 has only the polling test_wait
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(bar.address), "r"(parity)
        : "memory");
#else
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(bar.address), "r"(parity)
        : "memory");
#endif
  }
}

/// `value`, which the compiler may not carry in a register from one loop iteration to the next: for
/// addresses that are cheaper to compute again than to keep where registers are scarce.
template <class Int>
__device__ __forceinline__ Int recomputed(Int value) {
  asm volatile("" : "+r"(value));
  return value;
}
template <class T>
__device__ __forceinline__ sptr<T> recomputed(sptr<T> pointer) {
  return {recomputed(pointer.address)};
}

// ---- Arithmetic --------------------------------------------------------------------------------

/// 2^x, flushing denormals; exp2(-inf) = 0.
template <class R>
__device__ __forceinline__ R fast_exp2(R x) {
  R y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ float max(float a, float b) { return fmaxf(a, b); }  // drops a NaN
__device__ __forceinline__ float log2(float x) { return __log2f(x); }

/// The largest of a, b and c, where a >= 0. From 0 on the bits of floats are ordered as integers
/// are, and sm_90 has an instruction for the largest of three integers.
__device__ __forceinline__ float max_from_0(float a, float b, float c) {
  return __int_as_float(::max(::max(__float_as_int(a), __float_as_int(b)), __float_as_int(c)));
}

/// 1 / x, counted as one normalisation; 0 for x = 0 (a row with no visible key stays 0).
__device__ __forceinline__ float reciprocal_or_zero(float x) {
  return x == 0.f ? 0.f : __fdividef(1.f, x);
}

/// Two values rounded to 16 bits and packed, the first in the low half.
template <class T>
__device__ __forceinline__ uint32_t pack2(float low, float high) {
  uint32_t bits;
  if constexpr (std::is_same_v<T, half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

/// Stores two packed 16-bit elements to global memory (4-byte aligned).
template <class T>
__device__ __forceinline__ void store2(gptr<T> to, uint32_t bits) {
  *reinterpret_cast<uint32_t*>(to) = bits;
}

// ---- Launch ------------------------------------------------------------------------------------

/// How many blocks a grid takes along y.
constexpr unsigned max_grid_y() { return 65535; }

using Stream = void*;  // a cudaStream_t

/// Starts kernel<<<grid, block, shared_bytes, stream>>>(args...); throws fa2::Error on a refusal.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes, Stream stream,
            const Args&... args) {
  const auto check = [&](cudaError_t status) {
    if (status != cudaSuccess)
      throw Error(std::string("the GPU refused the launch: ") + cudaGetErrorString(status) + " (" +
                  std::to_string(shared_bytes) + " bytes of shared memory per block)");
  };
  if (shared_bytes > static_cast<size_t>(shared_limit_of(860))) {
    // Code for an older architecture runs on a newer GPU, but large tiles are compiled only for
    // architectures that can have them (shared_limit).
    cudaFuncAttributes compiled{};
    check(cudaFuncGetAttributes(&compiled, kernel));
    if (shared_bytes > static_cast<size_t>(shared_limit_of(10 * compiled.ptxVersion)))
      throw Error("the library was compiled for sm_" + std::to_string(compiled.ptxVersion) +
                  ", without the tiles that need " + std::to_string(shared_bytes) +
                  " bytes of shared memory; compile it for this GPU, or choose --tiles same");
  }
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_bytes)));
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  check(cudaLaunchKernelEx(&config, kernel, Params(args)...));
}

}  // namespace fa2::inline on_gpu

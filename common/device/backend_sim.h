#pragma once
// The primitives on the simulator: the same names as in backend_cuda.h. Each takes the line it is
// called from as a last, defaulted argument, and hands its work to common/sim.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>

#include "common/device/error.h"
#include "common/device/problem.h"
#include "common/sim/collectives.h"
#include "common/sim/float16.h"
#include "common/sim/pointers.h"
#include "common/sim/primitives.h"
#include "common/sim/registers.h"

#define FA2_BACKEND on_sim
#define UNROLL

// ---- CUDA's own words ---------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
// A C++ compiler would make such a variable private to each thread, silently.
#define __shared__ this_course_declares_shared_memory_with_dyn_smem

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace fa2::sim {
inline dim3 to_dim3(const Index3& i) { return {i[0], i[1], i[2]}; }
}  // namespace fa2::sim

#define threadIdx (::fa2::sim::to_dim3(::fa2::sim::running_lane().thread))
#define blockIdx (::fa2::sim::to_dim3(::fa2::sim::block_index()))
#define blockDim (::fa2::sim::to_dim3(::fa2::sim::block_size()))
#define gridDim (::fa2::sim::to_dim3(::fa2::sim::grid_size()))

namespace fa2::inline on_sim {

using sim::bfloat16;
using sim::half;
using sim::Site;

// ---- Registers whose arithmetic is counted, by what they hold -----------------------------------

using sim::O_tag;
using sim::reg;
using sim::S_tag;
using sim::stat_tag;

// ---- Memory -------------------------------------------------------------------------------------

using sim::gptr;
using sim::sptr;

/// What an array in shared memory is for; its traffic is counted by it.
enum class Use { tiles, statistics, partial_o, barriers };

/// An array of `count` elements in the block's dynamic shared memory, `byte_offset` from its start.
/// Accesses through the result must stay inside it; `name` labels it in messages.
template <class T>
sptr<T> dyn_smem(int byte_offset, int count, Use use, const char* name, Site site = Site::here()) {
  const sim::SharedArray array{static_cast<uint32_t>(byte_offset),
                               static_cast<uint32_t>(count) * static_cast<uint32_t>(sizeof(T)),
                               sizeof(T), static_cast<int>(use), name};
  return {array.begin, sim::declare_array(array, site)};
}

/// The most shared memory of a block that code is compiled for; what the modelled GPU has is checked
/// at the launch.
constexpr int shared_limit = 227 * 1024;

// 16 bytes of shared memory moved as one access.
struct alignas(16) float4_t {
  float x, y, z, w;
};

// ---- Barriers -----------------------------------------------------------------------------------

inline void block_barrier(Site site = Site::here()) { sim::block_barrier(site); }
inline void warp_barrier(Site site = Site::here()) { sim::warp_barrier(sim::all_lanes, site); }

// ---- Warp collectives ---------------------------------------------------------------------------

/// `value` of the lane whose number differs in the bits of `lane_mask`.
template <class R>
R shuffle_xor(R value, int lane_mask, Site site = Site::here()) {
  return std::bit_cast<R>(
      sim::shuffle_xor(sim::all_lanes, std::bit_cast<uint32_t>(value), lane_mask, site));
}

/// `value` of lane 0, in every lane: for what all lanes have in common.
inline int from_lane_0(int value, Site site = Site::here()) {
  return std::bit_cast<int>(sim::shuffle(sim::all_lanes, std::bit_cast<uint32_t>(value), 0, site));
}

/// True in every lane if `condition` holds in some lane.
inline bool warp_any(bool condition, Site site = Site::here()) {
  return sim::ballot(sim::all_lanes, condition, site) != 0;
}

/// Four 8x8 matrices of 16-bit elements from shared memory. Lane l passes the address of row l % 8
/// of matrix l / 8; r[i] gets, from matrix i, the two elements of row lane / 4 at columns
/// 2 * (lane % 4) and the next. PTX ISA, ldmatrix.
template <class T>
void ldmatrix_x4(uint32_t (&r)[4], sptr<T> row, Site site = Site::here()) {
  static_assert(sizeof(T) == 2);
  sim::ldmatrix_x4(r, row.address, row.array, false, site);
}

/// The same with every 8x8 matrix transposed on the way.
template <class T>
void ldmatrix_x4_trans(uint32_t (&r)[4], sptr<T> row, Site site = Site::here()) {
  static_assert(sizeof(T) == 2);
  sim::ldmatrix_x4(r, row.address, row.array, true, site);
}

/// D = A B + C on a tensor core: A is 16x16, B 16x8, D and C 16x8 in fp32 (float, or reg of any
/// tag). PTX ISA, mma.m16n8k16.
template <class T, class RD, class RC>
void mma_m16n8k16(RD (&D)[4], const uint32_t (&A)[4], uint32_t B0, uint32_t B1, const RC (&C)[4],
                  Site site = Site::here()) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, bfloat16>);
  static_assert(sizeof(RD) == 4 && sizeof(RC) == 4);
  sim::mma_m16n8k16(std::is_same_v<T, half> ? sim::Mma16::fp16 : sim::Mma16::bf16,
                    reinterpret_cast<float*>(&D), A, B0, B1, reinterpret_cast<const float*>(&C),
                    site);
}

// ---- Asynchronous copies ------------------------------------------------------------------------

/// Starts copying 16 bytes from global to shared memory; writes zeros instead when !valid.
template <class T>
void cp_async_16(sptr<T> to, std::type_identity_t<gptr<const T>> from, bool valid,
                 Site site = Site::here()) {
  sim::copy_async(to.address, to.array, from.get(), from.home(), valid, site);
}

/// Closes the group of this thread's copies since the last commit.
inline void cp_async_commit() { ++sim::running_lane().groups; }

/// Waits until at most `Pending` of this thread's groups are still in flight. It says nothing about
/// other threads' copies: a barrier must follow before anyone reads them.
template <int Pending>
void cp_async_wait(Site site = Site::here()) {
  static_assert(Pending >= 0);
  sim::copy_wait(Pending, site);
}

// ---- mbarriers: counted barriers in shared memory -----------------------------------------------

inline void mbarrier_init(sptr<uint64_t> bar, int arrivals, Site site = Site::here()) {
  sim::mbarrier_init(bar.address, bar.array, arrivals, site);
}
inline void mbarrier_arrive(sptr<uint64_t> bar, Site site = Site::here()) {
  sim::mbarrier_arrive(bar.address, bar.array, false, site);
}

/// This thread arrives once all of its copies so far have landed (counted in the init's arrivals).
inline void cp_async_arrive(sptr<uint64_t> bar, Site site = Site::here()) {
  sim::mbarrier_arrive(bar.address, bar.array, true, site);
}

/// Waits until the phase with this parity (0 for the first) has completed.
inline void mbarrier_wait(sptr<uint64_t> bar, int parity, Site site = Site::here()) {
  sim::mbarrier_wait(bar.address, bar.array, parity, site);
}

/// `value`; on the GPU the compiler may not keep it in a register over a loop.
template <class Value>
inline Value recomputed(Value value) {
  return value;
}

// ---- Arithmetic ---------------------------------------------------------------------------------

/// 2^x, flushing denormals; exp2(-inf) = 0. Counted by what x is: a score, or a statistic.
template <class R>
R fast_exp2(R x) {
  if (sim::running() != nullptr) {
    fa2_counters& c = *sim::running()->counters;
    if constexpr (std::is_same_v<R, reg<S_tag>>) ++c.exp2_p;
    if constexpr (std::is_same_v<R, reg<stat_tag>>) ++c.exp2_stats;
  }
  return sim::exp2_flushed(x);
}

inline float fma(float a, float b, float c) { return sim::fma_rounded_once(a, b, c); }
template <class A, class B, class C>
requires sim::Counted<A, B, C> reg<sim::TagOf<A, B, C>> fma(A&& a, B&& b, C&& c) {
  sim::count<sim::TagOf<A, B, C>, sim::Flop::fma>();
  return sim::fma_rounded_once(std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
}

inline float max(float a, float b) { return sim::max(a, b); }  // drops a NaN
template <class A, class B>
requires sim::Counted<A, B> reg<sim::TagOf<A, B>> max(A&& a, B&& b) {
  return sim::max(std::forward<A>(a), std::forward<B>(b));
}

/// The largest of a, b and c, where a >= 0. (On the GPU they are compared as integers.)
inline float max_from_0(float a, float b, float c) { return sim::max_of_bits(a, b, c); }
template <class A, class B, class C>
requires sim::Counted<A, B, C> reg<sim::TagOf<A, B, C>> max_from_0(A&& a, B&& b, C&& c) {
  return sim::max_of_bits(std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
}

inline float log2(float x) { return sim::log2_of(x); }
template <class Tag>
reg<Tag> log2(reg<Tag> x) {
  return sim::log2_of(x);
}

/// 1 / x, counted as one normalisation; 0 for x = 0 (a row with no visible key stays 0).
template <class R>
R reciprocal_or_zero(R x) {
  sim::count_normalisation();
  const float value = x;
  return value == 0.f ? 0.f : 1.f / value;
}

/// Two values rounded to 16 bits and packed, the first in the low half.
template <class T>
uint32_t pack2(float low, float high) {
  return T(low).bits | uint32_t{T(high).bits} << 16;
}

/// Stores two packed 16-bit elements to global memory (4-byte aligned).
template <class T>
void store2(gptr<T> to, uint32_t bits, Site site = Site::here()) {
  std::memcpy(sim::global_access(to.get(), to.home(), 4, true, site), &bits, 4);
}

// ---- Launch -------------------------------------------------------------------------------------

/// How many blocks a grid takes along y.
inline unsigned max_grid_y() { return sim::max_grid_y(); }

using Stream = void*;  // ignored: a launch returns when its kernel has ended

/// The stream argument of launch(), which also learns the line of the call.
struct LaunchStream {
  Site site;
  LaunchStream(Stream, Site site = Site::here()) : site(site) {}
};

/// Runs kernel<<<grid, block, shared_bytes>>>(args...) on the current Session; throws
/// fa2::sim::Finding for what it catches.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes,
            LaunchStream stream, const Args&... args) {
  const auto call = [&] { kernel(Params(args)...); };
  sim::run_grid(
      {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes,
      reinterpret_cast<const void*>(kernel), stream.site,
      [](const void* c) { (*static_cast<const decltype(call)*>(c))(); }, &call);
}

}  // namespace fa2::inline on_sim

// ---- CUDA's own functions, for kernels that are written with them -------------------------------

inline void __syncthreads(fa2::sim::Site site = fa2::sim::Site::here()) {
  fa2::on_sim::block_barrier(site);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, fa2::sim::Site site = fa2::sim::Site::here()) {
  fa2::sim::warp_barrier(mask, site);
}
template <class R>
R __shfl_xor_sync(unsigned mask, R value, int lane_mask,
                  fa2::sim::Site site = fa2::sim::Site::here()) {
  return std::bit_cast<R>(
      fa2::sim::shuffle_xor(mask, std::bit_cast<uint32_t>(value), lane_mask, site));
}
template <class R>
R __shfl_sync(unsigned mask, R value, int source, fa2::sim::Site site = fa2::sim::Site::here()) {
  return std::bit_cast<R>(fa2::sim::shuffle(mask, std::bit_cast<uint32_t>(value), source, site));
}
inline unsigned __ballot_sync(unsigned mask, bool condition,
                              fa2::sim::Site site = fa2::sim::Site::here()) {
  return fa2::sim::ballot(mask, condition, site);
}
inline bool __any_sync(unsigned mask, bool condition,
                       fa2::sim::Site site = fa2::sim::Site::here()) {
  return fa2::sim::ballot(mask, condition, site) != 0;
}
inline bool __all_sync(unsigned mask, bool condition,
                       fa2::sim::Site site = fa2::sim::Site::here()) {
  return fa2::sim::ballot(mask, !condition, site) == 0;
}

#pragma once
// How K and V tiles come from global to shared memory while the tensor cores work. Every stage from
// 2 on uses it in the same way:
//
//   start(); for each j { K = wait_K(j); S = Q K^T; release_K(j); ...; V = wait_V(j); O += P V;
//                         release_V(j); }
//
// Depth 1 is the official code's: one buffer for K, one for V; V_j loads under Q K_j^T, and K_{j+1}
// loads under the softmax and P V_j. From depth 2 on each of K and V has a ring of buffers ordered
// by mbarriers instead of block barriers, so that warps may drift apart by up to depth - 1 tiles.
#include "common/device/attention.h"

namespace fa2::inline FA2_BACKEND {

template <class T, int d, int Bc, int warps, int depth>
class KvPipeline {
  static constexpr int threads = 32 * warps, tile_bytes = Bc * d * 2;

 public:
  static constexpr bool ring = depth > 1;
  static constexpr int bytes = 2 * depth * tile_bytes + (ring ? 4 * depth * 8 : 0);

  __device__ __forceinline__ KvPipeline(const Problem& p, const Head<T>& head, int smem, int count)
      : p_(p), head_(head), count_(count), smem_(smem) {
    if constexpr (ring) {
      if (threadIdx.x == 0)
        for (int s = 0; s < depth; ++s) {
          mbarrier_init(full(0, s), threads), mbarrier_init(full(1, s), threads);
          mbarrier_init(empty(0, s), warps), mbarrier_init(empty(1, s), warps);
        }
      block_barrier();  // nobody may use an mbarrier before it is initialized
    }
  }

  /// Starts the first copies. Copies that the thread has started before (Q) are waited for with K_0.
  __device__ __forceinline__ void start() {
    UNROLL for (int j = 0; j < (ring ? depth - 1 : 1); ++j) {
      load(0, j);
      if constexpr (ring) load(1, j);
    }
    if (count_ == 0) cp_async_wait<0>();  // no key is visible: nothing else will wait for Q
  }

  /// Returns K_j once it has landed.
  __device__ __forceinline__ SmemTile<T, d> wait_K(int j) {
    if constexpr (ring) {
      load(0, j + depth - 1);
      wait_full(0, j);
    } else {
      cp_async_wait<0>();
      block_barrier();  // K_j has landed for every thread's part; every warp is done with V_{j-1}
      load(1, j);
    }
    return tile(0, j);
  }

  /// This warp is done with K_j.
  __device__ __forceinline__ void release_K(int j) {
    if constexpr (ring) {
      arrive_empty(0, j);
    } else {
      block_barrier();  // every warp is done with K_j: its buffer may be overwritten
      load(0, j + 1);
    }
  }

  /// Returns V_j once it has landed.
  __device__ __forceinline__ SmemTile<T, d> wait_V(int j) {
    if constexpr (ring) {
      load(1, j + depth - 1);
      wait_full(1, j);
    } else {
      cp_async_wait<1>();
      block_barrier();  // V_j has landed for every thread's part
    }
    return tile(1, j);
  }

  /// This warp is done with V_j. (At depth 1 the barrier in wait_K(j + 1) says so.)
  __device__ __forceinline__ void release_V(int j) {
    if constexpr (ring) arrive_empty(1, j);
  }

 private:
  // which: 0 for K, 1 for V
  __device__ __forceinline__ SmemTile<T, d> tile(int which, int j) const {
    return smem_tile<T, d>(smem_ + (which * depth + j % depth) * tile_bytes, Bc,
                           which == 0 ? "K_smem" : "V_smem");
  }
  __device__ __forceinline__ sptr<uint64_t> barrier(int which, int slot, int kind) const {
    return dyn_smem<uint64_t>(smem_ + 2 * depth * tile_bytes, 4 * depth, Use::barriers,
                              "mbarriers") +
           ((kind * 2 + which) * depth + slot);
  }
  __device__ __forceinline__ sptr<uint64_t> full(int which, int slot) const {
    return barrier(which, slot, 0);
  }
  __device__ __forceinline__ sptr<uint64_t> empty(int which, int slot) const {
    return barrier(which, slot, 1);
  }

  __device__ __forceinline__ void load(int which, int j) {
    if (j < count_) {
      if (ring && j >= depth)  // the buffer's last tile must have been released by every warp
        mbarrier_wait(empty(which, j % depth), (j / depth + 1) % 2);
      const gptr<const T> from = which == 0 ? head_.K : head_.V;
      const int64_t stride = which == 0 ? p_.K.row : p_.V.row;
      load_tile<Bc, threads>(tile(which, j), from + int64_t{j} * Bc * stride, stride,
                             p_.Nk - j * Bc);
      if constexpr (ring) cp_async_arrive(full(which, j % depth));
    }
    if constexpr (!ring) cp_async_commit();  // also when empty, so that the waits can count groups
  }
  __device__ __forceinline__ void wait_full(int which, int j) {
    mbarrier_wait(full(which, j % depth), j / depth % 2);
  }
  __device__ __forceinline__ void arrive_empty(int which, int j) {
    warp_barrier();  // all lanes have read the tile
    if (lane_id() == 0) mbarrier_arrive(empty(which, j % depth));
  }

  const Problem& p_;
  const Head<T>& head_;
  int count_, smem_;
};

}  // namespace fa2::inline FA2_BACKEND

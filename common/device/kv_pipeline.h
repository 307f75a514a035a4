#pragma once
// How K and V tiles come from global to shared memory while the tensor cores work. Every stage from
// 2 on uses it in the same way:
//
//   start(); for each j { K = wait_K(j); S = Q K^T; release_K(j); ...; V = wait_V(j); O += P V;
//                         release_V(j); }
//
// Depth 1 is the official code's: one buffer for K, one for V; V_j loads under Q K_j^T, and K_{j+1}
// loads under the softmax and P V_j. From depth 2 on there is a ring of `depth` buffers, each for
// one K and one V tile, ordered by mbarriers instead of block barriers: after Q K_j^T the pair
// j + ahead begins to load. From depth 3 on one buffer more than that is left, so the load never
// waits for a warp that is less than a tile behind, and the warps drift apart: while one computes
// its softmax, another has the tensor cores.
#include "common/device/attention.h"

namespace fa2::inline FA2_BACKEND {

/// The shared memory of a KvPipeline, in bytes, and the mbarriers' part of it, which comes last.
__host__ __device__ constexpr int mbarrier_bytes(Tile t) {
  return t.depth > 1 ? 2 * t.depth * 8 : 0;
}
__host__ __device__ constexpr int kv_bytes(int d, Tile t) {
  return 2 * t.depth * t.Bc * d * 2 + mbarrier_bytes(t);
}

/// `use` counts a block's pipelines in one place, one after the other, from 0: an mbarrier is used for
/// one of them only, so each but the first needs mbarrier_bytes() more.
template <class T, int d, int Bc, int warps, int depth, int use = 0>
class KvPipeline {
  static constexpr int threads = 32 * warps, tile_bytes = Bc * d * 2;
  static constexpr bool ring = depth > 1, tall = warps > 4;
  static constexpr int ahead = depth > 2 ? depth - 2 : 1;

 public:
  __device__ __forceinline__ KvPipeline(const Problem& p, const Head<T>& head, int smem, int count)
      : p_(p),
        K_next_(tall ? own_part<d>(head.K, p.K.row) : head.K),
        V_next_(tall ? own_part<d>(head.V, p.V.row) : head.V),
        count_(count),
        smem_(smem) {
    if constexpr (ring) {
      if (threadIdx.x == 0)
        for (int slot = 0; slot < depth; ++slot) {
          mbarrier_init(full(slot), threads);
          mbarrier_init(empty(slot), threads);
        }
      block_barrier();  // nobody may use an mbarrier before it is initialized
    }
  }

  /// How many of the block's tiles a warp computes whose rows alone would visit `own`. With more
  /// than 4 warps a block has many rows; under a causal mask the upper ones see no key of the last
  /// tiles, and their warp only loads its part of these. With 4 there is little to leave out.
  __device__ __forceinline__ int tiles_of_warp(KeyTiles own) {
    static_assert(ring || !tall, "at depth 1 every warp has to come to each barrier");
    if constexpr (!tall) return count_;
    first_mask_ = from_lane_0(own.first_mask);
    return from_lane_0(own.count);
  }

  /// Whether tile j has to be masked: not all of its keys are seen by this warp's rows or, with 4
  /// warps, by the block's, which begin at `first_row`. (Kept, that answer would cost a register.)
  __device__ __forceinline__ bool hides_keys(int j, int first_row) const {
    return tall ? j >= first_mask_ : (j + 1) * Bc > visible_keys(p_, first_row);
  }

  /// Starts the first copies. Copies that the thread has started before (Q) are waited for with
  /// K_0.
  __device__ __forceinline__ void start() {
    if constexpr (ring)
      for (int j = 0; j < ahead; ++j) load_pair(j);
    else
      load_K(0);
    if (count_ == 0) {  // no key is visible: nothing else will wait for Q
      cp_async_commit();
      cp_async_wait<0>();
    }
  }

  /// Returns K_j once it has landed.
  __device__ __forceinline__ SmemTile<T, d> wait_K(int j) {
    if constexpr (ring) {
      mbarrier_wait(full(j % depth), j / depth % 2);  // K_j and V_j have landed
    } else {
      cp_async_wait<0>();
      block_barrier();  // K_j has landed for every thread's part; every warp is done with V_{j-1}
      load_V(j);
    }
    return K_tile(j);
  }

  /// This warp is done with K_j.
  __device__ __forceinline__ void release_K(int j) {
    if constexpr (ring) {
      load_pair(j + ahead);
    } else {
      block_barrier();  // every warp is done with K_j: its buffer may be overwritten
      load_K(j + 1);
    }
  }

  /// Returns V_j once it has landed.
  __device__ __forceinline__ SmemTile<T, d> wait_V(int j) {
    if constexpr (!ring) {
      cp_async_wait<1>();
      block_barrier();  // V_j has landed for every thread's part
    }
    return V_tile(j);
  }

  /// This lane is done with both tiles. (At depth 1 the barrier in wait_K(j + 1) says so.)
  __device__ __forceinline__ void release_V(int j) {
    if constexpr (ring) mbarrier_arrive(empty(j % depth));
  }

 private:
  __device__ __forceinline__ int start_of(int tile) const {
    const int start = smem_ + tile * tile_bytes;
    if constexpr (ring) return start;
    // At depth 1 a tile's addresses are the same in each step, and too many to keep in registers.
    return recomputed(start);
  }
  __device__ __forceinline__ SmemTile<T, d> K_tile(int j) const {
    return smem_tile<T, d>(start_of(2 * (j % depth)), Bc, "K_smem");
  }
  __device__ __forceinline__ SmemTile<T, d> V_tile(int j) const {
    return smem_tile<T, d>(start_of(2 * (j % depth) + 1), Bc, "V_smem");
  }
  __device__ __forceinline__ sptr<uint64_t> full(int slot) const {
    constexpr int count = 2 * depth;
    return dyn_smem<uint64_t>(smem_ + count * (tile_bytes + 8 * use), count, Use::barriers,
                              "mbarriers") +
           slot;
  }
  __device__ __forceinline__ sptr<uint64_t> empty(int slot) const { return full(slot) + depth; }

  // The copies are started in the order of the tiles. Past the last tile the groups stay empty, so
  // that the waits can count them.
  __device__ __forceinline__ void load_K(int j) {
    if (j < count_) load_tile<Bc, threads, tall>(K_tile(j), K_next_, p_.K.row, p_.Nk - j * Bc);
    K_next_ = K_next_ + Bc * p_.K.row;
    if constexpr (!ring) cp_async_commit();
  }
  __device__ __forceinline__ void load_V(int j) {
    if (j < count_) load_tile<Bc, threads, tall>(V_tile(j), V_next_, p_.V.row, p_.Nk - j * Bc);
    V_next_ = V_next_ + Bc * p_.V.row;
    if constexpr (!ring) cp_async_commit();
  }
  __device__ __forceinline__ void load_pair(int j) {
    if (j >= count_) return;
    const int slot = j % depth;
    // Every warp is done with the slot. (For the first `depth` tiles too: a fresh mbarrier is as if
    // a phase of parity 1 had just completed.)
    mbarrier_wait(empty(slot), (j / depth + 1) % 2);
    load_K(j);
    load_V(j);
    cp_async_arrive(full(slot));
  }

  const Problem& p_;
  // The next tiles; if tall, this thread's parts of them: fewer instructions per tile, but with 4
  // warps there are no registers for it.
  gptr<const T> K_next_, V_next_;
  int count_, smem_, first_mask_ = 0;
};

}  // namespace fa2::inline FA2_BACKEND

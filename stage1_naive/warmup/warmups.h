#pragma once
// The five warm-ups as functions of each machine. Every array is one that the machine can reach.

namespace fa2 {

/// What warm-up 4 can be told to forget.
enum class Mistake { none, no_wait, no_barrier };

#define FA2_WARMUPS(machine)                                               \
  inline namespace machine {                                               \
  void mma_fragments(const void* A, const void* B, float* out);            \
  void ldmatrix(const void* A, const void* B, float* out);                 \
  void swizzle(const void* A, float* out, bool swizzled);                  \
  void cp_async(const void* in, float* out, Mistake mistake);              \
  void online_softmax(const void* S, const void* V, float* out, int keys); \
  }
FA2_WARMUPS(on_sim)
#ifdef FA2_WITH_CUDA
FA2_WARMUPS(on_gpu)
#endif
#undef FA2_WARMUPS

}  // namespace fa2

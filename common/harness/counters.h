#ifndef FA2_COUNTERS_H
#define FA2_COUNTERS_H
/* What the simulator counts while a kernel runs: every number is the count of something that
 * executed, never a formula. Summed over all blocks of all launches of one forward call.
 * "per warp" means one for a warp-wide instruction, "per thread" one for each thread. */
#include <stdint.h>

#define FA2_COUNTERS(X)                                                                         \
  X(blocks, "thread blocks started")                                                            \
  X(global_load_bytes, "bytes requested from global memory, cp.async included")                 \
  X(global_store_bytes, "bytes stored to global memory")                                        \
  X(shared_load_bytes_tiles, "bytes read from the Q, K, V (and stage 1's P) tiles")             \
  X(shared_load_bytes_statistics, "bytes read from row statistics in shared memory")            \
  X(shared_load_bytes_partial_o, "bytes read from partial O in shared memory")                  \
  X(shared_store_bytes_tiles, "bytes written to tiles, cp.async included")                      \
  X(shared_store_bytes_statistics, "bytes written to row statistics in shared memory")          \
  X(shared_store_bytes_partial_o, "bytes written to partial O in shared memory")                \
  X(shared_wavefronts_tiles, "passes through the shared memory banks for tiles")                \
  X(shared_wavefronts_statistics, "the same for row statistics")                                \
  X(shared_wavefronts_partial_o, "the same for partial O")                                      \
  X(shared_wavefronts_ideal_tiles, "passes that the same requests need without bank conflicts") \
  X(shared_wavefronts_ideal_statistics, "the same for row statistics")                          \
  X(shared_wavefronts_ideal_partial_o, "the same for partial O")                                \
  X(block_barriers, "__syncthreads, one per block and arrival of all")                          \
  X(warp_syncs, "__syncwarp, per warp")                                                         \
  X(mbarrier_waits, "waits on an mbarrier, per warp")                                           \
  X(shuffles, "shuffle instructions, per warp")                                                 \
  X(votes, "vote instructions, per warp")                                                       \
  X(mma, "mma.m16n8k16, per warp")                                                              \
  X(ldmatrix, "ldmatrix.x4, per warp")                                                          \
  X(cp_async, "16-byte asynchronous copies, per thread")                                        \
  X(exp2_p, "exponentials of scores, per thread")                                               \
  X(exp2_stats, "exponentials for row statistics, per thread")                                  \
  X(normalisations, "reciprocals of a row sum, per thread")                                     \
  X(fp32_add_O, "additions on O and its partial products, per thread")                          \
  X(fp32_mul_O, "multiplications on O, per thread")                                             \
  X(fp32_fma_O, "fused multiply-adds on O, per thread")                                         \
  X(fp32_add_S, "additions on scores, per thread")                                              \
  X(fp32_mul_S, "multiplications on scores, per thread")                                        \
  X(fp32_fma_S, "fused multiply-adds on scores, per thread")                                    \
  X(fp32_add_stat, "additions on row statistics, per thread")                                   \
  X(fp32_mul_stat, "multiplications on row statistics, per thread")                             \
  X(fp32_fma_stat, "fused multiply-adds on row statistics, per thread")

typedef struct fa2_counters {
#define FA2_COUNTER_FIELD(name, meaning) uint64_t name;
  FA2_COUNTERS(FA2_COUNTER_FIELD)
#undef FA2_COUNTER_FIELD
} fa2_counters;

#endif

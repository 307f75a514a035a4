#pragma once
// What one attention call is: shapes, strides, tiles. Plain data, shared by host and device code.
#include <cstddef>
#include <cstdint>

namespace fa2 {

enum class Dtype : int { fp16 = 0, bf16 = 1 };

/// Strides of one [batch, head, row, d] tensor, in elements. The last dimension is contiguous.
struct Strides {
  int64_t batch, head, row;
};

/// One validated problem: O = softmax(scale * Q K^T) V and LSE = log(sum(exp(scale * Q K^T))).
/// Q and O are [batch, heads_q, Nq, d], K and V are [batch, heads_kv, Nk, d]; query head h reads
/// key/value head h / (heads_q / heads_kv). LSE is [batch, heads_q, Nq], fp32, contiguous.
/// A causal row i sees the keys j <= i + (Nk - Nq): the mask is aligned at the bottom right.
struct Problem {
  Dtype dtype;
  bool causal;
  int batch, heads_q, heads_kv;
  int Nq, Nk, d;
  float scale;
  Strides Q, K, V, O;
};

/// Device addresses of one call. `workspace` holds what a stage keeps in global memory (stage 1: S
/// and P); its size is the stage's workspace_bytes().
struct Tensors {
  const void *Q, *K, *V;
  void* O;
  float* LSE;
  void* workspace;
};

/// The tile of one kernel instance: Br rows of Q against Bc rows of K and V, `warps` warps per
/// block, `depth` buffers for K/V tiles (1: single-buffered, as in the official code).
struct Tile {
  int Br, Bc, warps, depth;
};

/// Which rows of a stage's tile table a run may use: `same` isolates the change of each stage,
/// `same_b` is the second common tile (stages 4-6), `tuned` is the best tile of each stage.
enum class TileMode : int { same = 0, same_b = 1, tuned = 2 };

/// One row of a stage's tile table. The first row of the wanted mode is taken whose head dim
/// matches, whose shared memory fits the GPU, and whose grid has at least `min_blocks_per_sm` blocks
/// per SM (a causal mask leaves half the work: it counts as half the blocks); failing the last
/// condition, the last row that fits. A kernel depends on d and the tile alone,
/// not on the mode: the tests run each tile once.
struct TileRow {
  TileMode mode;
  int d;
  Tile tile;
  int smem_bytes;
  float min_blocks_per_sm = 0;
};

}  // namespace fa2

#include "common/harness/tiles.h"

#include <algorithm>
#include <string>

#include "common/harness/failure.h"
#include "common/harness/shape.h"
#include "common/harness/text.h"

namespace fa2 {
namespace {

/// The row of exactly this mode, or -1.
int row_of_mode(const Variant& variant, TileMode mode, const Problem& p, const GpuLimits& gpu) {
  int chosen = -1;
  for (size_t i = 0; i < variant.tiles.size(); ++i) {
    const TileRow& row = variant.tiles[i];
    if (row.mode != mode || row.d != p.d || int64_t{row.smem_bytes} > gpu.shared_per_block)
      continue;
    chosen = static_cast<int>(i);
    const int64_t q_tiles = (int64_t{p.Nq} + row.tile.Br - 1) / row.tile.Br;
    const double blocks = static_cast<double>(p.batch) * p.heads_q * q_tiles / (p.causal ? 2 : 1);
    if (blocks >= static_cast<double>(row.min_blocks_per_sm) * gpu.sms) break;
  }
  return chosen;
}

/// The least shared memory that any row of this mode and head dim asks for, or -1 without a row.
int64_t least_shared(const Variant& variant, TileMode mode, int d) {
  int64_t least = -1;
  for (const TileRow& row : variant.tiles)
    if (row.mode == mode && row.d == d && (least < 0 || int64_t{row.smem_bytes} < least))
      least = row.smem_bytes;
  return least;
}

}  // namespace

const char* name_of(TileMode mode) {
  switch (mode) {
    case TileMode::same:
      return "same";
    case TileMode::same_b:
      return "same_b";
    case TileMode::tuned:
      return "tuned";
  }
  return "?";
}

int choose_tile(const char* stage, const Variant& variant, TileMode mode, const Problem& p,
                const GpuLimits& gpu) {
  int row = row_of_mode(variant, mode, p, gpu);
  if (row < 0 && mode == TileMode::tuned) row = row_of_mode(variant, TileMode::same, p, gpu);
  if (row >= 0) return row;
  const int64_t needed = least_shared(variant, mode, p.d);
  const std::string tile = std::string(stage) + " has no tile \"" + name_of(mode) +
                           "\" for head_dim " + std::to_string(p.d);
  if (needed < 0) throw Failure(FA2_UNSUPPORTED, tile + ".");
  throw Failure(FA2_UNSUPPORTED, tile + " that fits this GPU: it needs " + with_commas(needed) +
                                     " bytes of shared memory per block, the GPU has " +
                                     with_commas(gpu.shared_per_block) + ".");
}

int64_t visible_keys(const Problem& p, int64_t row) {
  const int64_t limit = p.causal ? row + 1 + p.Nk - p.Nq : p.Nk;
  return std::clamp<int64_t>(limit, 0, p.Nk);
}

int64_t visited_tiles(const Problem& p, int Br, int Bc) {
  int64_t pairs = 0;
  for (int64_t first = 0; first < p.Nq; first += Br) {
    const int64_t last = std::min<int64_t>(first + Br, p.Nq) - 1;
    pairs += (visible_keys(p, last) + Bc - 1) / Bc;
  }
  return pairs * p.batch * p.heads_q;
}

}  // namespace fa2

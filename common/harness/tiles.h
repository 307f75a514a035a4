#pragma once
// Which tile a call uses, and how many tiles it visits.
#include <cstdint>

#include "common/device/problem.h"
#include "common/device/stage.h"

namespace fa2 {

/// What of a GPU the choice of a tile depends on.
struct GpuLimits {
  int shared_per_block;  // bytes
  int sms;
};

/// The row of the variant's tile table that a call uses: the first of this mode whose head dim
/// matches, whose shared memory fits, and whose grid has at least min_blocks_per_sm blocks per SM;
/// failing the last condition, the last row that fits. `tuned` without a fitting row of its own
/// uses `same`. Throws Failure with a sentence that names `stage` if no row fits.
int choose_tile(const char* stage, const Variant& variant, TileMode mode, const Problem& problem,
                const GpuLimits& gpu);

/// How many keys row i sees.
int64_t visible_keys(const Problem& problem, int64_t row);

/// How many (q tile, kv tile) pairs hold a visible key, over all batches and heads: the T of the
/// closed forms.
int64_t visited_tiles(const Problem& problem, int Br, int Bc);

/// The name of a mode, as on the command line.
const char* name_of(TileMode mode);

}  // namespace fa2

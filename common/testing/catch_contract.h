#pragma once
// The contract as Catch2 checks: what every stage's test.cpp calls.
#include <functional>

#include "common/harness/run.h"

namespace fa2::testing {

/// Calls `check` for every machine that can run the stage here (the simulator, and a GPU if there
/// is one), every variant, and every distinct row of its tile table.
void for_each_kernel(
    const char* stage,
    const std::function<void(Device&, const Stage&, const Variant&, int tile_row)>& check);

/// The whole contract: shapes, masks, heads, strides, scales, inputs, NaN. On the simulator the
/// stage's first kernel gets all of it, each other tile and variant a third.
void check_contract(const char* stage);

/// The cases that users of attention kernels reported as broken, each under its name; on the
/// simulator with the first tile only.
void check_reported_cases(const char* stage);

/// Same bits in any batch, with any number of OS threads and any order of simulated threads: of the
/// first variant with every tile, of the others on the simulator with the first.
void check_reproducible(const char* stage);

/// Random problems for about this many seconds on a GPU, a third of them on the simulator.
void check_random_problems(const char* stage, double seconds);

/// What a stage counts on the simulator for a correct run of this problem, with the `same` tile of
/// `variant` ("": its first). `tile` (may be null) receives it.
fa2_counters count(const char* stage, const Spec& spec, Tile* tile = nullptr,
                   const char* variant = "");

}  // namespace fa2::testing

#pragma once
// Running a stage on a workload: checked, counted, timed.
#include "common/harness/call.h"
#include "common/harness/judge.h"
#include "common/harness/workload.h"

namespace fa2 {

struct Outcome {
  Verdict verdict;
  fa2_counters counters{};  // zero on a GPU
  TileRow tile{};           // the tile that ran
  size_t workspace_bytes = 0;
};

/// Runs one stage once on poisoned outputs and judges the result. Throws Failure if the stage
/// cannot run here, and Error (a Finding of the simulator) if the kernel is at fault.
Outcome run_checked(Device& device, const Stage& stage, const Variant& variant, TileMode mode,
                    const Workload& workload);

/// The same with a given row of the variant's tile table.
Outcome run_checked(Device& device, const Stage& stage, const Variant& variant, int tile_row,
                    const Workload& workload);

/// What a stage writes, unjudged.
Outputs run_once(Device& device, const Stage& stage, const Variant& variant, int tile_row,
                 const Workload& workload, fa2_counters* counters = nullptr);

/// Times a stage on a GPU. As many copies of the buffers take turns as the L2 cache needs to hold
/// none of them, if memory allows.
Timing run_timed(Device& device, const Stage& stage, const Variant& variant, TileMode mode,
                 const Workload& workload, const TimingOptions& options = {});

/// 4 Nq Nk d per batch and query head, halved when causal: the convention of every report here.
double flops(const Problem& problem);

}  // namespace fa2

#include "common/harness/run.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace fa2 {
namespace {

/// How many copies of the buffers a timing uses.
int input_sets(const DeviceInfo& info, size_t bytes_per_set) {
  if (info.L2_bytes == 0 || bytes_per_set == 0) return 1;
  const size_t for_L2 = 2 * info.L2_bytes / bytes_per_set + 1;
  const size_t for_memory = info.memory_bytes / 2 / bytes_per_set;
  return static_cast<int>(std::clamp<size_t>(for_L2, 1, std::clamp<size_t>(for_memory, 1, 64)));
}

size_t tensor_bytes(const Workload& workload) {
  const InputTensors& x = workload.inputs();
  return 2 * x.Q.raw_bytes() + x.K.raw_bytes() + x.V.raw_bytes();  // O is as large as Q
}

Outputs run_planned(Device& device, Call call, const Workload& workload, fa2_counters* counters) {
  Buffers buffers(device, workload, call.workspace_bytes);
  buffers.poison_outputs();
  call.tensors = buffers.tensors();
  device.run(call, counters);
  return buffers.download();
}

Outcome run_and_judge(Device& device, const Call& call, const Workload& workload) {
  Outcome outcome;
  const Outputs outputs = run_planned(device, call, workload, &outcome.counters);
  outcome.tile = call.variant->tiles[call.tile_row];
  outcome.workspace_bytes = call.workspace_bytes;
  outcome.verdict = judge(workload, outputs, outcome.tile.tile);
  return outcome;
}

}  // namespace

Outcome run_checked(Device& device, const Stage& stage, const Variant& variant, TileMode mode,
                    const Workload& workload) {
  const GpuLimits& gpu = device.info().limits;
  return run_and_judge(device, plan_call(stage, variant, mode, workload.problem(), gpu), workload);
}

Outcome run_checked(Device& device, const Stage& stage, const Variant& variant, int tile_row,
                    const Workload& workload) {
  return run_and_judge(device, plan_call(stage, variant, tile_row, workload.problem()), workload);
}

Outputs run_once(Device& device, const Stage& stage, const Variant& variant, int tile_row,
                 const Workload& workload, fa2_counters* counters) {
  return run_planned(device, plan_call(stage, variant, tile_row, workload.problem()), workload,
                     counters);
}

Timing run_timed(Device& device, const Stage& stage, const Variant& variant, TileMode mode,
                 const Workload& workload, const TimingOptions& options) {
  const Call plan = plan_call(stage, variant, mode, workload.problem(), device.info().limits);
  const int sets = input_sets(device.info(), tensor_bytes(workload) + plan.workspace_bytes);
  std::vector<std::unique_ptr<Buffers>> buffers;
  std::vector<Call> calls;
  for (int i = 0; i < sets; ++i) {
    buffers.push_back(
        std::make_unique<Buffers>(device, workload, plan.workspace_bytes, Placement::aligned));
    calls.push_back(plan);
    calls.back().tensors = buffers.back()->tensors();
  }
  return device.time(calls, options);
}

double flops(const Problem& p) {
  const double all = 4.0 * p.batch * p.heads_q * p.Nq * p.Nk * p.d;
  return p.causal ? all / 2 : all;
}

}  // namespace fa2

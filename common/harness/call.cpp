#include "common/harness/call.h"

#include "common/harness/failure.h"
#include "common/harness/validate.h"

namespace fa2 {

DeviceOptions device_options(const fa2_options& options) {
  DeviceOptions out;
  out.backend = static_cast<Backend>(options.backend);
  out.gpu = options.gpu == nullptr ? "" : options.gpu;
  out.os_threads = options.os_threads;
  out.order = options.order;
  out.seed = options.seed;
  return out;
}

DeviceInfo device_info(const DeviceOptions& options) {
  return options.backend == Backend::sim ? sim_info(options) : cuda_info();
}

Call plan_call(const fa2_problem* problem, const fa2_options* options) {
  validate_options(options);
  const Problem p = validate(problem);
  if (options->stage == nullptr || options->stage[0] == '\0')
    invalid("options.stage is empty; it must name a stage, as \"stage2_fa1\" or \"2\".");
  const DeviceInfo info = device_info(device_options(*options));
  const Stage& stage = find_stage(info.backend, options->stage);
  const Variant& variant = find_variant(stage, options->variant == nullptr ? "" : options->variant);
  return plan_call(stage, variant, static_cast<TileMode>(options->tile_mode), p, info.limits);
}

Call plan_call(const Stage& stage, const Variant& variant, TileMode mode, const Problem& p,
               const GpuLimits& gpu) {
  Call call{};
  call.stage = stage.name;
  call.variant = &variant;
  call.problem = p;
  call.tile_row = choose_tile(stage.name, variant, mode, p, gpu);
  call.workspace_bytes = variant.workspace_bytes(p);
  return call;
}

}  // namespace fa2

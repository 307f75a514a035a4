#include "common/harness/call.h"

#include <string>

#include "common/harness/failure.h"
#include "common/harness/text.h"
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
  return plan_call(stage, variant, choose_tile(stage.name, variant, mode, p, gpu), p);
}

Call plan_call(const Stage& stage, const Variant& variant, int tile_row, const Problem& p) {
  if (tile_row < 0 || static_cast<size_t>(tile_row) >= variant.tiles.size() ||
      variant.tiles[tile_row].d != p.d)
    invalid(std::string(stage.name) + " has no tile row " + std::to_string(tile_row) +
            " for head_dim " + std::to_string(p.d) + ".");
  const int64_t Br = variant.tiles[tile_row].tile.Br;
  const int64_t blocks = int64_t{p.batch} * p.heads_q * ((p.Nq + Br - 1) / Br);
  if (blocks > INT32_MAX)
    throw Failure(FA2_UNSUPPORTED, "batch * heads_q * query tiles is " + with_commas(blocks) +
                                       "; a GPU takes at most 2,147,483,647 blocks.");
  return {stage.name, &variant, tile_row, p, {}, variant.workspace_bytes(p)};
}

}  // namespace fa2

#pragma once
// From what a caller of the C interface passes to a call that is ready to launch.
#include "common/harness/device.h"
#include "common/harness/fa2.h"

namespace fa2 {

/// The machine that these options mean. Throws Failure for a GPU that the simulator does not know.
DeviceOptions device_options(const fa2_options& options);

/// What the machine is, without making it ready.
DeviceInfo device_info(const DeviceOptions& options);

/// The call without its tensors: everything but memory is validated, the tile is chosen, and
/// workspace_bytes is what the stage needs. Throws Failure.
Call plan_call(const fa2_problem* problem, const fa2_options* options);

/// The same for a stage that need not be in the registry.
Call plan_call(const Stage& stage, const Variant& variant, TileMode mode, const Problem& problem,
               const GpuLimits& gpu);

/// The same with a given row of the variant's tile table.
Call plan_call(const Stage& stage, const Variant& variant, int tile_row, const Problem& problem);

}  // namespace fa2

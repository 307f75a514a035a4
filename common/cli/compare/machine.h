#pragma once
// The machine that the comparison runs on, and which stages of it.
#include <memory>
#include <string>
#include <vector>

#include "common/cli/compare/options.h"
#include "common/harness/device.h"
#include "common/sim/gpu_models.h"

namespace fa2::compare {

struct Machine {
  std::unique_ptr<Device> device;
  std::string remark;  // why the simulator and not a GPU, where nobody chose; else empty
};

/// The backend asked for; a GPU if nobody asked and one is usable; else the simulator. Throws
/// fa2::Error.
Machine choose_machine(const Options& o);

const char* backend_name(const Device& device);  // "sim" or "cuda"

/// The simulated GPU with this key; "" is the default. Throws fa2::Error naming the known ones.
const sim::GpuModel& model_of(const std::string& key);

/// What every record of this run carries.
Environment environment_of_run(const Device& device, const Options& o);

/// Blocks / blocks that the simulated GPU holds at a time, as shared memory and threads limit them.
double waves_of(uint64_t blocks, const TileUsed& tile, const std::string& gpu_key);

/// A stage with one of its variants: a row of every table.
struct Entry {
  const Stage* stage;
  const Variant* variant;
};

/// The stages asked for, in the order of the course. Throws fa2::Error if one is not built in.
std::vector<Entry> entries_of(const Options& o, Backend backend);

}  // namespace fa2::compare

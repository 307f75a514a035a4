#pragma once
// The GPUs whose limits the simulator can hold a kernel against.
#include <span>
#include <string>
#include <string_view>

namespace fa2::sim {

struct GpuModel {
  const char* key;
  const char* name;
  int sms;
  int shared_per_block, shared_per_sm;  // bytes; 1 KiB of every block's share is the system's
  int max_threads_per_sm, max_blocks_per_sm, regs_per_sm;
  int cc;  // compute capability, times 10
};

/// All models; the first is the default.
std::span<const GpuModel> gpu_models();

/// The model with this key, or null.
const GpuModel* find_gpu(std::string_view key);

/// "h200, a100, ...", for messages.
std::string gpu_keys();

}  // namespace fa2::sim

#include "common/sim/gpu_models.h"

namespace fa2::sim {
namespace {

constexpr int KiB = 1024;

// Limits per compute capability: CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability". SMs: NVIDIA's H200, A100 and L4 datasheets, and the GA102 and AD102 whitepapers.
constexpr GpuModel models[] = {
    {"h200", "NVIDIA H200", 132, 227 * KiB, 228 * KiB, 2048, 32, 65536, 90},
    {"a100", "NVIDIA A100", 108, 163 * KiB, 164 * KiB, 2048, 32, 65536, 80},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 128, 99 * KiB, 100 * KiB, 1536, 24, 65536, 89},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 82, 99 * KiB, 100 * KiB, 1536, 16, 65536, 86},
    {"l4", "NVIDIA L4", 58, 99 * KiB, 100 * KiB, 1536, 24, 65536, 89},
};

}  // namespace

std::span<const GpuModel> gpu_models() { return models; }

const GpuModel* find_gpu(std::string_view key) {
  for (const GpuModel& model : models)
    if (key == model.key) return &model;
  return nullptr;
}

std::string gpu_keys() {
  std::string keys;
  for (const GpuModel& model : models) keys += (keys.empty() ? "" : ", ") + std::string(model.key);
  return keys;
}

}  // namespace fa2::sim

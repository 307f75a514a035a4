#include "common/cli/compare/peaks.h"

namespace fa2::compare {
namespace {

struct Peak {
  const char* part_of_name;
  double tflops;
};

// NVIDIA's datasheets of H100, H200, A100 and L4 (half of the figure with sparsity where only that
// is given); whitepapers of GA102 (Ampere) and AD102 (Ada) for the GeForce cards. The first match
// counts.
constexpr Peak peaks[] = {
    {"H200", 989.4},      {"H100 PCIe", 756.5},        {"H100", 989.4},
    {"A100", 312.0},      {"GeForce RTX 4090", 165.2}, {"GeForce RTX 3090", 71.0},
    {"NVIDIA L4", 121.0},
};

}  // namespace

double datasheet_tflops(const std::string& gpu) {
  for (const Peak& peak : peaks) {
    const std::string part = peak.part_of_name;
    const size_t at = gpu.find(part);
    // "NVIDIA L4" is not "NVIDIA L40S", "RTX 3090" not "RTX 3090 Ti".
    const bool whole =
        at != gpu.npos && (at + part.size() == gpu.size() || gpu[at + part.size()] == ' ' ||
                           gpu[at + part.size()] == '-');
    if (whole && gpu.find(" Ti", at) == gpu.npos) return peak.tflops;
  }
  return 0;
}

}  // namespace fa2::compare

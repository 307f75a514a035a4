#include "common/cli/compare/peaks.h"

#include <algorithm>
#include <iterator>

namespace fa2::compare {
namespace {

struct Peak {
  const char* part_of_name;
  double tflops;
};

// Addresses of the sources: common/python/fa2course/predict/gpus.py. The first match counts.
constexpr Peak peaks[] = {
    // nvidia.com/en-us/data-center/h200: 1,979 with sparsity, as the H100 SXM.
    {"H200", 989.4},
    // H100 whitepaper v1.04, Table 3, "Peak FP16 Tensor TFLOPS with FP32 Accumulate".
    {"H100 PCIe", 756},
    {"H100", 989.4},
    // A100 whitepaper, Table 4, the same row.
    {"A100", 312.0},
    // Whitepapers of Ada v2.1 and GA102 v2, Appendix A, the same row: half of fp16 accumulation.
    {"GeForce RTX 4090", 165.2},
    {"GeForce RTX 3090", 71.0},
    // nvidia.com/en-us/data-center/l4: 242 with sparsity. Not confirmed for fp32 accumulation.
    {"NVIDIA L4", 121.0},
};

// A name that goes on like this is another GPU, or a part of one.
constexpr const char* others[] = {" Ti", " D", " Laptop", " NVL", " MIG"};

}  // namespace

double datasheet_tflops(const std::string& gpu) {
  for (const Peak& peak : peaks) {
    const std::string part = peak.part_of_name;
    const size_t at = gpu.find(part);
    if (at == gpu.npos) continue;
    // "NVIDIA L4" is not "NVIDIA L40S", "H200" not "GH200".
    const size_t end = at + part.size();
    const bool whole = (at == 0 || gpu[at - 1] == ' ') &&
                       (end == gpu.size() || gpu[end] == ' ' || gpu[end] == '-');
    const auto goes_on = [&](const char* other) { return gpu.find(other, end) != gpu.npos; };
    if (whole && std::none_of(std::begin(others), std::end(others), goes_on)) return peak.tflops;
  }
  return 0;
}

}  // namespace fa2::compare

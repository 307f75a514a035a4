#pragma once
// For each warm-up one set of inputs and the right answer, and how to run it.
#include <string>
#include <vector>

#include "common/harness/counters.h"

namespace fa2::warmup {

using Launch = void (*)(const void* const* in, float* out);

struct Case {
  std::string name;
  std::vector<std::vector<char>> in;  // the bytes of each input array
  std::vector<float> right;           // what must come out
  Launch on_sim, on_gpu;              // on_gpu is null where the course is built without CUDA
};

/// The warm-ups in order; 3 twice, without and with the swizzle.
std::vector<Case> cases();

/// Warm-up 4 without its wait, and without its barrier. Only for the simulator.
std::vector<Case> mistakes();

struct Result {
  std::vector<float> out;
  fa2_counters counters{};
  std::string finding{};  // what the simulator caught; "" if nothing
};
Result run_on_sim(const Case& c);

/// Only where the course is built with CUDA. Empty if there is no GPU; throws std::runtime_error.
std::vector<float> run_on_gpu(const Case& c);

/// "" if `out` is right, else a sentence that names the first wrong element.
std::string judge(const Case& c, const std::vector<float>& out);

}  // namespace fa2::warmup

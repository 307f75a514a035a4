#pragma once
// Many random problems on many kernels, on all cores.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/cli/fuzz/options.h"
#include "common/testing/fuzz.h"

namespace fa2::fuzzing {

/// A row of the report.
struct Kernel {
  const Stage* stage;
  const Variant* variant;
  int64_t run = 0, skipped = 0;
};

/// "stage6_fa2_deferred lazy".
std::string label(const Kernel& kernel);

/// The kernels that the options name. Throws Error if there are none.
std::vector<Kernel> kernels_of(const Options& options);

struct Outcome {
  std::vector<Kernel> kernels;
  int64_t run = 0, skipped = 0;
  size_t failed_kernel = 0;  // with a failure
  std::optional<testing::FuzzFailure> failure;
};

/// The problem of each seed goes to one of the kernels in turn. The first failure, by seed among
/// those that ran, is shrunk. `progress` is called twice a second with the number of problems done.
Outcome run(const Options& options, std::vector<Kernel> kernels,
            const std::function<void(int64_t)>& progress);

/// The command that runs the failing problem again, and no other.
std::string again(const Options& options, const Kernel& kernel, uint64_t seed);

}  // namespace fa2::fuzzing

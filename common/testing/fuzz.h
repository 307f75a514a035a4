#pragma once
// Random problems over the whole contract, reproducible from a seed, failures made small.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/testing/contract.h"

namespace fa2::testing {

/// How large a random problem may get.
struct FuzzLimits {
  int64_t seqlen = 300;
  int64_t heads = 6;
  int64_t batch = 3;
  double products = 3e7;  // batch * heads_q * Nq * Nk * d at most
};
FuzzLimits default_limits(Backend backend);

/// The problem that belongs to a seed, with head dim 64 or 128.
Spec random_spec(uint64_t seed, const FuzzLimits& limits);

/// One random problem and what came of it.
struct FuzzResult {
  uint64_t seed = 0;  // random_spec(seed) is the problem
  Spec spec;
  int tile_row = -1;
  bool skipped = false;  // could not run on this machine
  std::string message;   // "" unless it is wrong
};

/// Runs the problem of a seed on a row of the variant's tile table, which the seed picks as well.
FuzzResult fuzz_one(Device& device, const Stage& stage, const Variant& variant, uint64_t seed,
                    const FuzzLimits& limits);

struct FuzzOptions {
  uint64_t seed = 1;
  int64_t count = 1000;  // problems
  double seconds = 1e9;  // stop after about this long
  std::string variant;   // "": the first
};

struct FuzzFailure {
  uint64_t seed;      // of the problem that failed: random_spec(seed) makes it again
  Spec found, small;  // as drawn, and shrunk
  int tile_row;
  std::string message;  // about the small one
};

/// A wrong result, its problem made small.
FuzzFailure shrunk_failure(Device& device, const Stage& stage, const Variant& variant,
                           const FuzzResult& wrong);

struct FuzzReport {
  int64_t run = 0, skipped = 0;  // skipped: could not run on this machine
  std::optional<FuzzFailure> failure;
};

/// Runs random problems with random rows of the stage's tile table until one fails. `progress` (may
/// be empty) is called before each problem with the number of those done.
FuzzReport fuzz(Device& device, const Stage& stage, const FuzzOptions& options,
                const std::function<void(int64_t)>& progress = {});

/// A failing problem made as small and plain as it can be and still fail. `fails` says whether.
Spec shrink(Spec spec, const std::function<bool(const Spec&)>& fails);

/// What a person needs to see of a failure.
std::string to_text(const FuzzFailure& failure, const Stage& stage);

}  // namespace fa2::testing

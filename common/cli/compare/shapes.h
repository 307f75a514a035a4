#pragma once
// Which problems are compared.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/cli/compare/record.h"

namespace fa2::compare {

/// Sizes from the command line; every combination of them is a shape. What is not given takes the
/// backend's default.
struct ShapeRequest {
  std::optional<int64_t> batch, heads, heads_kv, seqlen_k;
  std::vector<int64_t> seqlens, headdims;
  std::vector<bool> causal;  // empty: both

  bool has_sizes() const;
};

/// The shapes asked for: on the simulator small ones that tell the story, on a GPU real ones.
/// Throws fa2::Error with the sentence of the library's own validation, or one that says that a
/// shape is empty or much too large for the simulator.
std::vector<Shape> shapes_of(const ShapeRequest& request, const std::string& backend);

/// About how long the simulator takes for one stage, in seconds on one core.
double simulator_seconds(const Shape& s);

}  // namespace fa2::compare

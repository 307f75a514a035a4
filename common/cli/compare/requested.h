#pragma once
#include <optional>

#include "common/cli/compare/record.h"

namespace fa2::compare {

/// The bytes that a stage requests of global memory, where a GPU does not count them: stages 2 to
/// 6, for which a test holds this against the simulator's counters. Nothing for the others, nor for
/// variants beside a stage.
std::optional<double> requested_bytes_of(const Record& r);

}  // namespace fa2::compare

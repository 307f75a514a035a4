#pragma once
// The memory of the machine that this program runs on.
#include <cstdint>
#include <optional>

namespace fa2 {

/// Bytes of host memory that are free, or none if the system does not tell.
std::optional<int64_t> free_host_memory();

/// Throws Failure (FA2_UNSUPPORTED) if this much is not free: the system hands memory out before it
/// is there, and ends a program that then uses it. `what` begins the sentence.
void require_host_memory(const char* what, int64_t bytes);

}  // namespace fa2

#pragma once
// Every check of a caller's arguments, made before anything is launched. The sentences name the
// argument, its value and what is accepted, and are the same from C, C++ and Python.
#include <cstddef>
#include <cstdint>

#include "common/device/problem.h"
#include "common/harness/fa2.h"

namespace fa2 {

inline constexpr int64_t max_count = INT32_MAX;  // batch, heads
inline constexpr int64_t max_seqlen = int64_t{1} << 30;
inline constexpr int64_t max_work = int64_t{1} << 58;  // elements of a tensor, entries of S

/// The problem with its strides and scale filled in. Throws Failure.
Problem validate(const fa2_problem* problem);

/// Refuses pointers that are null, misaligned, or an O that is also an input. Throws Failure.
void validate_tensors(const Problem& problem, const Tensors& tensors);

/// Refuses a workspace that is too small. Throws Failure.
void validate_workspace(const char* stage, size_t needed, const void* workspace, size_t bytes);

/// Refuses options of another version of this library or with unknown values. Throws Failure.
void validate_options(const fa2_options* options);

}  // namespace fa2

#pragma once
// Stages by name. The list itself is generated: common/harness/stage_list.h.
#include <span>
#include <string_view>

#include "common/device/stage.h"

namespace fa2 {

enum class Backend : int { sim = 0, cuda = 1 };

/// "sim" or "cuda".
const char* name_of(Backend backend);

/// The stages that are built in for this backend; empty for CUDA in a build without it.
std::span<const Stage* const> stages(Backend backend);

/// The stage with this name or number ("stage2_fa1", "2"). Throws Failure naming the known ones.
const Stage& find_stage(Backend backend, std::string_view name);

/// The variant with this name; "" is the first one. Throws Failure naming the known ones.
const Variant& find_variant(const Stage& stage, std::string_view name);

}  // namespace fa2

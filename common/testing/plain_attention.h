#pragma once
// Attention as plain host code behind the interface of a stage: right, or wrong in one chosen way.
// The wrong ones prove that the checks reject what they must; the right one, that they accept.
#include <span>

#include "common/device/stage.h"

namespace fa2::testing {

struct PlainStage {
  Stage stage;
  const char* mistake;  // "" for the right one
};

/// All of them; the first is right. They run on the simulator's Device, without simulating
/// anything.
std::span<const PlainStage> plain_stages();

}  // namespace fa2::testing

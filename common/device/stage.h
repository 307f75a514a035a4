#pragma once
// What every stage's kernel.cu gives to the harness.
#include <span>

#include "common/device/problem.h"

namespace fa2 {

/// One row of every report: a way to run a stage. Most stages have one; stage 6 has two.
struct Variant {
  const char* name;                             // "" for a stage with a single variant
  std::span<const TileRow> tiles;               // the stage's tile table
  size_t (*workspace_bytes)(const Problem& p);  // global memory the caller lends, 0 for most
  void (*forward)(const Problem& p, const Tensors& x, int tile_row, void* stream);
};

/// For stages that keep nothing in global memory.
inline size_t no_workspace(const Problem&) { return 0; }

struct Stage {
  const char* name;  // its folder, or folder/variant file
  int number;        // 1 to 6
  std::span<const Variant> variants;
};

}  // namespace fa2

/// Defines the stage that a kernel.cu exports: FA2_STAGE(stage2_fa1) = {"stage2_fa1", 2, variants};
#define FA2_STAGE(symbol)    \
  extern const Stage symbol; \
  const Stage symbol

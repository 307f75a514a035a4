#pragma once
// Launching a kernel: its blocks over the OS threads of the current session.
#include "common/sim/machine.h"

namespace fa2::sim {

/// Runs every block, and adds what it counted to the session. Throws Finding for a mistake of the
/// kernel or of the launch, always that of the lowest block, and Error if there is no session.
void run_grid(const Index3& grid, const Index3& block, size_t shared_bytes, const void* kernel,
              Site site, void (*body)(const void*), const void* arguments);

/// How many blocks a grid of the current session takes along y.
unsigned max_grid_y();

}  // namespace fa2::sim

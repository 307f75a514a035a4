#pragma once
// What a kernel's own code needs of the simulator. Every kernel is compiled with it, so it is short:
// the machine behind these functions (machine.h) is compiled once. Each does its work for the lane
// that runs on this OS thread, and notes the line of source that called it.
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/device/error.h"
#include "common/harness/counters.h"
#include "common/sim/site.h"

namespace fa2::sim {

struct GlobalArray;

using Index3 = std::array<unsigned, 3>;

/// The part of a lane that its kernel looks at; lane.h has the rest.
struct RunningLane {
  fa2_counters* counters = nullptr;  // of the block
  Index3 thread{};                   // threadIdx
  uint32_t groups = 0;               // cp.async groups committed so far
};

/// The lane that runs on this OS thread, or null outside of kernels. To the compiler the place is a
/// constant, as that of errno is: no kernel moves to another OS thread. (Kernels that read a
/// thread_local variable are a quarter slower, or, with the model initial-exec, in a library that
/// cannot be loaded once PyTorch is: it leaves no room in the static TLS block.)
[[gnu::const]] RunningLane*& running();

[[noreturn]] void fail_outside_of_kernels();  // throws Error

/// The same where there must be one.
inline RunningLane& running_lane() {
  if (running() == nullptr) [[unlikely]]
    fail_outside_of_kernels();
  return *running();
}

Index3 block_index();
Index3 block_size();
Index3 grid_size();

/// An array that a kernel has laid out in the block's shared memory.
struct SharedArray {
  uint32_t begin = 0, bytes = 0, element_bytes = 1;
  int use = 0;
  const char* name = "";
};

/// Returns the array's number, which accesses name.
uint32_t declare_array(const SharedArray& array, Site site);
/// Checks and counts one access; returns where the bytes are.
std::byte* shared_access(uint32_t address, uint32_t array, uint32_t bytes, bool write, Site site);

/// The array that an address lies in; null if there is none, or no kernel runs.
const GlobalArray* find_global(const void* address);
/// Checks and counts one access; returns `address`.
std::byte* global_access(const void* address, const GlobalArray* home, uint32_t bytes, bool write,
                         Site site);

void block_barrier(Site site);

void copy_async(uint32_t to, uint32_t array, const void* from, const GlobalArray* home, bool valid,
                Site site);
void copy_wait(uint32_t pending_groups, Site site);

void mbarrier_init(uint32_t address, uint32_t array, int arrivals, Site site);
/// `after_copies`: once the lane's copies so far have landed.
void mbarrier_arrive(uint32_t address, uint32_t array, bool after_copies, Site site);
void mbarrier_wait(uint32_t address, uint32_t array, int parity, Site site);

/// How many blocks a grid of the current session takes along y.
unsigned max_grid_y();
/// Runs every block of a launch on the current session, and adds what it counted. Throws Finding for
/// a mistake of the kernel or of the launch, always that of the lowest block, and Error if there is
/// no session. `body` calls the kernel, whose address is for its name.
void run_grid(const Index3& grid, const Index3& block, size_t shared_bytes, const void* kernel,
              Site site, void (*body)(const void*), const void* arguments);

}  // namespace fa2::sim

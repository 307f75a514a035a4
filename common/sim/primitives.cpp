#include "common/sim/primitives.h"

#include "common/sim/machine.h"

namespace fa2::sim {

RunningLane*& running() {
  static constinit thread_local RunningLane* lane = nullptr;
  return lane;
}

void fail_outside_of_kernels() { throw Error("a kernel's primitive was used outside of a kernel"); }

Index3 block_index() { return lane_of_kernel().machine->block(); }
Index3 block_size() { return lane_of_kernel().machine->launch().block; }
Index3 grid_size() { return lane_of_kernel().machine->launch().grid; }

uint32_t declare_array(const SharedArray& array, Site site) {
  Lane& self = lane_of_kernel();
  return self.machine->declare_array(self, array, site);
}

std::byte* shared_access(uint32_t address, uint32_t array, uint32_t bytes, bool write, Site site) {
  Lane& self = lane_of_kernel();
  return self.machine->shared_access(self, address, array, bytes, write, site);
}

const GlobalArray* find_global(const void* address) {
  return running() == nullptr ? nullptr : lane_of_kernel().machine->find_global(address);
}

std::byte* global_access(const void* address, const GlobalArray* home, uint32_t bytes, bool write,
                         Site site) {
  Lane& self = lane_of_kernel();
  return self.machine->global_access(self, address, home, bytes, write, site);
}

void block_barrier(Site site) {
  Lane& self = lane_of_kernel();
  self.machine->block_barrier(self, site);
}

void copy_async(uint32_t to, uint32_t array, const void* from, const GlobalArray* home, bool valid,
                Site site) {
  Lane& self = lane_of_kernel();
  self.machine->copy_async(self, to, array, from, home, valid, site);
}

void copy_wait(uint32_t pending_groups, Site site) {
  Lane& self = lane_of_kernel();
  self.machine->copy_wait(self, pending_groups, site);
}

void mbarrier_init(uint32_t address, uint32_t array, int arrivals, Site site) {
  Lane& self = lane_of_kernel();
  self.machine->mbarrier_init(self, address, array, arrivals, site);
}

void mbarrier_arrive(uint32_t address, uint32_t array, bool after_copies, Site site) {
  Lane& self = lane_of_kernel();
  self.machine->mbarrier_arrive(self, address, array, after_copies, site);
}

void mbarrier_wait(uint32_t address, uint32_t array, int parity, Site site) {
  Lane& self = lane_of_kernel();
  self.machine->mbarrier_wait(self, address, array, parity, site);
}

}  // namespace fa2::sim

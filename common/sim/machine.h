#pragma once
// The machine of one OS thread: runs one block of a launch after the other, each CUDA thread as a
// fiber. README.md beside this file tells how it works.
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "common/harness/counters.h"
#include "common/sim/banks.h"
#include "common/sim/clocks.h"
#include "common/sim/faults.h"
#include "common/sim/fiber.h"
#include "common/sim/finding.h"
#include "common/sim/lane.h"
#include "common/sim/observer.h"
#include "common/sim/session.h"
#include "common/sim/shadow.h"

namespace fa2::sim {

/// What all blocks of a launch share.
struct Launch {
  const Session* session;
  const void* kernel;  // the function's address, for its name
  Site site;           // of the launch() call
  Index3 grid, block;
  uint32_t shared_bytes;
  void (*body)(const void* arguments);  // calls the kernel
  const void* arguments;

  int threads() const { return static_cast<int>(block[0] * block[1] * block[2]); }
  uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
};

/// A counted barrier in shared memory.
struct Mbarrier {
  uint32_t address = 0;
  int count = 0, pending = 0;
  int phase = 0;  // phases completed
  Site init_site;
  MbarrierOrder order;
};

class Machine {
 public:
  Machine();
  ~Machine();

  void begin_launch(const Launch& launch);
  /// Runs a block to its end, and says whether that was a good one; else take_report() has why.
  bool run_block(uint64_t number);
  Report take_report() { return std::move(*report_); }
  void add_counters(fa2_counters& sum) const;

  // ---- What the primitives call, on the fiber of `lane` ----

  /// Every primitive begins with this.
  void step(Lane& lane, Site site) {
    lane.site = site;
    const uint64_t steps = steps_.load(std::memory_order_relaxed) + 1;
    steps_.store(steps, std::memory_order_relaxed);
    if (steps > last_step_) [[unlikely]]
      fail_endless(lane);
  }
  /// Stops the block with a mistake of `lane`; fills in what the report lacks. Does not return.
  [[noreturn]] void fail(Lane& lane, Report report);
  /// Lets other lanes run until this one, which has noted what it waits for, is ready again.
  void pause(Lane& lane);

  void block_barrier(Lane& lane, Site site);
  void collective(Lane& lane, const Operation& operation, uint32_t mask, void* operands, Site site);
  /// The warp's step ends with this operation, if steps are recorded.
  void end_step(const Warp& warp, const char* operation) {
    if (recording_) [[unlikely]]
      record_step(warp, operation);
  }
  void warp_synced(Warp& warp, uint32_t lanes) { clocks_.warp_barrier(warp, lanes); }

  uint32_t declare_array(Lane& lane, const SharedArray& array, Site site);
  /// Checks and counts one access of a lane; returns where the bytes are.
  std::byte* shared_access(Lane& lane, uint32_t address, uint32_t array, uint32_t bytes, bool write,
                           Site site);
  /// Checks one row of an ldmatrix; counted by the caller for the warp.
  const std::byte* matrix_row(Lane& lane, uint32_t address, uint32_t array);
  void count_matrices(uint32_t array, uint32_t wavefronts);

  const GlobalArray* find_global(const void* address);
  /// Checks and counts one access of a lane; returns `address`.
  std::byte* global_access(Lane& lane, const void* address, const GlobalArray* home, uint32_t bytes,
                           bool write, Site site);

  void copy_async(Lane& lane, uint32_t to, uint32_t array, const void* from,
                  const GlobalArray* home, bool valid, Site site);
  void copy_wait(Lane& lane, uint32_t pending_groups, Site site);

  void mbarrier_init(Lane& lane, uint32_t address, uint32_t array, int arrivals, Site site);
  void mbarrier_arrive(Lane& lane, uint32_t address, uint32_t array, bool after_copies, Site site);
  void mbarrier_wait(Lane& lane, uint32_t address, uint32_t array, int parity, Site site);

  // ---- Read by the primitives ----
  const Launch& launch() const { return *launch_; }
  const Index3& block() const { return block_; }
  fa2_counters counters{};  // of the current block

  // ---- For faults.cpp ----
  /// Primitives executed so far; read by the watchdog on another OS thread.
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  /// Ends the block of the lane that was interrupted by a fault; called instead of its code.
  [[noreturn]] static void abandon_running();

 private:
  friend struct Faults;

  void start_lane(Lane& lane);
  Context* finish_lane(Lane& lane);
  Context& next_context(Lane& lane);
  Warp* next_warp();
  void schedule();
  void release_block_barrier_if_complete();
  void settle_steps(const Warp& warp);
  void record_step(const Warp& warp, const char* operation);
  void check_partners(Lane& lane);
  void complete_collectives(Warp& warp);
  [[noreturn]] void fail_endless(Lane& lane);
  Report deadlock_report() const;
  std::optional<Report> mask_report() const;
  void complete(Report& report, const Lane* lane) const;
  void record(Report report, const Lane& lane);
  void record_fault(const Lane& lane);

  std::string element(const SharedArray& array, int64_t address) const;
  const SharedArray& array_of(uint32_t array) const { return arrays_[array]; }
  void check_bounds(Lane& lane, uint32_t address, uint32_t array, uint32_t bytes, const char* verb);
  void fail_conflict(Lane& lane, const Conflict& conflict, uint32_t address, uint32_t array,
                     uint32_t bytes, const char* verb);
  static void describe_other(Report& report, const Lane& other);
  void land(Lane& lane, AsyncCopy& copy, uint32_t writer, uint32_t clock);
  Mbarrier& mbarrier_at(Lane& lane, uint32_t address, uint32_t array, const char* verb, Site site);
  void count_mbarrier_arrival(Mbarrier& mbarrier);
  void check_finished(Lane& lane);

  const Launch* launch_ = nullptr;
  Index3 block_{};
  uint64_t last_step_ = 0;          // of the current block
  std::atomic<uint64_t> steps_{0};  // over all blocks; written by this thread only
  std::optional<Report> report_;

  std::unique_ptr<Stacks> stacks_;
  int stack_count_ = 0;
  Context scheduler_;
  std::unique_ptr<Lane[]> lanes_;
  int lane_capacity_ = 0;
  int threads_ = 0, exited_ = 0, at_barrier_ = 0;
  const Lane* first_at_barrier_ = nullptr;
  std::vector<Warp> warps_;
  std::vector<uint8_t> warp_order_;
  uint64_t random_ = 0;

  std::unique_ptr<std::byte[]> shared_;
  uint32_t shared_capacity_ = 0;
  std::vector<SharedArray> arrays_;  // [0] stands for an address of no array
  uint64_t loaded_[uses] = {}, stored_[uses] = {};
  BankCounts banks_;
  bool recording_ = false;
  StepRecorder recorder_;
  Clocks clocks_;
  Shadow shadow_{clocks_};
  std::vector<Mbarrier> mbarriers_;
  const GlobalArray* last_global_ = nullptr;

  // Of a fiber that is taken away from its kernel: why, and a stack to say so on.
  static constexpr size_t emergency_bytes = 64 * 1024;
  std::unique_ptr<char[]> emergency_stack_;
  Fault fault_;
  std::atomic<uint64_t> stalled_at_{0};
  int stall_attempts_ = 0;
  uintptr_t code_begin_ = 0, code_end_ = 0;
};

}  // namespace fa2::sim

#pragma once
// For those who want to know more of a launch than its sums: what each launch counted, and what
// each warp did, in its own order. Nothing is recorded, and nothing costs time, unless asked for.
#include <map>
#include <string>
#include <vector>

#include "common/harness/counters.h"
#include "common/sim/finding.h"

namespace fa2::sim {

/// One step of a warp: everything since its last step, up to and with the operation that ends it.
struct WarpStep {
  uint64_t block;
  int warp;
  const char* operation;  // "mma_m16n8k16", "block_barrier", ..., "exit"
  bool awaited_copies;    // a cp_async_wait was among it
  fa2_counters done;
};

/// What a launch was, and what all its blocks counted.
struct LaunchSummary {
  std::string kernel;  // "" where the program has no symbols
  Index3 block;
  uint32_t shared_bytes;
  fa2_counters counters;
};

/// The OS threads that run the blocks call its functions: record steps with os_threads = 1.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual bool wants_steps() const { return false; }
  virtual void step(const WarpStep&) {}
  virtual void launched(const LaunchSummary&) {}
};

/// How many mma instructions each block executed. Blocks start in the order of their numbers.
struct BlockProducts : Observer {
  std::map<uint64_t, uint64_t> mma;  // by number
  bool wants_steps() const override { return true; }
  void step(const WarpStep& step) override { mma[step.block] += step.done.mma; }
};

/// Splits the counters of a block among its warps, for an observer that wants steps.
class StepRecorder {
 public:
  void begin_block(Observer* observer, uint64_t block, size_t warps) {
    observer_ = observer;
    block_ = block;
    last_ = {};
    pending_.assign(warps, {});
  }
  /// What was counted since the last call was this warp's work.
  void settle(int warp, const fa2_counters& now);
  void awaited_copies(int warp) { pending_[static_cast<size_t>(warp)].awaited_copies = true; }
  /// The warp's step ends here.
  void emit(int warp, const char* operation);

 private:
  struct Pending {
    fa2_counters done{};
    bool awaited_copies = false;
  };
  Observer* observer_ = nullptr;
  uint64_t block_ = 0;
  fa2_counters last_{};
  std::vector<Pending> pending_;
};

}  // namespace fa2::sim

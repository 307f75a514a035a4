#pragma once
// The simulated GPU of one OS thread: its memory, its settings, and what was counted on it.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/counters.h"
#include "common/sim/finding.h"
#include "common/sim/gpu_models.h"

namespace fa2::sim {

class Machine;
class Observer;

/// In which order warps and lanes take turns. Results and counters are the same in every order; a
/// mistake is caught in every order too, though perhaps on another thread first.
enum class Order { forward, reverse, random };

struct Config {
  const GpuModel* gpu = &gpu_models().front();
  int os_threads = 0;  // 0: one per core of the host
  Order order = Order::forward;
  uint64_t seed = 0;  // of Order::random
  /// How many primitives (shared and global accesses, collectives, barriers), summed over its
  /// threads, a block may execute before it counts as endless. The default is reached after a few
  /// seconds; a large problem needs more: the FA2 stages execute about 8 per (query, key) pair.
  uint64_t step_limit = 200'000'000;
  /// CPU seconds that a thread may run without executing any primitive.
  double stall_seconds = 2.0;
  Observer* observer = nullptr;  // see observer.h
  /// Blocks along y of a grid. Less than a GPU's tells, with few blocks, what a kernel does where y
  /// ends and z goes on.
  unsigned max_grid_y = 65535;
};

/// A named array in global memory that kernels may touch.
struct GlobalArray {
  std::string name;
  uintptr_t begin, end;
  bool writable;
};

/// While it lives, launches of this OS thread run on its machine. Sessions of different OS threads
/// are independent; a second one on the same thread hides the first until it ends.
class Session {
 public:
  explicit Session(Config config = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Lets kernels touch [base, base + bytes); everything else in global memory is out of bounds.
  /// Empty arrays may be null. Must not be called while a kernel runs.
  void expose(std::string name, const void* base, size_t bytes, bool writable);

  /// Sums over the launches so far. A launch that ended in a Finding adds nothing.
  const fa2_counters& counters() const { return counters_; }

  const Config& config() const { return config_; }
  const std::deque<GlobalArray>& arrays() const { return arrays_; }

  /// The session of this OS thread, or null.
  static Session* current();

 private:
  friend class GridRun;
  void need_machines(size_t count);

  Config config_;
  Session* outer_;
  std::deque<GlobalArray> arrays_;                  // a deque: pointers into it stay valid
  std::vector<std::unique_ptr<Machine>> machines_;  // one per OS thread
  fa2_counters counters_{};
};

}  // namespace fa2::sim

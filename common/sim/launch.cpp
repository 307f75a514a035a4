#include "common/sim/machine.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "common/sim/symbol_name.h"

namespace fa2::sim {

/// One launch. Blocks are handed out in order, and each OS thread keeps the sum of what its blocks
/// counted; sums of integers do not depend on who ran which block.
class GridRun {
 public:
  GridRun(Session& session, const Launch& launch)
      : session_(session),
        launch_(launch),
        watchdog_(session.config().stall_seconds, launch.kernel) {}

  void run() {
    const int workers = worker_count();
    session_.need_machines(static_cast<size_t>(workers));
    const auto& machines = session_.machines_;
    std::vector<std::thread> threads;
    for (int i = 1; i < workers; ++i)
      threads.emplace_back([this, &machine = *machines[static_cast<size_t>(i)]] { work(machine); });
    work(*machines[0]);
    for (std::thread& thread : threads) thread.join();
    if (report_) throw Finding(std::move(*report_));
    if (Observer* observer = session_.config().observer)
      observer->launched({symbol_name(launch_.kernel), launch_.block, launch_.shared_bytes, sum_});
#define FA2_ADD(name, meaning) session_.counters_.name += sum_.name;
    FA2_COUNTERS(FA2_ADD)
#undef FA2_ADD
  }

 private:
  int worker_count() const {
    const int wanted = session_.config().os_threads;
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    return static_cast<int>(
        std::min<uint64_t>(static_cast<uint64_t>(wanted > 0 ? wanted : cores), launch_.blocks()));
  }

  void work(Machine& machine) {
    const SignalStack signal_stack;
    machine.begin_launch(launch_);
    watchdog_.watch(machine);
    fa2_counters sum{};
    for (;;) {
      const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
      // After a mistake only lower blocks matter, and those have all been handed out.
      if (number >= launch_.blocks() || number > first_bad_.load(std::memory_order_relaxed)) break;
      if (machine.run_block(number)) {
        machine.add_counters(sum);
        continue;
      }
      const std::lock_guard lock(mutex_);
      if (number < first_bad_.load(std::memory_order_relaxed)) {
        first_bad_.store(number, std::memory_order_relaxed);
        report_ = machine.take_report();
      }
      break;
    }
    watchdog_.unwatch(machine);
    const std::lock_guard lock(mutex_);
#define FA2_ADD(name, meaning) sum_.name += sum.name;
    FA2_COUNTERS(FA2_ADD)
#undef FA2_ADD
  }

  Session& session_;
  const Launch& launch_;
  const FaultHandlers fault_handlers_;
  Watchdog watchdog_;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> first_bad_{std::numeric_limits<uint64_t>::max()};
  std::mutex mutex_;  // guards what follows
  std::optional<Report> report_;
  fa2_counters sum_{};
};

namespace {

// What a GPU would refuse.
void check_limits(const Launch& launch, uint64_t shared_bytes, const Config& config) {
  const GpuModel& gpu = *config.gpu;
  const auto refuse = [&](std::string summary, std::string fix) {
    Report report{.rule = rule::launch, .summary = std::move(summary), .fix = std::move(fix)};
    report.kernel = symbol_name(launch.kernel);
    report.at(launch.site);
    report.notes.push_back("launched at " + report.file + ":" + std::to_string(report.line));
    throw Finding(std::move(report));
  };
  const auto product = [](const Index3& i) { return uint64_t{i[0]} * i[1] * i[2]; };
  if (shared_bytes > static_cast<uint64_t>(gpu.shared_per_block))
    refuse("a block asks for " + std::to_string(shared_bytes) +
               " bytes of shared memory, and a block on the " + gpu.name + " can have " +
               std::to_string(gpu.shared_per_block),
           "use a smaller tile, or fewer copies in flight");
  if (product(launch.block) == 0 || product(launch.block) > 1024 || launch.block[2] > 64)
    refuse("a block of " + std::to_string(product(launch.block)) +
               " threads; a GPU takes 1 to 1024 (at most 64 in z)",
           "use fewer warps per block");
  if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0)
    refuse("an empty grid", "do not launch when there is nothing to do");
  const std::string grid = "the grid is " + std::to_string(launch.grid[0]) + " x " +
                           std::to_string(launch.grid[1]) + " x " + std::to_string(launch.grid[2]);
  if (launch.grid[0] > 2147483647u || launch.grid[1] > 65535 || launch.grid[2] > 65535)
    refuse(grid + "; a GPU takes at most 2147483647 x 65535 x 65535 blocks",
           "fold batch and heads into blockIdx.x; make a long y with grid_of(), which goes on "
           "along z");
  if (launch.grid[1] > config.max_grid_y)
    refuse(grid + "; this run takes " + std::to_string(config.max_grid_y) +
               " blocks along y, in place of a GPU's 65535, to see what happens where y ends",
           "make the grid with grid_of(), which goes on along z");
}

}  // namespace

void run_grid(const Index3& grid, const Index3& block, size_t shared_bytes, const void* kernel,
              Site site, void (*body)(const void*), const void* arguments) {
  Session* session = Session::current();
  if (session == nullptr)
    throw Error("a kernel was launched on the simulator without a fa2::sim::Session");
  const Launch launch{session, kernel,   site, grid, block, static_cast<uint32_t>(shared_bytes),
                      body,    arguments};
  check_limits(launch, shared_bytes, session->config());
  GridRun(*session, launch).run();
}

unsigned max_grid_y() {
  const Session* session = Session::current();
  return session == nullptr ? Config{}.max_grid_y : session->config().max_grid_y;
}

}  // namespace fa2::sim

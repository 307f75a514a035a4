#include "common/cli/fuzz/campaign.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "common/device/error.h"
#include "common/harness/parallel.h"
#include "common/harness/random.h"

namespace fa2::fuzzing {
namespace {

using testing::FuzzResult;
using Clock = std::chrono::steady_clock;

/// The simulator takes its threads in another order for each problem.
DeviceOptions device_for(Backend backend, uint64_t seed) {
  DeviceOptions options;
  options.backend = backend;
  options.os_threads = 1;
  options.order = static_cast<int>(mix(seed) % 3);
  options.seed = seed;
  return options;
}

/// The machine of one worker. A simulator costs nothing and is made anew for each problem.
class Bench {
 public:
  explicit Bench(Backend backend) : backend_(backend) {
    if (backend == Backend::cuda) device_ = make_device(device_for(backend, 0));
  }
  Device& device(uint64_t seed) {
    if (backend_ == Backend::sim) device_ = make_device(device_for(backend_, seed));
    return *device_;
  }

 private:
  Backend backend_;
  std::unique_ptr<Device> device_;
};

class Campaign {
 public:
  Campaign(const Options& options, std::vector<Kernel> kernels)
      : options_(options), limits_(testing::default_limits(options.backend)) {
    outcome_.kernels = std::move(kernels);
  }

  Outcome run(const std::function<void(int64_t)>& progress) {
    std::vector<std::thread> threads;
    working_ = worker_count();
    for (int i = 0; i < worker_count(); ++i) threads.emplace_back([this] { work(); });
    {
      std::unique_lock lock(mutex_);
      while (!changed_.wait_for(lock, std::chrono::milliseconds(500),
                                [this] { return working_ == 0; })) {
        const int64_t done = outcome_.run + outcome_.skipped;
        lock.unlock();
        progress(done);
        lock.lock();
      }
    }
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
    if (wrong_) shrink_wrong();
    return std::move(outcome_);
  }

 private:
  int worker_count() const {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    return options_.threads > 0 ? options_.threads : cores;
  }

  size_t kernel_of(uint64_t seed) const { return seed % outcome_.kernels.size(); }

  void work() {
    const OneThread alone;
    try {
      Bench bench(options_.backend);
      while (const std::optional<uint64_t> seed = next_seed()) {
        const Kernel& kernel = outcome_.kernels[kernel_of(*seed)];
        note(
            testing::fuzz_one(bench.device(*seed), *kernel.stage, *kernel.variant, *seed, limits_));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard lock(mutex_);
    --working_;
    changed_.notify_one();
  }

  std::optional<uint64_t> next_seed() {
    const std::lock_guard lock(mutex_);
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (stop_ || (options_.count > 0 && started_ == options_.count) ||
        (options_.seconds > 0 && seconds >= options_.seconds))
      return {};
    return options_.seed + static_cast<uint64_t>(started_++);
  }

  void note(const FuzzResult& result) {
    const std::lock_guard lock(mutex_);
    Kernel& kernel = outcome_.kernels[kernel_of(result.seed)];
    ++(result.skipped ? kernel.skipped : kernel.run);
    ++(result.skipped ? outcome_.skipped : outcome_.run);
    if (result.message.empty()) return;
    stop_ = true;
    // After a fault of one worker's kernel the GPU is lost for all of them.
    const auto lost = [](const FuzzResult& r) { return r.message.starts_with("not run:"); };
    if (!wrong_ || lost(*wrong_) || (!lost(result) && result.seed < wrong_->seed)) wrong_ = result;
  }

  void shrink_wrong() {
    outcome_.failed_kernel = kernel_of(wrong_->seed);
    const Kernel& kernel = outcome_.kernels[outcome_.failed_kernel];
    try {
      Bench bench(options_.backend);
      outcome_.failure = testing::shrunk_failure(bench.device(wrong_->seed), *kernel.stage,
                                                 *kernel.variant, *wrong_);
    } catch (const Error&) {  // the GPU is lost: the problem stays as large as it was drawn
      outcome_.failure = {wrong_->seed, wrong_->spec, wrong_->spec, wrong_->tile_row,
                          wrong_->message};
    }
  }

  const Options& options_;
  const testing::FuzzLimits limits_;
  const Clock::time_point start_ = Clock::now();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int working_ = 0;
  int64_t started_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::optional<FuzzResult> wrong_;
  Outcome outcome_;
};

}  // namespace

std::string label(const Kernel& kernel) {
  const std::string variant = kernel.variant->name;
  return kernel.stage->name + (variant.empty() ? "" : " " + variant);
}

std::vector<Kernel> kernels_of(const Options& options) {
  std::vector<Kernel> kernels;
  for (const Stage* stage : stages(options.backend)) {
    const auto asked = {std::string(), std::to_string(stage->number), std::string(stage->name)};
    if (std::ranges::find(asked, options.stage) == asked.end()) continue;
    for (const Variant& variant : stage->variants)
      if (options.variant.empty() || options.variant == variant.name)
        kernels.push_back({stage, &variant});
  }
  if (!kernels.empty()) return kernels;
  if (stages(options.backend).empty())
    throw Error(
        "this program was built for the simulator only; ./fa2 fuzz --backend cuda builds "
        "the other one.");
  const auto named = [](const std::string& name) { return "\"" + name + "\""; };
  std::string known;
  for (const Stage* stage : stages(options.backend))
    known += (known.empty() ? "" : ", ") + std::string(stage->name);
  const std::string variant =
      options.variant.empty() ? "" : " with a variant " + named(options.variant);
  throw Error("there is no stage " + (options.stage.empty() ? "" : named(options.stage)) + variant +
              "; the stages are " + known + ".");
}

Outcome run(const Options& options, std::vector<Kernel> kernels,
            const std::function<void(int64_t)>& progress) {
  return Campaign(options, std::move(kernels)).run(progress);
}

std::string again(const Options& options, const Kernel& kernel, uint64_t seed) {
  std::string command = std::string("./fa2 fuzz --backend ") + name_of(options.backend) +
                        " --stage " + kernel.stage->name;
  const std::string variant = kernel.variant->name;
  if (!variant.empty()) command += " --variant " + variant;
  return command + " --seed " + std::to_string(seed) + " --count 1";
}

}  // namespace fa2::fuzzing

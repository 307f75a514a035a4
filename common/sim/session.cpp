#include "common/sim/session.h"

#include <mutex>
#include <thread>
#include <utility>

#include "common/sim/machine.h"

namespace fa2::sim {
namespace {

thread_local Session* session_of_this_thread = nullptr;

/// Machines whose session has ended, for the next one: to make one, with its stacks and its shared
/// memory, takes longer than to run a small kernel.
class IdleMachines {
 public:
  std::unique_ptr<Machine> take() {
    const std::lock_guard lock(mutex_);
    if (machines_.empty()) return std::make_unique<Machine>();
    std::unique_ptr<Machine> machine = std::move(machines_.back());
    machines_.pop_back();
    return machine;
  }
  void put(std::unique_ptr<Machine> machine) {
    const std::lock_guard lock(mutex_);
    if (machines_.size() < std::thread::hardware_concurrency())
      machines_.push_back(std::move(machine));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

IdleMachines& idle_machines() {
  static IdleMachines all;
  return all;
}

}  // namespace

Session::Session(Config config) : config_(config), outer_(session_of_this_thread) {
  session_of_this_thread = this;
}

Session::~Session() {
  session_of_this_thread = outer_;
  for (auto& machine : machines_) idle_machines().put(std::move(machine));
}

void Session::need_machines(size_t count) {
  while (machines_.size() < count) machines_.push_back(idle_machines().take());
}

Session* Session::current() { return session_of_this_thread; }

void Session::expose(std::string name, const void* base, size_t bytes, bool writable) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(base);
  if (bytes != 0) arrays_.push_back({std::move(name), begin, begin + bytes, writable});
}

}  // namespace fa2::sim

#pragma once
// What a kernel can do to the process itself: run over its stack, divide by zero, follow a wild
// pointer, or loop without ever calling the machine. Each ends the block, with a Finding, and not
// the process.
#include <signal.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace fa2::sim {

class Machine;

/// Why a fiber was taken away from the kernel.
struct Fault {
  int signal = 0;
  uintptr_t address = 0;
};

/// While one lives, faults of fibers are caught, on all OS threads of the process. Other faults go
/// to whoever handled them before.
class FaultHandlers {
 public:
  FaultHandlers();
  ~FaultHandlers();
};

/// A stack for this OS thread's signal handlers: a fiber that has overrun its own has none left.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();

 private:
  std::unique_ptr<char[]> memory_;
  stack_t before_{};
};

/// Looks at the machines of a launch a few times per second, and interrupts one whose kernel has
/// used CPU time without executing any primitive. Needs FaultHandlers.
class Watchdog {
 public:
  Watchdog(double stall_seconds, const void* kernel);
  ~Watchdog();
  /// Called on the OS thread that runs the machine.
  void watch(Machine& machine);
  void unwatch(Machine& machine);

 private:
  struct Watched {
    Machine* machine;
    pthread_t thread;
    uint64_t steps;
    double cpu_seconds;  // when `steps` was first seen
  };
  void look();

  const double stall_seconds_;
  const void* kernel_;
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stop_ = false;
  std::vector<Watched> watched_;
  std::thread thread_;
};

}  // namespace fa2::sim

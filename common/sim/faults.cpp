#include "common/sim/faults.h"

#include <link.h>
#include <pthread.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <chrono>

#include "common/sim/machine.h"

namespace fa2::sim {
namespace {

constexpr int stall_signal = SIGURG;  // ignored by default: one that comes late does no harm
constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, stall_signal};

std::mutex handlers_mutex;
int handlers_wanted = 0;
struct sigaction handlers_before[std::size(signals)];

__attribute__((no_sanitize("address"))) void abandon_fiber() { Machine::abandon_running(); }

// Makes the interrupted code go on in abandon_fiber() on another stack. From there on it is an
// ordinary fiber that leaves for good; returning from the handler restores the signal mask.
bool redirect(void* context, char* stack_top) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  const uintptr_t top = reinterpret_cast<uintptr_t>(stack_top) & ~uintptr_t{15};
#if defined(__x86_64__)
  registers.gregs[REG_RSP] = static_cast<greg_t>(top - 8);  // as after a call
  registers.gregs[REG_RIP] = reinterpret_cast<greg_t>(&abandon_fiber);
  return true;
#elif defined(__aarch64__)
  registers.sp = top;
  registers.pc = reinterpret_cast<uintptr_t>(&abandon_fiber);
  return true;
#else
  (void)registers, (void)top;
  return false;
#endif
}

uintptr_t program_counter(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return registers.pc;
#else
  (void)registers;
  return 0;
#endif
}

// Not ours: whoever was there before gets it, or the process ends as it would have.
void pass_on(int signal, siginfo_t* info, void* context) {
  const auto i = std::find(std::begin(signals), std::end(signals), signal) - std::begin(signals);
  const struct sigaction& before = handlers_before[i];
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
  else if (signal != stall_signal)
    sigaction(signal, &before, nullptr);  // the fault happens again, and now takes its course
}

}  // namespace

/// The handlers' way into the machine.
struct Faults {
  static void handle(int signal, siginfo_t* info, void* context) {
    Lane* lane = this_lane();
    if (lane == nullptr) return pass_on(signal, info, context);
    Machine& machine = *lane->machine;
    if (signal == stall_signal) {
      // Has it really stopped at the same step? And never inside a library, which may hold a lock.
      if (info->si_code != SI_TKILL && info->si_code != SI_QUEUE && info->si_code != SI_USER)
        return pass_on(signal, info, context);
      if (machine.stalled_at_.load() != machine.steps()) return;
      const uintptr_t pc = program_counter(context);
      const bool in_kernel = machine.code_begin_ <= pc && pc < machine.code_end_;
      if (!in_kernel && ++machine.stall_attempts_ < 100) return;
    }
    machine.fault_ = {signal, reinterpret_cast<uintptr_t>(info->si_addr)};
    if (!redirect(context, machine.emergency_stack_.get() + Machine::emergency_bytes))
      pass_on(signal, info, context);
  }

  static void interrupt(Machine& machine, pthread_t thread, uint64_t steps) {
    machine.stalled_at_.store(steps);
    pthread_kill(thread, stall_signal);
  }

  // The code of the program or library that the kernel is in.
  static void find_code(Machine& machine, const void* kernel) {
    struct Search {
      uintptr_t kernel, begin = 0, end = 0;
    } search{reinterpret_cast<uintptr_t>(kernel)};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
          auto& s = *static_cast<Search*>(data);
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& segment = info->dlpi_phdr[i];
            const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
            if (segment.p_type == PT_LOAD && begin <= s.kernel &&
                s.kernel < begin + segment.p_memsz)
              s.begin = begin, s.end = begin + segment.p_memsz;
          }
          return 0;
        },
        &search);
    machine.code_begin_ = search.begin;
    machine.code_end_ = search.end;
  }
};

FaultHandlers::FaultHandlers() {
  const std::lock_guard lock(handlers_mutex);
  if (handlers_wanted++ != 0) return;
  struct sigaction ours {};
  ours.sa_sigaction = Faults::handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  for (size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &ours, &handlers_before[i]);
}

FaultHandlers::~FaultHandlers() {
  const std::lock_guard lock(handlers_mutex);
  if (--handlers_wanted != 0) return;
  for (size_t i = 0; i < std::size(signals); ++i) {
    struct sigaction now {};
    sigaction(signals[i], nullptr, &now);
    if (now.sa_sigaction == Faults::handle) sigaction(signals[i], &handlers_before[i], nullptr);
  }
}

SignalStack::SignalStack() {
  constexpr size_t bytes = 64 * 1024;
  memory_ = std::make_unique<char[]>(bytes);
  stack_t stack{};
  stack.ss_sp = memory_.get();
  stack.ss_size = bytes;
  sigaltstack(&stack, &before_);
}

SignalStack::~SignalStack() { sigaltstack(&before_, nullptr); }

Watchdog::Watchdog(double stall_seconds, const void* kernel)
    : stall_seconds_(stall_seconds), kernel_(kernel) {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stop_signal_.wait_for(lock, std::chrono::milliseconds(50), [this] { return stop_; }))
      look();
  });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_one();
  thread_.join();
}

void Watchdog::watch(Machine& machine) {
  Faults::find_code(machine, kernel_);
  const std::lock_guard lock(mutex_);
  watched_.push_back({&machine, pthread_self(), machine.steps(), 0});
}

void Watchdog::unwatch(Machine& machine) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [&](const Watched& w) { return w.machine == &machine; });
}

void Watchdog::look() {
  for (Watched& w : watched_) {
    clockid_t clock{};
    timespec now{};
    if (pthread_getcpuclockid(w.thread, &clock) != 0 || clock_gettime(clock, &now) != 0) continue;
    const double seconds =
        static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    const uint64_t steps = w.machine->steps();
    if (steps != w.steps || w.cpu_seconds == 0)
      w.steps = steps, w.cpu_seconds = seconds;
    else if (seconds - w.cpu_seconds > stall_seconds_)
      Faults::interrupt(*w.machine, w.thread, steps);
  }
}

}  // namespace fa2::sim

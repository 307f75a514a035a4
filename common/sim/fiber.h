#pragma once
// Fibers: many threads of control on one OS thread, switched in a few nanoseconds.
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

#include "common/sim/sanitizers.h"

namespace fa2::sim {

/// Memory for the stacks of `count` fibers. Each has a guard page below, so that an overflow is a
/// fault instead of damage. Pages are only backed by memory once they are used.
class Stacks {
 public:
  explicit Stacks(int count);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  static size_t usable_bytes();
  char* bottom(int i) const;  // its lowest usable address
  char* top(int i) const;
  /// Which stack's guard page holds this address, or -1.
  int guard_of(const void* address) const;

 private:
  char* memory_;
  int count_;
};

/// A suspended thread of control: a fiber, or the OS thread itself while a fiber runs.
///
/// A handle is never destroyed while its fiber is suspended: that would unwind the fiber's stack.
/// A kernel that failed is dropped instead (its stacks are simply used again).
class Context {
 public:
  Context() = default;
  ~Context() { drop(); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Makes this a fiber that will run `body` on a stack. After `body` the fiber goes on in the
  /// context that `body` returned, for good.
  void start(char* bottom, char* top, std::function<Context*()> body);

  /// Suspends `from`, which is running, and goes on in `to`. Returns when someone switches back.
  static void switch_to(Context& from, Context& to);

  void drop();

  /// Tells a sanitizer that this thread of control has moved to another stack by itself.
  static void moved_to_stack(char* bottom, size_t bytes);

 private:
  boost::context::fiber fiber_;
#if FA2_FIBER_ASAN
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
#endif
#if FA2_FIBER_TSAN
  void* tsan_fiber_ = nullptr;
  bool tsan_owned_ = false;
#endif
  static void switch_for(Context& from, Context& to, bool for_good);
  static void arrived(Context& self);
  static void leaving(Context& from, Context& to, bool for_good);
};

}  // namespace fa2::sim

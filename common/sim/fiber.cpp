#include "common/sim/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <exception>
#include <memory>
#include <new>
#include <utility>

#if FA2_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if FA2_FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// ThreadSanitizer keeps a stack of calls per fiber: a function that is entered on one and left on
// another must not appear there.
#if FA2_FIBER_TSAN
#define UNTRACED __attribute__((no_sanitize("thread")))
#else
#define UNTRACED
#endif

namespace fa2::sim {
namespace {

// Usable pages of a stack. With the guard page the distance between two stacks is an odd number of
// pages, and `colour` shifts them inside the page: otherwise the hot ends of all stacks would share
// the same few sets of the cache, and a switch would cost four times as much.
constexpr size_t pages = FA2_FIBER_ASAN || FA2_FIBER_TSAN ? 128 : 32;
constexpr size_t colour_step = 1088;

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
size_t stride() { return (pages + 1) * page_bytes(); }

// Stacks belong to Stacks, not to the fibers.
struct BorrowedStack {
  boost::context::stack_context allocate() { return {}; }
  void deallocate(boost::context::stack_context&) noexcept {}
};

// Who switched to the context that is arriving now, on this OS thread.
constinit thread_local Context* leaver = nullptr;

}  // namespace

Stacks::Stacks(int count) : count_(count) {
  void* memory = mmap(nullptr, stride() * count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
  // A failure (too many mappings) costs the check, not the run.
  for (int i = 0; i < count; ++i)
    if (mprotect(memory_ + i * stride(), page_bytes(), PROT_NONE) != 0) break;
}

Stacks::~Stacks() { munmap(memory_, stride() * count_); }

size_t Stacks::usable_bytes() { return (pages - 1) * page_bytes(); }
char* Stacks::bottom(int i) const { return memory_ + i * stride() + page_bytes(); }
char* Stacks::top(int i) const {
  return memory_ + (i + 1) * stride() - i * colour_step % page_bytes() / 64 * 64;
}

int Stacks::guard_of(const void* address) const {
  const char* p = static_cast<const char*>(address);
  if (p < memory_ || p >= memory_ + stride() * count_) return -1;
  const size_t offset = static_cast<size_t>(p - memory_);
  return offset % stride() < page_bytes() ? static_cast<int>(offset / stride()) : -1;
}

UNTRACED void Context::start(char* bottom, char* top, std::function<Context*()> body) {
  drop();
  boost::context::stack_context stack;
  stack.sp = top;
  stack.size = static_cast<size_t>(top - bottom);
#if FA2_FIBER_ASAN
  bottom_ = bottom, bytes_ = stack.size;
  __asan_unpoison_memory_region(bottom, stack.size);  // a dropped fiber left its frames there
#endif
#if FA2_FIBER_TSAN
  // Boost enters the new fiber once while it makes it.
  void* const maker = __tsan_get_current_fiber();
  tsan_fiber_ = __tsan_create_fiber(0), tsan_owned_ = true;
  __tsan_switch_to_fiber(tsan_fiber_, 0);
#endif
  fiber_ = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
      BorrowedStack{}, [this, body = std::move(body)](boost::context::fiber&& from) UNTRACED {
        leaver->fiber_ = std::move(from);
        arrived(*this);
        switch_for(*this, *body(), true);
        std::terminate();  // nobody comes back
        return boost::context::fiber();
      });
#if FA2_FIBER_TSAN
  __tsan_switch_to_fiber(maker, 0);
#endif
}

UNTRACED void Context::switch_to(Context& from, Context& to) { switch_for(from, to, false); }

UNTRACED void Context::switch_for(Context& from, Context& to, bool for_good) {
  leaving(from, to, for_good);
  leaver = &from;
  boost::context::fiber back = std::move(to.fiber_).resume();
  leaver->fiber_ = std::move(back);
  arrived(from);
}

void Context::drop() {
  if (fiber_) new (&fiber_) boost::context::fiber();  // forget, do not unwind
#if FA2_FIBER_TSAN
  if (tsan_owned_) __tsan_destroy_fiber(tsan_fiber_);
  tsan_fiber_ = nullptr, tsan_owned_ = false;
#endif
}

#if FA2_FIBER_ASAN
void Context::leaving(Context& from, Context& to, bool for_good) {
  __sanitizer_start_switch_fiber(for_good ? nullptr : &from.fake_stack_, to.bottom_, to.bytes_);
}
void Context::arrived(Context& self) {
  // An OS thread's own stack is learnt when it is first left.
  __sanitizer_finish_switch_fiber(self.fake_stack_, &leaver->bottom_, &leaver->bytes_);
}
void Context::moved_to_stack(char* bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(nullptr, bottom, bytes);
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}
#elif FA2_FIBER_TSAN
UNTRACED void Context::leaving(Context& from, Context& to, bool) {
  if (from.tsan_fiber_ == nullptr) from.tsan_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.tsan_fiber_, 0);
}
void Context::arrived(Context&) {}
void Context::moved_to_stack(char*, size_t) {}
#else
void Context::leaving(Context&, Context&, bool) {}
void Context::arrived(Context&) {}
void Context::moved_to_stack(char*, size_t) {}
#endif

}  // namespace fa2::sim

#pragma once
// A loop over all cores.
#include <cstdint>
#include <functional>

namespace fa2 {

/// Calls body(i) for 0 <= i < count, in any order, on all cores; with few calls on this thread
/// alone. The first exception of a body is rethrown.
void parallel_for(int64_t count, const std::function<void(int64_t)>& body);

/// While one lives, parallel_for stays on this thread: for programs that keep all cores busy
/// themselves.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;

 private:
  bool before_;
};

}  // namespace fa2

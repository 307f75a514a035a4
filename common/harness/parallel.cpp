#include "common/harness/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fa2 {
namespace {

thread_local bool one_thread = false;

}  // namespace

OneThread::OneThread() : before_(one_thread) { one_thread = true; }
OneThread::~OneThread() { one_thread = before_; }

void parallel_for(int64_t count, const std::function<void(int64_t)>& body) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t workers = one_thread ? 1 : std::min(cores, count);
  if (workers <= 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  // Several pieces per core, so that uneven work evens out, but few enough to cost nothing.
  const int64_t piece = std::max<int64_t>(1, count / (16 * workers));
  std::atomic<int64_t> next = 0;
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (int64_t begin; (begin = next.fetch_add(piece)) < count;)
        for (int64_t i = begin; i < std::min(begin + piece, count); ++i) body(i);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int64_t i = 1; i < workers; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads to be had: fewer do as well
  }
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fa2

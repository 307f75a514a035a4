#include "common/sim/session.h"

#include <utility>

#include "common/sim/machine.h"

namespace fa2::sim {
namespace {

thread_local Session* session_of_this_thread = nullptr;

}  // namespace

Session::Session(Config config) : config_(config), outer_(session_of_this_thread) {
  session_of_this_thread = this;
}

Session::~Session() { session_of_this_thread = outer_; }

Session* Session::current() { return session_of_this_thread; }

void Session::expose(std::string name, const void* base, size_t bytes, bool writable) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(base);
  if (bytes != 0) arrays_.push_back({std::move(name), begin, begin + bytes, writable});
}

}  // namespace fa2::sim

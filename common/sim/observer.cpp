#include "common/sim/observer.h"

namespace fa2::sim {

void StepRecorder::settle(int warp, const fa2_counters& now) {
  fa2_counters& done = pending_[static_cast<size_t>(warp)].done;
#define FA2_SETTLE(name, meaning) done.name += now.name - last_.name;
  FA2_COUNTERS(FA2_SETTLE)
#undef FA2_SETTLE
  last_ = now;
}

void StepRecorder::emit(int warp, const char* operation) {
  Pending& pending = pending_[static_cast<size_t>(warp)];
  observer_->step({block_, warp, operation, pending.awaited_copies, pending.done});
  pending = {};
}

}  // namespace fa2::sim

// Times that a GPU once gave, beside the simulator's counters.
#include <cmath>

#include "common/cli/compare/report.h"

namespace fa2::compare {
namespace {

bool comparable(const Record& time, const Record& r) {
  return time.time_ms && time.outcome == Outcome::right && time.backend == "cuda" &&
         time.shape.d == r.shape.d && time.shape.causal == r.shape.causal &&
         time.dtype == r.dtype && time.tile_mode == r.tile_mode;
}

/// 0 for the same sizes; each doubling of the keys, queries or heads is one more.
double distance(const Shape& a, const Shape& b) {
  const auto doublings = [](double x, double y) { return std::abs(std::log2(x / y)); };
  return doublings(static_cast<double>(a.Nq), static_cast<double>(b.Nq)) +
         doublings(static_cast<double>(a.Nk), static_cast<double>(b.Nk)) +
         doublings(static_cast<double>(a.batch * a.heads_q),
                   static_cast<double>(b.batch * b.heads_q));
}

/// The one nearest to the group's shape, of any stage.
const Record* nearest(const Group& group, const RecordedTimes& times) {
  const Record* best = nullptr;
  for (const Record& time : times) {
    if (!comparable(time, *group.front())) continue;
    const Shape& wanted = group.front()->shape;
    if (!best || distance(time.shape, wanted) < distance(best->shape, wanted)) best = &time;
  }
  return best;
}

}  // namespace

const Record* recorded_for(const Record& r, const Group& group, const RecordedTimes& times) {
  const Record* near = nearest(group, times);
  if (!near) return nullptr;
  for (const Record& time : times) {
    if (comparable(time, r) && time.shape == near->shape && time.stage == r.stage &&
        time.variant == r.variant && time.environment.gpu == near->environment.gpu) {
      return &time;
    }
  }
  return nullptr;
}

}  // namespace fa2::compare

#include "common/cli/compare/against.h"

#include <algorithm>
#include <cmath>

#include "common/cli/compare/groups.h"
#include "common/cli/format.h"

namespace fa2::compare {
namespace {

constexpr double least_drift = 0.05;

/// The simulator's counters do not depend on the GPU whose limits it takes, unless the tile does,
/// which is compared as well. So any simulator is the same machine.
bool same_machine(const Record& a, const Record& b) {
  return a.backend == b.backend && (a.backend == "sim" || a.environment.gpu == b.environment.gpu);
}

std::string outcome_text(const Record& r) {
  switch (r.outcome) {
    case Outcome::right:
      return "right";
    case Outcome::wrong:
      return "wrong (" + r.reason + ")";
    case Outcome::not_run:
      break;
  }
  return "not run (" + r.reason + ")";
}

std::string time_drift(const Record& now, const Record& then) {
  if (!now.time_ms || !then.time_ms) return {};
  const double ratio = *now.time_ms / *then.time_ms;
  const double allowed =
      std::max(least_drift, (now.spread.value_or(0) + then.spread.value_or(0)) / 2);
  if (std::abs(ratio - 1) <= allowed) return {};
  return cli::number(*then.time_ms) + " ms then, " + cli::number(*now.time_ms) + " ms now (" +
         cli::percent(std::abs(ratio - 1)) + (ratio > 1 ? " slower" : " faster") + ", allowed " +
         cli::percent(allowed) + ")";
}

std::string counter_drift(const Record& now, const Record& then) {
  if (!now.counters || !then.counters) return {};
  std::string text;
#define FA2_DIFF(name, meaning)                                                                    \
  if (now.counters->name != then.counters->name) {                                                 \
    text += (text.empty() ? "" : ", ") + std::string(#name) + " " +                                \
            std::to_string(then.counters->name) + " then, " + std::to_string(now.counters->name) + \
            " now";                                                                                \
  }
  FA2_COUNTERS(FA2_DIFF)
#undef FA2_DIFF
  return text;
}

/// How a row differs from its record; empty if it does not.
std::string drift_of(const Record& now, const Record& then) {
  if (now.outcome != then.outcome)
    return outcome_text(then) + " then, " + outcome_text(now) + " now";
  std::string text;
  const bool tiles_moved = now.tile && then.tile && now.tile != then.tile;
  if (tiles_moved) text = "tile " + label(*then.tile) + " then, " + label(*now.tile) + " now";
  for (const std::string& drift : {time_drift(now, then), counter_drift(now, then)}) {
    if (!drift.empty()) text += (text.empty() ? "" : "; ") + drift;
  }
  return text;
}

}  // namespace

Comparison compare_with(const std::vector<Record>& now, const std::vector<Record>& then) {
  Comparison c;
  for (const Record& r : now) {
    const Record* record = nullptr;
    for (const Record& old : then) {
      if (!same_machine(r, old)) continue;
      c.machine_recorded = true;
      if (same_experiment(r, old)) record = &old;  // the last one, should there be several
    }
    if (!record) {
      ++c.unrecorded;
      continue;
    }
    const std::string drift = drift_of(r, *record);
    if (drift.empty()) {
      ++c.unchanged;
    } else {
      c.drifted.push_back(label(r) + ", " + label(r.shape) + ", " + r.dtype + ", tiles " +
                          r.tile_mode + ": " + drift);
    }
  }
  return c;
}

std::string text_of(const Comparison& c, const std::string& file, const Environment& here) {
  if (!c.machine_recorded) {
    return file + " has no record for " + (here.driver.empty() ? "the simulator" : here.gpu) +
           ", so nothing can be said about drift.\n";
  }
  if (c.unchanged == 0 && c.drifted.empty()) {
    return file + " has none of these " + std::to_string(c.unrecorded) +
           " rows, so nothing can be said about drift.\n";
  }
  std::string text = "Against " + file + ": " + std::to_string(c.drifted.size()) + " drifted, " +
                     std::to_string(c.unchanged) + " agree, " + std::to_string(c.unrecorded) +
                     " are not in it.\n";
  for (const auto& line : c.drifted) text += "  " + line + "\n";
  return text;
}

int exit_code_of(const Comparison& c) {
  if (!c.drifted.empty()) return 1;
  return c.unchanged > 0 ? 0 : 2;
}

}  // namespace fa2::compare

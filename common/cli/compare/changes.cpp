// What each stage's change moved, before -> after, and what it did not.
#include "common/cli/compare/metrics.h"
#include "common/cli/compare/report.h"

namespace fa2::compare {
namespace {

/// Apart from the shared memory, which is one of the things that a change may move.
bool same_tile(const Record& a, const Record& b) {
  return a.tile && b.tile && label(*a.tile) == label(*b.tile);
}

Change change_of(const Record& r, const Record& parent, const View& view) {
  Change change;
  change.title = label(r) + " over " + label(parent);
  if (!same_tile(r, parent)) change.title += " (and another tile)";
  change.moved.heads = {"counter", "before", "after", "factor"};
  for (const Metric& m : metrics()) {
    const double before = m.value(parent), after = m.value(r);
    if (before == after) {
      // What neither of them does at all says nothing about the change.
      if (before != 0)
        change.unchanged += (change.unchanged.empty() ? "" : ", ") + std::string(m.name);
      continue;
    }
    change.moved.rows.push_back({m.name, m.show(before) + m.unit, m.show(after) + m.unit,
                                 cli::factor(before, after, view.charset)});
  }
  if (change.unchanged.empty()) change.unchanged = "nothing";
  return change;
}

}  // namespace

std::vector<Change> changes_of(const Group& group, const View& view) {
  std::vector<Change> changes;
  for (const Record* r : group) {
    const Record* parent = parent_of(*r, group);
    if (r->counters && parent && parent->counters) {
      changes.push_back(change_of(*r, *parent, view));
    }
  }
  return changes;
}

}  // namespace fa2::compare

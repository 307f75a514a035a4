#pragma once
// Which records stand in one table, and which row is held against which.
#include <vector>

#include "common/cli/compare/record.h"

namespace fa2::compare {

/// Records of the same problem: same backend, shape, dtype and tile mode, in the order of the
/// course.
using Group = std::vector<const Record*>;

std::vector<Group> groups_of(const std::vector<Record>& records);

/// True if there is something to compare: counters or a time.
bool has_measurement(const Record& r);

/// The row that `r` is one change away from, among the rows of its group that were measured:
/// the first variant of its own stage; of the stage that a variant file stands beside, the variant of
/// the same name, or else the first; or the nearest stage before it. nullptr if there is none.
const Record* parent_of(const Record& r, const Group& group);

/// True if `parent` is what the course calls r's parent, and not only the nearest that ran.
bool is_direct_parent(const Record& r, const Record& parent);

}  // namespace fa2::compare

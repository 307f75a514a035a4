#include "common/cli/compare/groups.h"

#include <algorithm>

namespace fa2::compare {
namespace {

bool same_group(const Record& a, const Record& b) {
  return a.backend == b.backend && a.shape == b.shape && a.dtype == b.dtype &&
         a.tile_mode == b.tile_mode && a.environment.gpu == b.environment.gpu;
}

/// "stage2_fa1/kv_outer" is a variant file beside stage2_fa1.
bool is_variant_file(const Record& r) { return r.stage.find('/') != std::string::npos; }
std::string folder(const Record& r) { return r.stage.substr(0, r.stage.find('/')); }

}  // namespace

std::vector<Group> groups_of(const std::vector<Record>& records) {
  std::vector<Group> groups;
  for (const Record& r : records) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return same_group(*g.front(), r); });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{});
    group->push_back(&r);
  }
  return groups;
}

bool has_measurement(const Record& r) { return r.counters || r.time_ms; }

const Record* parent_of(const Record& r, const Group& group) {
  const Record *nearest = nullptr, *first = nullptr;
  for (const Record* other : group) {
    if (other == &r) break;
    if (!has_measurement(*other) || is_variant_file(*other)) continue;
    if (other->stage == folder(r)) {
      if (first == nullptr) first = other;
      if (is_variant_file(r) && other->variant == r.variant) return other;
    }
    if (other->number < r.number && (!nearest || other->number > nearest->number)) nearest = other;
  }
  return first != nullptr ? first : nearest;
}

bool is_direct_parent(const Record& r, const Record& parent) {
  return parent.number == r.number || parent.number == r.number - 1;
}

}  // namespace fa2::compare

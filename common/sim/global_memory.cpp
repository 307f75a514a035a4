// Accesses to global memory: which array, bounds, alignment, counts of requested bytes.
#include "common/sim/machine.h"

namespace fa2::sim {

const GlobalArray* Machine::find_global(const void* address) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  const auto holds = [at](const GlobalArray& a) { return a.begin <= at && at < a.end; };
  if (last_global_ != nullptr && holds(*last_global_)) return last_global_;
  for (const GlobalArray& array : launch_->session->arrays())
    if (holds(array)) return last_global_ = &array;
  return nullptr;
}

std::byte* Machine::global_access(Lane& lane, const void* address, const GlobalArray* home,
                                  uint32_t bytes, bool write, Site site) {
  step(lane, site);
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  const auto what = [&] {
    return (write ? "writes " : "reads ") + std::to_string(bytes) + " bytes";
  };
  if (home == nullptr) home = find_global(address);
  if (home == nullptr) {
    if (at < 65536)
      fail(lane, {.rule = rule::null_pointer,
                  .summary = "a global pointer is null",
                  .action = what() + " at address " + std::to_string(at),
                  .fix = "was the argument passed? A workspace of 0 bytes is null too"});
    // Name the array that was probably meant: the nearest.
    const GlobalArray* nearest = nullptr;
    uint64_t distance = 0;
    for (const GlobalArray& array : launch_->session->arrays()) {
      const uint64_t d = at < array.begin ? array.begin - at : at - array.end;
      if (nearest == nullptr || d < distance) nearest = &array, distance = d;
    }
    Report report{.rule = rule::global_bounds,
                  .summary = "the address belongs to no array of this problem",
                  .action = what(),
                  .fix = "check the index, the strides and the rows behind the last one"};
    if (nearest != nullptr) {
      const bool before = at < nearest->begin;
      report.summary += "; the nearest is " + nearest->name + ", " + std::to_string(distance) +
                        " bytes " + (before ? "before its begin" : "behind its end");
      report.array = nearest->name;
      report.offset = static_cast<int64_t>(at - nearest->begin);
    }
    fail(lane, std::move(report));
  }
  const int64_t offset = static_cast<int64_t>(at - home->begin);
  const int64_t size = static_cast<int64_t>(home->end - home->begin);
  const auto report = [&](const char* rule, std::string summary, const char* fix) {
    return Report{.rule = rule,
                  .summary = std::move(summary),
                  .action = what() + " at byte " + std::to_string(offset) + " of " + home->name,
                  .array = home->name,
                  .offset = offset,
                  .fix = fix};
  };
  if (offset < 0 || offset + bytes > size)
    fail(lane,
         report(rule::global_bounds,
                "the access begins " +
                    (offset < 0 ? std::to_string(-offset) + " bytes before " + home->name
                     : offset >= size
                         ? std::to_string(offset - size) + " bytes behind the end of " + home->name
                         : "inside of " + home->name + " and reaches over its end") +
                    " (" + std::to_string(size) + " bytes)",
                "check the index, the strides and the rows behind the last one"));
  if (at % bytes != 0)
    fail(lane,
         report(rule::misaligned,
                "an access of " + std::to_string(bytes) + " bytes must be at a multiple of " +
                    std::to_string(bytes) + " bytes",
                "make the pointer, the strides and the column multiples of the access's size"));
  if (write && !home->writable)
    fail(lane, report(rule::read_only, home->name + " is an input of the kernel",
                      "write to O, LSE or the workspace"));
  (write ? counters.global_store_bytes : counters.global_load_bytes) += bytes;
  return static_cast<std::byte*>(const_cast<void*>(address));
}

}  // namespace fa2::sim

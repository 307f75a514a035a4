// Accesses to shared memory: bounds, alignment, order, counts.
#include <bit>

#include "common/sim/machine.h"

namespace fa2::sim {

uint32_t Machine::declare_array(Lane& lane, const SharedArray& array, Site site) {
  for (size_t i = 1; i < arrays_.size(); ++i)
    if (arrays_[i].begin == array.begin && arrays_[i].bytes == array.bytes &&
        arrays_[i].name == array.name)
      return static_cast<uint32_t>(i);
  lane.site = site;
  const uint64_t end = uint64_t{array.begin} + array.bytes;
  if (end > launch_->shared_bytes)
    fail(lane, {.rule = rule::shared_bounds,
                .summary = std::string(array.name) + " ends at byte " + std::to_string(end) +
                           " of shared memory, but the launch asks for " +
                           std::to_string(launch_->shared_bytes) + " bytes",
                .action = "declares it",
                .array = array.name,
                .fix = "launch with more shared memory, or mend the array's offset or size"});
  if (array.begin % array.element_bytes != 0)
    fail(lane,
         {.rule = rule::misaligned,
          .summary = std::string(array.name) + " begins at byte " + std::to_string(array.begin) +
                     " of shared memory, which is not a multiple of its elements' " +
                     std::to_string(array.element_bytes) + " bytes",
          .action = "declares it",
          .array = array.name,
          .fix = "round the array's offset up"});
  arrays_.push_back(array);
  return static_cast<uint32_t>(arrays_.size() - 1);
}

// "K_smem[128]": by element; negative indices and those past the end are shown as they are.
std::string Machine::element(const SharedArray& array, int64_t address) const {
  const int64_t offset = address - array.begin, size = array.element_bytes;
  if (offset % size == 0) return array.name + ("[" + std::to_string(offset / size)) + "]";
  return std::string(array.name) + " + " + std::to_string(offset) + " bytes";
}

void Machine::check_bounds(Lane& lane, uint32_t address, uint32_t array, uint32_t bytes,
                           const char* verb) {
  const SharedArray& a = array_of(array);
  // Addresses wrap around as on the GPU; a negative one is meant as such.
  const int64_t at = static_cast<int32_t>(address);
  if (at < a.begin || at + bytes > int64_t{a.begin} + a.bytes) {
    const int64_t past = at - (int64_t{a.begin} + a.bytes);
    Report report{
        .rule = rule::shared_bounds,
        .summary = array == 0  ? "the address belongs to no array that dyn_smem has declared"
                   : past >= 0 ? "the access begins " + std::to_string(past) +
                                     " bytes behind the end of " + a.name + " (" +
                                     std::to_string(a.bytes / a.element_bytes) + " elements)"
                   : at < a.begin ? "the access begins " + std::to_string(a.begin - at) +
                                        " bytes before " + a.name
                                  : "the access reaches over the end of " + std::string(a.name),
        .action = std::string(verb) + " " + std::to_string(bytes) + " bytes of " +
                  (array == 0 ? "shared memory" : element(a, at)),
        .array = a.name,
        .offset = at - a.begin,
        .fix = "check the index against the array's size, or the size given to dyn_smem"};
    fail(lane, std::move(report));
  }
  if (address % bytes != 0)
    fail(lane, {.rule = rule::misaligned,
                .summary = "an access of " + std::to_string(bytes) +
                           " bytes must be at a multiple of " + std::to_string(bytes) + " bytes",
                .action = std::string(verb) + " " + element(a, at) + ", byte " +
                          std::to_string(at) + " of shared memory",
                .array = a.name,
                .offset = at - a.begin,
                .fix = "make the row length and the column a multiple of the access's size"});
}

void Machine::fail_conflict(Lane& lane, const Conflict& conflict, uint32_t address, uint32_t array,
                            uint32_t bytes, const char* verb) {
  const SharedArray& a = array_of(array);
  const uint32_t threads = static_cast<uint32_t>(threads_);
  const Lane& other = lanes_[conflict.other % threads];
  const bool own = &other == &lane, copied = conflict.other >= threads;
  Report report{.action = std::string(verb) + " " + std::to_string(bytes) + " bytes of " +
                          element(a, address),
                .array = a.name,
                .offset = int64_t{address} - a.begin};
  if (conflict.kind != Conflict::unwritten)
    describe_other(report, other), report.other_at(conflict.other_site);
  const bool same_warp = other.warp == lane.warp;
  const std::string barrier = same_warp ? "warp_barrier()" : "block_barrier()";
  const std::string why =
      same_warp
          ? " (both threads are in one warp; block_barrier() is for different warps)"
          : " (the threads are in different warps; warp_barrier() orders one warp only), or, if "
            "the element should be one warp's own affair, mend who reads or writes it";
  switch (conflict.kind) {
    case Conflict::unwritten:
      report.rule = rule::unwritten;
      report.summary = "nobody has written this element in this block";
      report.fix =
          "write it first, padding too, and put a barrier between the write and this read: "
          "warp_barrier() if one warp does both, else block_barrier()";
      break;
    case Conflict::in_flight:
      report.rule = rule::in_flight;
      report.summary = own ? "the thread's own copy to this element has not been waited for"
                           : "another thread's copy to this element has not been waited for";
      report.other_action = "started the copy";
      report.fix =
          own ? "cp_async_wait<N>() must cover this copy: is its group committed, and is N "
                "small enough?"
              : "the thread that copies must cp_async_wait<N>(), then a block_barrier() "
                "must follow before others use the tile";
      break;
    case Conflict::read_after_write:
    case Conflict::write_after_write:
      if (copied) {
        report.rule = rule::in_flight;
        report.summary =
            "an mbarrier announces the copy to this element, and this thread has not "
            "waited for it";
        report.other_action = "started the copy";
        report.fix =
            "mbarrier_wait() on the mbarrier that cp_async_arrive() was given, with the "
            "parity of this phase";
        break;
      }
      report.rule = rule::race;
      report.summary = conflict.kind == Conflict::read_after_write
                           ? "one thread reads what another writes, and nothing orders the two"
                           : "two threads write the same element, and nothing orders the two";
      report.other_action = "wrote it";
      report.fix = "put " + barrier + " between the two" + why;
      break;
    case Conflict::write_after_read:
      report.rule = rule::race;
      report.summary = "one thread overwrites what another reads, and nothing orders the two";
      report.other_action = "read it";
      report.fix = "put " + barrier + " between the two: all readers must be done first" + why;
      break;
    case Conflict::none:
      break;
  }
  fail(lane, std::move(report));
}

std::byte* Machine::shared_access(Lane& lane, uint32_t address, uint32_t array, uint32_t bytes,
                                  bool write, Site site) {
  step(lane, site);
  const char* verb = write ? "writes" : "reads";
  check_bounds(lane, address, array, bytes, verb);
  const int use = array_of(array).use;
  (write ? stored_ : loaded_)[use] += bytes;
  lane.log.entries.push_back({site, address, static_cast<uint8_t>(bytes),
                              write ? LogKind::store : LogKind::load, static_cast<uint8_t>(use)});
  const Conflict conflict =
      write ? shadow_.write(address, bytes, lane, site) : shadow_.read(address, bytes, lane, site);
  if (conflict) fail_conflict(lane, conflict, address, array, bytes, verb);
  if (lane.log.full()) {
    lane.state = State::log_full;
    lane.warp->full |= 1u << lane.index;
    pause(lane);
  }
  return shared_.get() + address;
}

const std::byte* Machine::matrix_row(Lane& lane, uint32_t address, uint32_t array) {
  check_bounds(lane, address, array, 16, "reads");
  const Conflict conflict = shadow_.read(address, 16, lane, lane.site);
  if (conflict) fail_conflict(lane, conflict, address, array, 16, "reads");
  return shared_.get() + address;
}

void Machine::count_matrices(uint32_t array, uint32_t wavefronts) {
  const int use = array_of(array).use;
  loaded_[use] += 512;
  banks_.taken[use] += wavefronts;
  banks_.ideal[use] += 4;
}

}  // namespace fa2::sim

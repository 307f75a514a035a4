// cp.async, and the mbarriers that can announce its end.
//
// A copy happens where it is waited for, not where it starts: until then nobody may look at its
// destination. It then counts as a write of the thread that waits; for others a barrier must
// follow.
#include <cstring>

#include "common/sim/machine.h"

namespace fa2::sim {

void Machine::copy_async(Lane& lane, uint32_t to, uint32_t array, const void* from,
                         const GlobalArray* home, bool valid, Site site) {
  if (valid)
    global_access(lane, from, home, 16, false, site);  // counts the bytes, too
  else
    step(lane, site);
  check_bounds(lane, to, array, 16, "copies to");
  ++counters.cp_async;
  stored_[array_of(array).use] += 16;
  if (const Conflict conflict = shadow_.begin_copy(to, lane, site))
    fail_conflict(lane, conflict, to, array, 16, "copies to");
  lane.copies.push_back({to, lane.groups, valid ? from : nullptr, site, 0});
}

void Machine::land(Lane& lane, AsyncCopy& copy, uint32_t writer, uint32_t clock) {
  std::byte* to = shared_.get() + copy.to;
  if (copy.from == nullptr)
    std::memset(to, 0, 16);
  else
    std::memcpy(to, copy.from, 16);
  shadow_.land_copy(copy.to, writer, clock);
  (void)lane;
}

void Machine::copy_wait(Lane& lane, uint32_t pending_groups, Site site) {
  step(lane, site);
  if (recording_) [[unlikely]]
    recorder_.awaited_copies(lane.warp->index);
  size_t done = 0;
  for (; done < lane.copies.size(); ++done) {
    AsyncCopy& copy = lane.copies[done];
    if (copy.group + pending_groups >= lane.groups) break;
    if (copy.landed == 0)
      land(lane, copy, static_cast<uint32_t>(lane.id), lane.warp->clock);
    else
      lane.own_copies_known = std::max(lane.own_copies_known, copy.landed);
  }
  lane.copies.erase(lane.copies.begin(), lane.copies.begin() + static_cast<long>(done));
}

void Machine::check_finished(Lane& lane) {
  for (const AsyncCopy& copy : lane.copies) {
    if (copy.landed != 0) continue;
    Report report{.rule = rule::never_waited,
                  .summary = "a thread exits while its copy is in flight",
                  .action = "started the copy",
                  .fix = copy.group == lane.groups
                             ? "cp_async_commit() the copy's group, and cp_async_wait<0>() before "
                               "the kernel ends"
                             : "cp_async_wait<0>() before the kernel ends"};
    report.at(copy.site);
    fail(lane, std::move(report));
  }
}

// ---- mbarriers ----------------------------------------------------------------------------------

void Machine::mbarrier_init(Lane& lane, uint32_t address, uint32_t array, int arrivals, Site site) {
  step(lane, site);
  check_bounds(lane, address, array, 8, "initializes");
  if (const Conflict conflict = shadow_.write(address, 8, lane, site))
    fail_conflict(lane, conflict, address, array, 8, "initializes");
  if (arrivals <= 0)
    fail(lane, {.rule = rule::mbarrier,
                .summary = "an mbarrier cannot count " + std::to_string(arrivals) + " arrivals",
                .action = "initializes it",
                .fix = "give the number of arrivals that complete a phase"});
  Mbarrier* mbarrier = nullptr;
  for (Mbarrier& m : mbarriers_)
    if (m.address == address) mbarrier = &m;
  if (mbarrier == nullptr) mbarrier = &mbarriers_.emplace_back();
  *mbarrier = {};
  mbarrier->address = address;
  mbarrier->count = mbarrier->pending = arrivals;
  mbarrier->init_site = site;
}

// The mbarrier that a thread uses. It must have been initialized, and the thread ordered after
// that.
Mbarrier& Machine::mbarrier_at(Lane& lane, uint32_t address, uint32_t array, const char* verb,
                               Site site) {
  check_bounds(lane, address, array, 8, verb);
  for (Mbarrier& mbarrier : mbarriers_) {
    if (mbarrier.address != address) continue;
    if (const Conflict conflict = shadow_.read(address, 8, lane, site)) {
      Report report{.rule = rule::mbarrier,
                    .summary = "nothing orders this use of the mbarrier after its initialization",
                    .action = std::string(verb) + " " + element(array_of(array), address),
                    .other_action = "initialized it",
                    .array = array_of(array).name,
                    .offset = int64_t{address} - array_of(array).begin,
                    .fix = "put block_barrier() behind mbarrier_init()"};
      describe_other(report, lanes_[conflict.other % static_cast<uint32_t>(threads_)]);
      report.other_at(conflict.other_site);
      fail(lane, std::move(report));
    }
    return mbarrier;
  }
  fail(lane, {.rule = rule::mbarrier,
              .summary = "there is no mbarrier here: nobody has initialized it",
              .action = std::string(verb) + " " + element(array_of(array), address),
              .array = array_of(array).name,
              .offset = int64_t{address} - array_of(array).begin,
              .fix = "one thread must mbarrier_init() it, then a block_barrier()"});
}

void Machine::count_mbarrier_arrival(Mbarrier& mbarrier) {
  if (--mbarrier.pending != 0) return;
  mbarrier.pending = mbarrier.count;
  ++mbarrier.phase;
  clocks_.mbarrier_complete(mbarrier.order);
  for (int i = 0; i < threads_; ++i) {
    Lane& lane = lanes_[i];
    if (lane.state != State::at_mbarrier || lane.mbarrier != mbarrier.address) continue;
    if (mbarrier.phase % 2 != lane.parity) lane.warp->set_ready(lane);
  }
}

void Machine::mbarrier_arrive(Lane& lane, uint32_t address, uint32_t array, bool after_copies,
                              Site site) {
  step(lane, site);
  Mbarrier& mbarrier = mbarrier_at(lane, address, array, "arrives at", site);
  if (after_copies) {
    // The copies become events of the thread's asynchronous half, which only this mbarrier
    // releases.
    const uint32_t clock = lane.warp->clock;
    for (AsyncCopy& copy : lane.copies) {
      if (copy.landed != 0) continue;
      land(lane, copy, static_cast<uint32_t>(threads_ + lane.id), clock);
      copy.landed = clock;
    }
    clocks_.mbarrier_arrive_copies(mbarrier.order, lane);
  } else {
    clocks_.mbarrier_arrive(mbarrier.order, lane);
  }
  count_mbarrier_arrival(mbarrier);
}

void Machine::mbarrier_wait(Lane& lane, uint32_t address, uint32_t array, int parity, Site site) {
  step(lane, site);
  Mbarrier& mbarrier = mbarrier_at(lane, address, array, "waits at", site);
  lane.log.entries.push_back({site, address, 8, LogKind::mbarrier_wait, 3});
  if (mbarrier.phase % 2 == (parity & 1)) {
    lane.mbarrier = address;
    lane.parity = parity & 1;
    lane.state = State::at_mbarrier;
    pause(lane);
  }
  clocks_.mbarrier_acquire(mbarrier_at(lane, address, array, "waits at", site).order, lane);
}

}  // namespace fa2::sim

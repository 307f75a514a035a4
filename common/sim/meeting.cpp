// Where threads meet: block barriers, and the rendezvous of a warp's collectives.
#include <bit>

#include "common/sim/machine.h"

namespace fa2::sim {

void Machine::block_barrier(Lane& lane, Site site) {
  step(lane, site);
  if (at_barrier_ != 0 && first_at_barrier_->site != site) {
    Report report{.rule = rule::divergence,
                  .summary = "threads of one block wait at different barriers",
                  .action = "reached block_barrier",
                  .other_action = "waits in block_barrier",
                  .fix =
                      "every thread must reach the same block_barrier(): move it out of the if, "
                      "or make the condition the same for the whole block"};
    describe_other(report, static_cast<uint32_t>(first_at_barrier_->id), first_at_barrier_->site);
    fail(lane, std::move(report));
  }
  if (at_barrier_++ == 0) first_at_barrier_ = &lane;
  lane.state = State::at_block_barrier;
  lane.warp->ready &= ~(1u << lane.turn);
  release_block_barrier_if_complete();
  if (lane.state != State::running) pause(lane);
}

// Threads that have exited need not come.
void Machine::release_block_barrier_if_complete() {
  if (at_barrier_ == 0 || at_barrier_ + exited_ != threads_) return;
  ++counters.block_barriers;
  at_barrier_ = 0;
  for (Warp& warp : warps_) {
    zip_logs(warp, banks_);
    for (int i = 0; i < warp.size; ++i)
      if (warp.lanes[i].state == State::at_block_barrier) warp.set_ready(warp.lanes[i]);
  }
  clocks_.block_barrier(warps_);
}

void Machine::collective(Lane& lane, const Operation& operation, uint32_t mask, void* operands,
                         Site site) {
  step(lane, site);
  Warp& warp = *lane.warp;
  lane.operation = &operation;
  lane.mask = mask;
  warp.operands[lane.index] = operands;
  // The usual case, fast: the whole warp meets on one line.
  constexpr uint32_t everybody = 0xffffffffu;
  if (mask == everybody && warp.alive() == everybody) {
    if (warp.waiting != 0) {
      const Lane& first = warp.lanes[std::countr_zero(warp.waiting)];
      if (first.operation != &operation || first.mask != mask || first.site != site)
        check_partners(lane);
    }
    warp.waiting |= 1u << lane.index;
    if (warp.waiting != everybody) return pause(lane);
    zip_logs(warp, banks_);
    warp.waiting = 0;
    operation.execute(warp, everybody);
    warp.ready = everybody;
    return;
  }
  check_partners(lane);
  warp.waiting |= 1u << lane.index;
  warp.ready &= ~(1u << lane.turn);
  complete_collectives(warp);
  if ((warp.waiting >> lane.index & 1) != 0) pause(lane);
}

// Whoever waits for this lane, or is waited for by it, must be in the same collective.
void Machine::check_partners(Lane& lane) {
  Warp& warp = *lane.warp;
  const uint32_t bit = 1u << lane.index;
  const std::string name = lane.operation->name;
  if ((lane.mask & bit) == 0)
    fail(lane,
         {.rule = rule::wrong_mask,
          .summary = "a lane calls " + name + " with a mask that does not name the lane itself",
          .action = "called it",
          .fix = "use the full mask 0xffffffff, and let all 32 lanes call it"});
  for (uint32_t rest = warp.waiting; rest != 0; rest &= rest - 1) {
    const Lane& other = warp.lanes[std::countr_zero(rest)];
    if ((other.mask & bit) == 0 && (lane.mask >> other.index & 1) == 0) continue;  // another group
    const bool same_line = lane.operation->any_line || other.site == lane.site;
    if (other.operation == lane.operation && other.mask == lane.mask && same_line) continue;
    const bool masks = other.operation == lane.operation && same_line;
    Report report{
        .rule = masks ? rule::wrong_mask : rule::collective,
        .summary = masks ? "lanes of one warp call " + name + " with different masks"
                         : "lanes of one warp are in different collectives",
        .action = "called " + name,
        .other_action = "waits in " + std::string(other.operation->name),
        .fix =
            "all lanes of a warp must call the same collective on the same line: move it out of "
            "the if, and compute the operands inside"};
    describe_other(report, static_cast<uint32_t>(other.id), other.site);
    fail(lane, std::move(report));
  }
}

// Executes the collectives whose lanes are all there.
void Machine::complete_collectives(Warp& warp) {
  for (uint32_t groups = warp.waiting; groups != 0;) {
    Lane& first = warp.lanes[std::countr_zero(groups)];
    const Operation& operation = *first.operation;
    const uint32_t missing = first.mask & ~warp.alive();
    if (operation.whole_warp && missing != 0) {
      const int other = std::countr_zero(missing);
      Report report{.rule = rule::missing_lanes,
                    .summary = std::string(operation.name) + " needs all 32 lanes of the warp",
                    .action = "called it",
                    .fix =
                        "do not let lanes return, or skip it, before the warp's last "
                        "collective; make the block a multiple of 32 threads"};
      if (other < warp.size) {
        report.other_action = "has exited; its last operation was";
        describe_other(report, static_cast<uint32_t>(warp.lanes[other].id), warp.lanes[other].site);
      } else {
        report.notes.push_back("the warp has only " + std::to_string(warp.size) + " threads");
      }
      fail(first, std::move(report));
    }
    const uint32_t expected = first.mask & warp.alive();
    groups &= ~first.mask;
    if ((warp.waiting & expected) != expected) continue;
    if (expected == warp.alive()) zip_logs(warp, banks_);
    warp.waiting &= ~expected;
    operation.execute(warp, expected);
    for (uint32_t rest = expected; rest != 0; rest &= rest - 1)
      warp.set_ready(warp.lanes[std::countr_zero(rest)]);
  }
}

}  // namespace fa2::sim

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
    describe_other(report, *first_at_barrier_);
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
  if (recording_ && running() != nullptr) [[unlikely]]
    settle_steps(*this_lane()->warp);
  for (Warp& warp : warps_) {
    zip_logs(warp, banks_);
    if (warp.alive() != 0) end_step(warp, "block_barrier");
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
  if (mask == everybody && warp.alive() == everybody && warp.partial == 0) {
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
    end_step(warp, operation.name);
    warp.ready = everybody;
    return;
  }
  check_partners(lane);
  warp.waiting |= 1u << lane.index;
  if (mask != everybody) warp.partial |= 1u << lane.index;
  warp.ready &= ~(1u << lane.turn);
  complete_collectives(warp);
  if ((warp.waiting >> lane.index & 1) != 0) pause(lane);
}

// Lanes that name each other in one mask must be in the same collective. (With another mask a lane
// may come here later: if it never does, that is found when nobody can go on.)
void Machine::check_partners(Lane& lane) {
  Warp& warp = *lane.warp;
  const std::string name = lane.operation->name;
  if ((lane.mask >> lane.index & 1) == 0)
    fail(lane,
         {.rule = rule::wrong_mask,
          .summary = "a lane calls " + name + " with a mask that does not name the lane itself",
          .action = "called it",
          .fix = "use the full mask 0xffffffff, and let all 32 lanes call it"});
  for (uint32_t rest = warp.waiting & lane.mask; rest != 0; rest &= rest - 1) {
    const Lane& other = warp.lanes[std::countr_zero(rest)];
    if (other.mask != lane.mask) continue;
    if (other.operation == lane.operation && (lane.operation->any_line || other.site == lane.site))
      continue;
    Report report{
        .rule = rule::collective,
        .summary = "lanes of one warp are in different collectives",
        .action = "called " + name,
        .other_action = "waits in " + std::string(other.operation->name),
        .fix =
            "all lanes of a warp must call the same collective on the same line: move it out of "
            "the if, and compute the operands inside"};
    describe_other(report, other);
    fail(lane, std::move(report));
  }
}

// Nobody can go on. Is that because two lanes of a warp wait for each other with different masks?
std::optional<Report> Machine::mask_report() const {
  for (const Warp& warp : warps_)
    for (uint32_t rest = warp.waiting; rest != 0; rest &= rest - 1) {
      const Lane& lane = warp.lanes[std::countr_zero(rest)];
      for (uint32_t others = warp.waiting & lane.mask; others != 0; others &= others - 1) {
        const Lane& other = warp.lanes[std::countr_zero(others)];
        if (other.mask == lane.mask) continue;
        Report report{.rule = rule::wrong_mask,
                      .summary = "lanes of one warp wait for each other with different masks",
                      .action = "waits in " + std::string(lane.operation->name),
                      .other_action = "waits in " + std::string(other.operation->name),
                      .fix =
                          "all lanes that a mask names must call the collective with that mask: "
                          "use the full mask 0xffffffff"};
        describe_other(report, other);
        complete(report, &lane);
        return report;
      }
    }
  return std::nullopt;
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
        describe_other(report, warp.lanes[other]);
      } else {
        report.notes.push_back("the warp has only " + std::to_string(warp.size) + " threads");
      }
      fail(first, std::move(report));
    }
    uint32_t group = 0;  // who is there with this mask
    for (uint32_t rest = groups & first.mask; rest != 0; rest &= rest - 1)
      if (warp.lanes[std::countr_zero(rest)].mask == first.mask) group |= rest & (0u - rest);
    groups &= ~group;
    if (group != (first.mask & warp.alive())) continue;
    if (group == warp.alive()) zip_logs(warp, banks_);
    warp.waiting &= ~group;
    warp.partial &= ~group;
    operation.execute(warp, group);
    end_step(warp, operation.name);
    for (uint32_t rest = group; rest != 0; rest &= rest - 1)
      warp.set_ready(warp.lanes[std::countr_zero(rest)]);
  }
}

}  // namespace fa2::sim

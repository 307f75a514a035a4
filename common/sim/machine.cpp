#include "common/sim/machine.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include "common/sim/symbol_name.h"

namespace fa2::sim {

namespace {

// Thrown through a fiber whose block has failed.
struct Abandoned {};

// splitmix64: a small generator of well-mixed numbers.
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// The order in which `count` things take turns.
void fill_order(uint8_t* order, int count, Order kind, uint64_t& random) {
  for (int i = 0; i < count; ++i)
    order[i] = static_cast<uint8_t>(kind == Order::reverse ? count - 1 - i : i);
  if (kind != Order::random) return;
  for (int i = count - 1; i > 0; --i)
    std::swap(order[i], order[next_random(random) % static_cast<uint64_t>(i + 1)]);
}

}  // namespace

Machine::Machine() : emergency_stack_(std::make_unique<char[]>(emergency_bytes)) {}
Machine::~Machine() = default;

void Machine::begin_launch(const Launch& launch) {
  launch_ = &launch;
  scheduler_.drop();  // it stands for the OS thread, which may be another one now
  threads_ = launch.threads();
  if (threads_ > lane_capacity_) {
    lanes_ = std::make_unique<Lane[]>(static_cast<size_t>(threads_));
    stacks_ = std::make_unique<Stacks>(threads_);
    lane_capacity_ = threads_;
  }
  if (launch.shared_bytes > shared_capacity_) {
    shared_capacity_ = launch.shared_bytes;
    shared_ = std::make_unique<std::byte[]>(shared_capacity_);
  }
  warps_.resize(static_cast<size_t>((threads_ + warp_size - 1) / warp_size));
  for (size_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.machine = this;
    warp.index = static_cast<int>(w);
    warp.lanes = &lanes_[w * warp_size];
    warp.size = std::min(warp_size, threads_ - static_cast<int>(w) * warp_size);
    warp.exists = warp.size == warp_size ? ~0u : (1u << warp.size) - 1;
  }
  warp_order_.resize(warps_.size());
  for (int i = 0; i < threads_; ++i) {
    Lane& lane = lanes_[i];
    lane.machine = this;
    lane.counters = &counters;
    lane.warp = &warps_[static_cast<size_t>(i / warp_size)];
    lane.id = i;
    lane.index = static_cast<uint8_t>(i % warp_size);
    const unsigned t = static_cast<unsigned>(i), x = launch.block[0], y = launch.block[1];
    lane.thread = {t % x, t / x % y, t / x / y};
  }
  if (clocks_.about_to_overflow()) clocks_.restart();
  shadow_.begin_launch(launch.shared_bytes);
  arrays_.clear();
  last_global_ = nullptr;
}

bool Machine::run_block(uint64_t number) {
  const Index3& grid = launch_->grid;
  block_ = {static_cast<unsigned>(number % grid[0]),
            static_cast<unsigned>(number / grid[0] % grid[1]),
            static_cast<unsigned>(number / grid[0] / grid[1])};
  const Config& config = launch_->session->config();
  random_ = config.seed * 0x100000001b3u + number;

  steps_.store(steps() + 1, std::memory_order_relaxed);  // a block is progress, too
  last_step_ = steps() + config.step_limit;
  stall_attempts_ = 0;
  report_.reset();
  counters = {};
  counters.blocks = 1;
  std::fill_n(loaded_, uses, 0);
  std::fill_n(stored_, uses, 0);
  banks_ = {};
  recording_ = config.observer != nullptr && config.observer->wants_steps();
  if (recording_) recorder_.begin_block(config.observer, number, warps_.size());
  if (launch_->shared_bytes != 0) std::memset(shared_.get(), 0xff, launch_->shared_bytes);
  arrays_.assign(1, {});
  mbarriers_.clear();
  exited_ = at_barrier_ = 0;

  clocks_.begin_block(warps_, threads_);
  if (clocks_.block_start() == 1) shadow_.begin_launch(launch_->shared_bytes);
  shadow_.begin_block();
  fill_order(warp_order_.data(), static_cast<int>(warps_.size()), config.order, random_);
  for (Warp& warp : warps_) {
    warp.exited = warp.waiting = warp.partial = warp.full = warp.ready = 0;
    uint8_t order[warp_size];
    fill_order(order, warp_size, config.order, random_);
    for (uint8_t turn = 0; turn < warp_size; ++turn) {
      warp.lane_of_turn[turn] = order[turn];
      if (order[turn] < warp.size) warp.lanes[order[turn]].turn = turn;
    }
    for (int i = 0; i < warp.size; ++i) start_lane(warp.lanes[i]);
  }
  schedule();
  for (int i = 0; i < threads_; ++i) lanes_[i].context.drop();
  return !report_;
}

void Machine::start_lane(Lane& lane) {
  lane.log.entries.clear();
  lane.log.limit = AccessLog::capacity;
  lane.copies.clear();
  lane.groups = 0;
  lane.acquired = nullptr;
  lane.own_copies_known = 0;
  lane.site = launch_->site;
  lane.context.start(stacks_->bottom(lane.id), stacks_->top(lane.id), [&lane]() -> Context* {
    Machine& machine = *lane.machine;
    std::string thrown;
    try {
      machine.launch_->body(machine.launch_->arguments);
      return machine.finish_lane(lane);
    } catch (const Abandoned&) {
      return &machine.scheduler_;
    } catch (const std::exception& error) {
      thrown = error.what();
    } catch (...) {
      thrown = "of an unknown type";
    }
    machine.record({.rule = rule::crash,
                    .summary = "the kernel threw an exception: " + thrown,
                    .action = "threw it",
                    .fix = "device code cannot throw; a GPU has no exceptions"},
                   lane);
    return &machine.scheduler_;
  });
  lane.warp->set_ready(lane);
}

// ---- Turns --------------------------------------------------------------------------------------

// Where to go on when `lane` cannot.
Context& Machine::next_context(Lane& lane) {
  Warp& warp = *lane.warp;
  if (warp.ready == 0) return scheduler_;
  Lane& next = warp.next_after(lane.turn);
  running() = &next;
  return next.context;
}

void Machine::pause(Lane& lane) {
  lane.warp->ready &= ~(1u << lane.turn);
  Context& next = next_context(lane);
  if (&next != &lane.context) Context::switch_to(lane.context, next);
}

Context* Machine::finish_lane(Lane& lane) {
  Warp& warp = *lane.warp;
  check_finished(lane);
  lane.state = State::exited;
  warp.ready &= ~(1u << lane.turn);
  warp.exited |= 1u << lane.index;
  ++exited_;
  if (warp.waiting != 0) complete_collectives(warp);  // perhaps only this lane was awaited
  if (warp.alive() == 0) {
    zip_logs(warp, banks_);
    end_step(warp, "exit");
  }
  release_block_barrier_if_complete();
  return &next_context(lane);
}

// The next warp that can run. One that only waits for room in its logs can.
Warp* Machine::next_warp() {
  for (const uint8_t w : warp_order_)
    if (warps_[w].ready != 0) return &warps_[w];
  for (const uint8_t w : warp_order_) {
    Warp& warp = warps_[w];
    if (warp.full == 0) continue;
    // A lane at an mbarrier may still add to what the others logged, and whether it is still there
    // depends on the order of turns: then the full logs must grow instead.
    bool at_mbarrier = false;
    for (int i = 0; i < warp.size; ++i) at_mbarrier |= warp.lanes[i].state == State::at_mbarrier;
    if (!at_mbarrier) zip_full_logs(warp, banks_);
    for (uint32_t rest = warp.full; rest != 0; rest &= rest - 1) {
      Lane& lane = warp.lanes[std::countr_zero(rest)];
      if (at_mbarrier) lane.log.limit += AccessLog::capacity;
      warp.set_ready(lane);
    }
    warp.full = 0;
    return &warp;
  }
  return nullptr;
}

void Machine::schedule() {
  while (!report_ && exited_ < threads_) {
    Warp* warp = next_warp();
    if (warp == nullptr) {
      report_ = deadlock_report();
      break;
    }
    Lane& lane = warp->next_after(warp_size - 1);
    running() = &lane;
    Context::switch_to(scheduler_, lane.context);
    running() = nullptr;
    if (recording_) [[unlikely]]
      settle_steps(*warp);
  }
}

void Machine::fail_endless(Lane& lane) {
  fail(lane, {.rule = rule::endless,
              .summary = "the block has executed " +
                         std::to_string(launch_->session->config().step_limit) +
                         " primitives and is still running",
              .action = "was",
              .fix = "look at the loop around this line: does its condition ever become false? (A "
                     "problem that is really this large needs a higher step limit.)"});
}

// ---- Mistakes -----------------------------------------------------------------------------------

void Machine::complete(Report& report, const Lane* lane) const {
  report.kernel = symbol_name(launch_->kernel);
  if (report.kernel.empty())
    report.kernel = "launched at " + std::string(launch_->site.file()) + ":" +
                    std::to_string(launch_->site.line());
  report.block = block_;
  if (lane == nullptr) return;
  report.has_thread = true;
  report.thread = lane->thread;
  if (report.line == 0) report.at(lane->site);
}

void Machine::record(Report report, const Lane& lane) {
  complete(report, &lane);
  report_ = std::move(report);
}

// Unwinds the fiber, whoever's it is (the lane that arrives last at a collective works for others);
// the other fibers are dropped where they are.
void Machine::fail(Lane& lane, Report report) {
  record(std::move(report), lane);
  throw Abandoned();
}

void Machine::abandon_running() {
  Machine& machine = *this_lane()->machine;
  Context::moved_to_stack(machine.emergency_stack_.get(), emergency_bytes);
  machine.record_fault(*this_lane());
  Context never_resumed;  // what was interrupted cannot be unwound
  Context::switch_to(never_resumed, machine.scheduler_);
  std::terminate();
}

void Machine::record_fault(const Lane& lane) {
  Report report{.rule = rule::crash, .action = "was in or behind its operation"};
  if (fault_.signal == SIGURG) {
    report.rule = rule::endless;
    report.summary = "a thread computes on and on without reading, writing or waiting for anything";
    report.fix = "look at the loop behind this line: does its condition ever become false?";
  } else if (fault_.signal == SIGFPE) {
    report.summary = "an integer was divided by zero (a GPU returns an unspecified number)";
    report.fix = "look for / and % behind this line whose right side can be 0";
  } else if (stacks_->guard_of(reinterpret_cast<const void*>(fault_.address)) >= 0) {
    report.summary = "the thread's stack of " + std::to_string(Stacks::usable_bytes() / 1024) +
                     " KiB overflowed, or an index ran out of an array in registers";
    report.fix = "look for endless recursion, a very large local array, or an index past its end";
  } else {
    report.summary = "the thread used a bad address (signal " + std::to_string(fault_.signal) + ")";
    report.fix =
        "look for an index past the end of an array in registers, or for a plain pointer: "
        "memory belongs behind gptr and sptr";
  }
  record(std::move(report), lane);
}

void Machine::describe_other(Report& report, const Lane& other) {
  report.has_other = true;
  report.other_thread = other.thread;
  report.other_at(other.site);
}

Report Machine::deadlock_report() const {
  if (std::optional<Report> masks = mask_report()) return *std::move(masks);
  // Threads that wait for the same thing at the same line are one note.
  std::map<std::string, std::vector<int>> waiting;
  const Lane* somebody = nullptr;
  for (int i = 0; i < threads_; ++i) {
    const Lane& lane = lanes_[i];
    std::string where = "have exited";
    if (lane.state != State::exited) {
      if (somebody == nullptr) somebody = &lane;
      where = lane.state == State::at_block_barrier ? "wait in block_barrier"
              : lane.state == State::at_mbarrier
                  ? "wait in mbarrier_wait (parity " + std::to_string(lane.parity) + ")"
                  : std::string("wait in ") + lane.operation->name;
      where += " at " + std::string(lane.site.file()) + ":" + std::to_string(lane.site.line());
    }
    waiting[where].push_back(i);
  }
  Report report{.rule = rule::deadlock,
                .summary = "every thread that is left waits for another one",
                .action = "waits",
                .fix =
                    "let all threads reach the same barriers and collectives, the same number "
                    "of times: look for one inside an if or after a return"};
  for (const auto& [where, threads] : waiting) {
    std::string list;
    for (size_t i = 0; i < threads.size();) {
      size_t last = i;
      while (last + 1 < threads.size() && threads[last + 1] == threads[last] + 1) ++last;
      list += (list.empty() ? "" : ", ") + std::to_string(threads[i]) +
              (last > i ? "-" + std::to_string(threads[last]) : "");
      i = last + 1;
    }
    report.notes.push_back("threads " + list + " " + where);
  }
  complete(report, somebody);
  return report;
}

// A warp's lanes run until none of them can go on: what was counted meanwhile is the warp's.
void Machine::settle_steps(const Warp& warp) {
  fa2_counters now{};
  add_counters(now);
  recorder_.settle(warp.index, now);
}

void Machine::record_step(const Warp& warp, const char* operation) {
  settle_steps(warp);
  recorder_.emit(warp.index, operation);
}

void Machine::add_counters(fa2_counters& sum) const {
  fa2_counters block = counters;
  block.shared_load_bytes_tiles = loaded_[0];
  block.shared_load_bytes_statistics = loaded_[1];
  block.shared_load_bytes_partial_o = loaded_[2];
  block.shared_store_bytes_tiles = stored_[0];
  block.shared_store_bytes_statistics = stored_[1];
  block.shared_store_bytes_partial_o = stored_[2];
  block.shared_wavefronts_tiles = banks_.taken[0];
  block.shared_wavefronts_statistics = banks_.taken[1];
  block.shared_wavefronts_partial_o = banks_.taken[2];
  block.shared_wavefronts_ideal_tiles = banks_.ideal[0];
  block.shared_wavefronts_ideal_statistics = banks_.ideal[1];
  block.shared_wavefronts_ideal_partial_o = banks_.ideal[2];
  block.mbarrier_waits = banks_.mbarrier_waits;
#define FA2_ADD(name, meaning) sum.name += block.name;
  FA2_COUNTERS(FA2_ADD)
#undef FA2_ADD
}

}  // namespace fa2::sim

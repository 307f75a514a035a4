#include "common/sim/clocks.h"

#include <algorithm>
#include <bit>

#include "common/sim/lane.h"

namespace fa2::sim {
namespace {

void join(Knowledge& into, const Knowledge& from) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

void Clocks::begin_block(std::vector<Warp>& warps, int threads) {
  threads_ = threads;
  block_start_ = barrier_ = ++newest_;
  any_acquired_ = false;
  memo_a_ = memo_b_ = memo_joined_ = nullptr;
  for (Warp& warp : warps) {
    warp.clock = block_start_;
    // What a warp knew in the last block is below block_start_: it need not be cleared, except when
    // the clocks have restarted or the threads have other numbers now.
    if (block_start_ == 1 || warp.known.size() != 2 * static_cast<size_t>(threads))
      warp.known.assign(2 * threads, 0);
    ++warp.known_version;
  }
}

bool Clocks::before(uint32_t thread, uint32_t clock, const Lane& lane) const {
  if (clock < barrier_) return true;
  if (thread == static_cast<uint32_t>(lane.id)) return true;
  if (clock <= lane.warp->known[thread]) return true;
  if (lane.acquired && clock <= (*lane.acquired)[thread]) return true;
  return thread == static_cast<uint32_t>(threads_ + lane.id) && clock <= lane.own_copies_known;
}

void Clocks::block_barrier(std::vector<Warp>& warps) {
  barrier_ = ++newest_;
  for (Warp& warp : warps) {
    warp.clock = barrier_;
    if (any_acquired_)
      for (int i = 0; i < warp.size; ++i) warp.lanes[i].acquired = nullptr;
  }
  any_acquired_ = false;
}

void Clocks::advance(Warp& warp) { newest_ = std::max(newest_, ++warp.clock); }

void Clocks::warp_barrier(Warp& warp, uint32_t lanes) {
  const bool everyone = (warp.alive() & ~lanes) == 0;
  Knowledge part;
  if (!everyone) part = warp.known;
  Knowledge& known = everyone ? warp.known : part;
  if (everyone) lanes |= warp.exited;  // what they did came before this, too
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Lane& lane = warp.lanes[std::countr_zero(rest)];
    if (lane.acquired) join(known, *lane.acquired);
    known[lane.id] = warp.clock;
    known[threads_ + lane.id] = std::max(known[threads_ + lane.id], lane.own_copies_known);
  }
  advance(warp);
  if (everyone) {
    ++warp.known_version;
    if (any_acquired_)
      for (int i = 0; i < warp.size; ++i) warp.lanes[i].acquired = nullptr;
  } else {
    const auto shared = std::make_shared<const Knowledge>(std::move(part));
    any_acquired_ = true;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1)
      warp.lanes[std::countr_zero(rest)].acquired = shared;
  }
}

void Clocks::mbarrier_arrive(MbarrierOrder& mbarrier, Lane& lane) {
  Warp& warp = *lane.warp;
  Knowledge& released = mbarrier.released;
  if (released.empty()) {
    released.assign(2 * threads_, 0);
    mbarrier.joined_version.assign((threads_ + warp_size - 1) / warp_size, 0);
  }
  if (mbarrier.joined_version[warp.index] != warp.known_version) {
    join(released, warp.known);
    mbarrier.joined_version[warp.index] = warp.known_version;
  }
  if (lane.acquired && lane.acquired != mbarrier.last_joined) {
    join(released, *lane.acquired);
    mbarrier.last_joined = lane.acquired;
  }
  released[lane.id] = warp.clock;
  advance(warp);
  uint32_t& copies = released[threads_ + lane.id];
  copies = std::max(copies, lane.own_copies_known);
}

void Clocks::mbarrier_arrive_copies(MbarrierOrder& mbarrier, Lane& lane) {
  const uint32_t clock = lane.warp->clock;
  mbarrier_arrive(mbarrier, lane);
  mbarrier.released[threads_ + lane.id] = clock;
}

void Clocks::mbarrier_complete(MbarrierOrder& mbarrier) {
  // `released` is not cleared: who waits for a later phase is ordered after the earlier ones too.
  mbarrier.completed = std::make_shared<const Knowledge>(mbarrier.released);
}

void Clocks::mbarrier_acquire(const MbarrierOrder& mbarrier, Lane& lane) {
  const std::shared_ptr<const Knowledge>& completed = mbarrier.completed;
  if (!completed || lane.acquired == completed) return;
  any_acquired_ = true;
  if (!lane.acquired) {
    lane.acquired = completed;
    return;
  }
  if (memo_a_ != lane.acquired || memo_b_ != completed) {
    auto joined = std::make_shared<Knowledge>(*completed);
    join(*joined, *lane.acquired);
    memo_a_ = lane.acquired, memo_b_ = completed, memo_joined_ = std::move(joined);
  }
  lane.acquired = memo_joined_;
}

}  // namespace fa2::sim

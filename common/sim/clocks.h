#pragma once
// Vector clocks: what is ordered before what. "FastTrack: Efficient and Precise Dynamic Race
// Detection", Flanagan and Freund, PLDI 2009; here with two savings that a GPU allows.
//
// - The clock is per warp: it advances whenever a lane of the warp releases what it did (at a
//   warp_barrier, an mbarrier arrive). An event is (thread, clock of its warp).
// - At a block barrier everything before becomes ordered before everything after. So all clocks
// jump
//   to a common new value, and any event older than it needs no further thought.
//
// Copies by cp.async that an mbarrier announces are events of a second, asynchronous thread: id
// `threads + t` for those of thread t. Not even t may use them before it has waited.
#include <cstdint>
#include <memory>
#include <vector>

namespace fa2::sim {

struct Lane;
struct Warp;

/// For each thread, then for each thread's asynchronous half: up to which clock its events are
/// known to have happened.
using Knowledge = std::vector<uint32_t>;

/// The ordering state of an mbarrier.
struct MbarrierOrder {
  Knowledge released;                          // what all arrivals so far knew; only grows
  std::shared_ptr<const Knowledge> completed;  // as it was when the last phase completed
  std::vector<uint32_t> joined_version;        // per warp: the known_version last joined, plus one
  std::shared_ptr<const Knowledge> last_joined;
};

/// The order of events in one block.
class Clocks {
 public:
  /// A new block: nothing that happened before matters.
  void begin_block(std::vector<Warp>& warps, int threads);

  /// Did the event (thread, clock) happen before what `lane` does now?
  bool before(uint32_t thread, uint32_t clock, const Lane& lane) const;

  /// Clocks below this one belong to an earlier block.
  uint32_t block_start() const { return block_start_; }
  /// Events below this clock are ordered before everything that happens now.
  uint32_t barrier() const { return barrier_; }
  int threads() const { return threads_; }
  bool about_to_overflow() const { return newest_ > 0xf0000000u; }
  /// Clocks begin at 0 again; the caller has forgotten all events.
  void restart() { newest_ = barrier_ = block_start_ = 0; }

  void block_barrier(std::vector<Warp>& warps);
  void warp_barrier(Warp& warp, uint32_t lanes);
  void mbarrier_arrive(MbarrierOrder& mbarrier, Lane& lane);
  void mbarrier_complete(MbarrierOrder& mbarrier);
  void mbarrier_acquire(const MbarrierOrder& mbarrier, Lane& lane);
  /// The copies of `lane` until now are released to the mbarrier.
  void mbarrier_arrive_copies(MbarrierOrder& mbarrier, Lane& lane);

 private:
  void advance(Warp& warp);

  int threads_ = 0;
  uint32_t newest_ = 0;  // no clock has been higher
  uint32_t block_start_ = 0, barrier_ = 0;
  bool any_acquired_ = false;
  // The last join of two acquired states: the lanes of a warp ask for the same one in turn.
  std::shared_ptr<const Knowledge> memo_a_, memo_b_, memo_joined_;
};

}  // namespace fa2::sim

#pragma once
// The state of one CUDA thread (a lane) and of 32 of them (a warp) on the machine.
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/sim/banks.h"
#include "common/sim/clocks.h"
#include "common/sim/fiber.h"
#include "common/sim/primitives.h"

namespace fa2::sim {

class Machine;
struct Lane;
struct Warp;

inline constexpr int warp_size = 32;

/// What a lane waits for, other than a collective: that is noted in its warp.
enum class State : uint8_t { running, at_block_barrier, at_mbarrier, log_full, exited };

/// A warp-wide instruction. The last lane to arrive executes it for all.
struct Operation {
  const char* name;  // as a kernel calls it
  bool whole_warp;   // all 32 lanes must be alive (mma, ldmatrix)
  bool any_line;     // lanes may meet from different lines (warp_barrier)
  void (*execute)(Warp& warp, uint32_t lanes);
};

/// A copy that cp.async has started.
struct AsyncCopy {
  uint32_t to;       // shared address
  uint32_t group;    // number of the commit that closes its group
  const void* from;  // null: zeros
  Site site;
  uint32_t landed;  // 0: in flight; else the clock at which it was released to an mbarrier
};

struct Lane : RunningLane {
  Context context;
  Machine* machine = nullptr;
  Warp* warp = nullptr;
  int id = 0;         // in the block
  uint8_t index = 0;  // in the warp
  uint8_t turn = 0;   // place in the warp's order of turns
  State state = State::exited;

  Site site;  // the primitive it is in, or was in last
  // In a collective: which, and with whom.
  const Operation* operation = nullptr;
  uint32_t mask = 0;
  // At an mbarrier: which, and the parity it waits for.
  uint32_t mbarrier = 0;
  int parity = 0;

  AccessLog log;
  std::vector<AsyncCopy> copies;  // oldest first

  std::shared_ptr<const Knowledge> acquired;  // from mbarriers, beyond what its warp knows
  uint32_t own_copies_known = 0;              // clock up to which its own mbarrier copies are seen
};

struct Warp {
  Machine* machine = nullptr;
  Lane* lanes = nullptr;
  int index = 0;
  int size = 0;          // lanes that exist
  uint32_t exists = 0;   // their bits
  uint32_t exited = 0;   // lanes that have returned
  uint32_t waiting = 0;  // lanes in a collective
  uint32_t partial = 0;  // those of them whose mask is not the full one
  uint32_t full = 0;     // lanes whose log is full
  uint32_t ready = 0;    // by turn, not by lane
  uint8_t lane_of_turn[warp_size];
  void* operands[warp_size];  // of the lanes in a collective; their type belongs to the operation

  uint32_t clock = 0;  // counts the moments at which its lanes release what they did
  Knowledge known;     // what every lane of the warp is ordered after
  uint32_t known_version = 0;

  uint32_t alive() const { return exists & ~exited; }
  void set_ready(Lane& lane) {
    lane.state = State::running;
    ready |= 1u << lane.turn;
  }
  /// The lane whose turn comes after `turn`; some lane must be ready.
  Lane& next_after(int turn) const {
    const int distance = std::countr_zero(std::rotr(ready, (turn + 1) % warp_size));
    return lanes[lane_of_turn[(turn + 1 + distance) % warp_size]];
  }
};

/// The whole of the lane that runs, or null.
inline Lane* this_lane() { return static_cast<Lane*>(running()); }
/// The same where there must be one: throws Error outside of kernels.
inline Lane& lane_of_kernel() { return static_cast<Lane&>(running_lane()); }

}  // namespace fa2::sim

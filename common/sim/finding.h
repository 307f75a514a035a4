#pragma once
// A mistake of a kernel that the machine caught.
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/error.h"
#include "common/sim/primitives.h"
#include "common/sim/site.h"

namespace fa2::sim {

/// The rules that a kernel can break (Report::rule).
namespace rule {
inline constexpr char race[] = "shared-memory race";
inline constexpr char unwritten[] = "read of unwritten shared memory";
inline constexpr char in_flight[] = "use of a cp.async destination before its wait";
inline constexpr char never_waited[] = "cp.async never waited for";
inline constexpr char shared_bounds[] = "out of bounds in shared memory";
inline constexpr char global_bounds[] = "out of bounds in global memory";
inline constexpr char read_only[] = "store to a read-only array";
inline constexpr char null_pointer[] = "null pointer";
inline constexpr char misaligned[] = "misaligned access";
inline constexpr char divergence[] = "barrier divergence";
inline constexpr char deadlock[] = "deadlock";
inline constexpr char collective[] = "collective mismatch";
inline constexpr char missing_lanes[] = "missing lanes";
inline constexpr char wrong_mask[] = "wrong mask";
inline constexpr char mbarrier[] = "wrong use of an mbarrier";
inline constexpr char endless[] = "kernel never ends";
inline constexpr char launch[] = "launch refused";
inline constexpr char crash[] = "crash";
}  // namespace rule

/// What is known about a mistake. Fields that do not apply are empty, lines 0, offsets -1.
struct Report {
  std::string rule{};     // one of fa2::sim::rule
  std::string summary{};  // the mistake in one sentence
  std::string kernel{};
  Index3 block{}, thread{};  // who made it
  bool has_thread = false;
  std::string action{};  // what this thread did: "reads 16 bytes of K_smem[128]"
  std::string file{};    // where
  int line = 0;
  bool has_other = false;  // the other thread of a race, or the one that waits elsewhere
  Index3 other_thread{};
  std::string other_action{};
  std::string other_file{};
  int other_line = 0;
  std::string array{};               // name of the array in shared or global memory
  int64_t offset = -1;               // bytes from its start
  std::string fix{};                 // what would likely mend it
  std::vector<std::string> notes{};  // further lines, such as who waits where

  void at(Site site) { file = site.file(), line = site.line(); }
  void other_at(Site site) { other_file = site.file(), other_line = site.line(); }
};

/// Thrown by launch(). what() is the whole message for a person, over several lines.
struct Finding : Error, Report {
  explicit Finding(Report report);
};

}  // namespace fa2::sim

#pragma once
// Shared memory has 32 banks of 4 bytes; one pass (a wavefront) serves one word of each bank. What
// a warp's request needs depends on all of its lanes' addresses, but lanes run one after the other:
// so each lane logs its accesses, and where the warp meets the logs are zipped by line of source.
#include <cstdint>
#include <span>
#include <vector>

#include "common/sim/site.h"

namespace fa2::sim {

struct Warp;

/// What an array in shared memory is for. The names of the backends' `Use`, in its order.
inline constexpr int uses = 4;

enum class LogKind : uint8_t { load, store, mbarrier_wait };

struct LogEntry {
  Site site;
  uint32_t address;
  uint8_t bytes;
  LogKind kind;
  uint8_t use;
};

/// The accesses of one lane that have not been counted yet.
struct AccessLog {
  static constexpr size_t capacity = 512;
  std::vector<LogEntry> entries;
  size_t limit = capacity;  // when the lane must pause; grows only if its warp cannot be zipped

  bool full() const { return entries.size() >= limit; }
};

/// Passes that a request takes, and that it would take without bank conflicts.
struct Wavefronts {
  uint32_t taken = 0, ideal = 0;
};

/// One load or store of a warp: the address of each active lane, in lane order, and its place among
/// the 32 lanes. Accesses of up to 4 bytes are served for 32 lanes at once, of 8 bytes for 16, of
/// 16 bytes for 8 lanes.
Wavefronts count_request(std::span<const uint32_t> addresses, std::span<const uint8_t> lanes,
                         int bytes);

/// One 8x8 matrix of an ldmatrix: eight rows of 16 bytes, in one pass if the banks allow.
uint32_t count_matrix_rows(const uint32_t (&rows)[8]);

/// What the counting of logs adds up to.
struct BankCounts {
  uint64_t taken[uses] = {}, ideal[uses] = {};
  uint64_t mbarrier_waits = 0;
};

/// Counts the logged accesses of a warp whose lanes have met, and empties the logs.
void zip_logs(Warp& warp, BankCounts& counts);

/// The same where no lane can go on because some logs are full: counts up to the end of the first
/// full log and keeps the rest, which later accesses of other lanes may belong to.
void zip_full_logs(Warp& warp, BankCounts& counts);

}  // namespace fa2::sim

#include "common/sim/collectives.h"

#include <bit>
#include <cstring>

#include "common/sim/float16.h"
#include "common/sim/machine.h"

namespace fa2::sim {
namespace {

// Calls f(lane) for the lanes whose bits are set.
template <class F>
void for_lanes(Warp& warp, uint32_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(warp.lanes[std::countr_zero(lanes)]);
}

void execute_barrier(Warp& warp, uint32_t lanes) {
  ++warp.machine->counters.warp_syncs;
  warp.machine->warp_synced(warp, lanes);
}
constexpr Operation barrier_operation{"warp_barrier", false, true, execute_barrier};

// ---- Shuffles and votes -------------------------------------------------------------------------

struct ShuffleOperands {
  uint32_t value;
  int source;
  uint32_t result;
};

void execute_shuffle(Warp& warp, uint32_t lanes) {
  ++warp.machine->counters.shuffles;
  for_lanes(warp, lanes, [&](Lane& lane) {
    auto& operands = *static_cast<ShuffleOperands*>(warp.operands[lane.index]);
    const int source = operands.source;
    if (source < 0 || source >= warp_size || (lanes >> source & 1) == 0)
      warp.machine->fail(
          lane,
          {.rule = rule::missing_lanes,
           .summary = "a shuffle reads from lane " + std::to_string(source) +
                      ", which does not take part in it: the result is undefined",
           .action = "shuffles",
           .fix = "keep all 32 lanes alive until the last shuffle, and the lane mask below 32"});
    operands.result = static_cast<ShuffleOperands*>(warp.operands[source])->value;
  });
}
constexpr Operation shuffle_xor_operation{"shuffle_xor", false, false, execute_shuffle};
constexpr Operation shuffle_operation{"shuffle", false, false, execute_shuffle};

struct VoteOperands {
  bool condition;
  uint32_t result;
};

void execute_ballot(Warp& warp, uint32_t lanes) {
  ++warp.machine->counters.votes;
  uint32_t result = 0;
  for_lanes(warp, lanes, [&](Lane& lane) {
    if (static_cast<VoteOperands*>(warp.operands[lane.index])->condition)
      result |= 1u << lane.index;
  });
  for_lanes(warp, lanes, [&](Lane& lane) {
    static_cast<VoteOperands*>(warp.operands[lane.index])->result = result;
  });
}
constexpr Operation ballot_operation{"vote", false, false, execute_ballot};

// ---- ldmatrix -----------------------------------------------------------------------------------

struct LdmatrixOperands {
  uint32_t* r;
  uint32_t address, array;
};

template <bool transposed>
void execute_ldmatrix(Warp& warp, uint32_t) {
  Machine& machine = *warp.machine;
  ++machine.counters.ldmatrix;
  uint32_t wavefronts = 0, array = 0;
  uint16_t rows[4][8][8];
  for (int matrix = 0; matrix < 4; ++matrix) {
    uint32_t addresses[8];
    for (int row = 0; row < 8; ++row) {
      Lane& lane = warp.lanes[8 * matrix + row];
      const auto& operands = *static_cast<const LdmatrixOperands*>(warp.operands[lane.index]);
      std::memcpy(rows[matrix][row], machine.matrix_row(lane, operands.address, operands.array),
                  16);
      addresses[row] = operands.address;
      array = operands.array;
    }
    wavefronts += count_matrix_rows(addresses);
  }
  machine.count_matrices(array, wavefronts);
  for (int l = 0; l < warp_size; ++l) {
    uint32_t* r = static_cast<const LdmatrixOperands*>(warp.operands[l])->r;
    const int i = l / 4, j = l % 4 * 2;  // this lane's row and first column
    for (int matrix = 0; matrix < 4; ++matrix) {
      const auto& m = rows[matrix];
      r[matrix] = transposed ? m[j][i] | uint32_t{m[j + 1][i]} << 16
                             : m[i][j] | uint32_t{m[i][j + 1]} << 16;
    }
  }
}
constexpr Operation ldmatrix_operation{"ldmatrix_x4", true, false, execute_ldmatrix<false>};
constexpr Operation ldmatrix_trans_operation{"ldmatrix_x4_trans", true, false,
                                             execute_ldmatrix<true>};

// ---- mma ----------------------------------------------------------------------------------------

struct MmaOperands {
  const uint32_t* A;
  uint32_t B[2];
  const float* C;
  float* D;
};

// Four floats, or four integers, at once: a GNU extension of both compilers.
typedef float Float4 __attribute__((vector_size(16)));
typedef int32_t Int4 __attribute__((vector_size(16)));

// To fp32, exactly: float16.h's conversions, four at a time.
template <Mma16 type>
Float4 widen(const uint16_t* from) {
  typedef uint16_t Short4 __attribute__((vector_size(8)));
  Short4 narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  const Int4 bits = __builtin_convertvector(narrow, Int4);
  if constexpr (type == Mma16::bf16) return reinterpret_cast<Float4>(bits << 16);
  const Int4 magnitude = bits & 0x7fff;
  const Float4 scaled = reinterpret_cast<Float4>(magnitude << 13) * 0x1p112f;
  const Int4 not_finite = magnitude >= 0x7c00;  // all ones where true
  return reinterpret_cast<Float4>(reinterpret_cast<Int4>(scaled) | (not_finite & 0x7f800000) |
                                  (bits & 0x8000) << 16);
}

template <Mma16 type>
void execute_mma(Warp& warp, uint32_t) {
  ++warp.machine->counters.mma;
  uint16_t A16[16][16], B16[16][8];
  alignas(16) float C[16][8];
  // PTX ISA, "Matrix Fragments for mma.m16n8k16": lane 4g + t holds rows g and g + 8 of A and C,
  // column g of B.
  for (int l = 0; l < warp_size; ++l) {
    const auto& operands = *static_cast<const MmaOperands*>(warp.operands[l]);
    const int g = l / 4, t = l % 4 * 2;
    const auto put = [](uint32_t pair, uint16_t* first, uint16_t* second) {
      *first = static_cast<uint16_t>(pair), *second = static_cast<uint16_t>(pair >> 16);
    };
    put(operands.A[0], &A16[g][t], &A16[g][t + 1]);
    put(operands.A[1], &A16[g + 8][t], &A16[g + 8][t + 1]);
    put(operands.A[2], &A16[g][t + 8], &A16[g][t + 9]);
    put(operands.A[3], &A16[g + 8][t + 8], &A16[g + 8][t + 9]);
    put(operands.B[0], &B16[t][g], &B16[t + 1][g]);
    put(operands.B[1], &B16[t + 8][g], &B16[t + 9][g]);
    C[g][t] = operands.C[0], C[g][t + 1] = operands.C[1];
    C[g + 8][t] = operands.C[2], C[g + 8][t + 1] = operands.C[3];
  }
  Float4 B[16][2];
  for (int k = 0; k < 16; ++k)
    for (int half : {0, 1}) B[k][half] = widen<type>(&B16[k][4 * half]);
  for (int i = 0; i < 16; ++i) {
    Float4 sum[2];
    std::memcpy(sum, C[i], sizeof sum);
    for (int k4 = 0; k4 < 16; k4 += 4) {
      const Float4 A = widen<type>(&A16[i][k4]);
      for (int k = 0; k < 4; ++k) {
        sum[0] += A[k] * B[k4 + k][0];
        sum[1] += A[k] * B[k4 + k][1];
      }
    }
    // A tensor core has a single NaN; which one a CPU makes depends on its compiler.
    for (Float4& s : sum) {
      const Int4 nan = s != s;
      s = reinterpret_cast<Float4>((reinterpret_cast<Int4>(s) & ~nan) | (nan & 0x7fffffff));
    }
    std::memcpy(C[i], sum, sizeof sum);
  }
  for (int l = 0; l < warp_size; ++l) {
    float* D = static_cast<const MmaOperands*>(warp.operands[l])->D;
    const int g = l / 4, t = l % 4 * 2;
    D[0] = C[g][t], D[1] = C[g][t + 1];
    D[2] = C[g + 8][t], D[3] = C[g + 8][t + 1];
  }
}
constexpr Operation mma_fp16_operation{"mma_m16n8k16", true, false, execute_mma<Mma16::fp16>};
constexpr Operation mma_bf16_operation{"mma_m16n8k16", true, false, execute_mma<Mma16::bf16>};

void meet(const Operation& operation, uint32_t mask, void* operands, Site site) {
  Lane& lane = lane_of_kernel();
  lane.machine->collective(lane, operation, mask, operands, site);
}

}  // namespace

void warp_barrier(uint32_t mask, Site site) { meet(barrier_operation, mask, nullptr, site); }

uint32_t shuffle_xor(uint32_t mask, uint32_t value, int lane_mask, Site site) {
  ShuffleOperands operands{value, lane_of_kernel().index ^ lane_mask, 0};
  meet(shuffle_xor_operation, mask, &operands, site);
  return operands.result;
}

uint32_t shuffle(uint32_t mask, uint32_t value, int source, Site site) {
  ShuffleOperands operands{value, source, 0};
  meet(shuffle_operation, mask, &operands, site);
  return operands.result;
}

uint32_t ballot(uint32_t mask, bool condition, Site site) {
  VoteOperands operands{condition, 0};
  meet(ballot_operation, mask, &operands, site);
  return operands.result;
}

void ldmatrix_x4(uint32_t (&r)[4], uint32_t address, uint32_t array, bool transposed, Site site) {
  LdmatrixOperands operands{r, address, array};
  meet(transposed ? ldmatrix_trans_operation : ldmatrix_operation, all_lanes, &operands, site);
}

void mma_m16n8k16(Mma16 type, float* D, const uint32_t* A, uint32_t B0, uint32_t B1, const float* C,
                  Site site) {
  MmaOperands operands{A, {B0, B1}, C, D};
  meet(type == Mma16::fp16 ? mma_fp16_operation : mma_bf16_operation, all_lanes, &operands, site);
}

}  // namespace fa2::sim

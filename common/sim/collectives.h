#pragma once
// What warps do together. Each function is called by every lane with its own operands; they meet,
// and the last to arrive computes for all.
#include <cstdint>

#include "common/sim/site.h"

namespace fa2::sim {

inline constexpr uint32_t all_lanes = 0xffffffffu;

void warp_barrier(uint32_t mask, Site site);

/// `value`'s bits from the lane whose number differs in the bits of `lane_mask`.
uint32_t shuffle_xor(uint32_t mask, uint32_t value, int lane_mask, Site site);
/// `value`'s bits from lane `source`.
uint32_t shuffle(uint32_t mask, uint32_t value, int source, Site site);

/// Bit l is set if lane l's condition holds.
uint32_t ballot(uint32_t mask, bool condition, Site site);

/// Four 8x8 matrices of 16-bit elements: see ldmatrix_x4 in common/device.
void ldmatrix_x4(uint32_t (&r)[4], uint32_t address, uint32_t array, bool transposed, Site site);

enum class Mma16 { fp16, bf16 };
/// D = A B + C, 16x8x16, where the 16-bit elements of A and B are exact in fp32 and the products
/// are added to C in order of k, each sum rounded to fp32. D may be C.
void mma_m16n8k16(Mma16 type, float* D, const uint32_t* A, uint32_t B0, uint32_t B1, const float* C,
                  Site site);

}  // namespace fa2::sim

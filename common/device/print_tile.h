#pragma once
// Looking at registers: a fragment, which is spread over 32 lanes, printed as the matrix it is.
#include <cstdio>

#include "common/device/fragment.h"

namespace fa2::inline FA2_BACKEND {

/// Prints this warp's fragment row by row, e.g. print_tile("S", S). All lanes must call it; lane 0
/// prints. For debugging: it shuffles once per element.
template <class Tag, int M16, int N8>
__device__ inline void print_tile(const char* name, const Fragment<Tag, M16, N8>& tile) {
  if (lane_id() == 0) printf("%s, %d x %d, warp %d:\n", name, 16 * M16, 8 * N8, warp_id());
  for (int row = 0; row < 16 * M16; ++row) {
    for (int col = 0; col < 8 * N8; ++col) {
      const int owner = row % 8 * 4 + col % 8 / 2, element = row % 16 / 8 * 2 + col % 2;
      const float value = shuffle_xor(tile.block[row / 16][col / 8][element], owner);
      if (lane_id() == 0) printf("%9.4f", value);  // lane 0 ^ owner = owner
    }
    if (lane_id() == 0) printf("\n");
  }
}

}  // namespace fa2::inline FA2_BACKEND

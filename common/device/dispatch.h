#pragma once
// From a problem known at run time to the kernel instance compiled for it.
#include <type_traits>
#include <utility>

#include "common/device/error.h"

namespace fa2::inline FA2_BACKEND {

template <auto value>
using constant = std::integral_constant<decltype(value), value>;

/// Calls launch_one(T{}, constant<row>{}) for the problem's element type and tile row. With
/// FA2_FIRST_INSTANCE only fp16 and row 0 are compiled: ./fa2 check's first answer comes sooner.
template <int rows, class F>
void dispatch(const Problem& p, int row, F launch_one) {
  const auto by_row = [&]<class T, int... r>(T type, std::integer_sequence<int, r...>) {
    ((r == row ? launch_one(type, constant<r>{}) : void()), ...);
  };
  if (row < 0 || row >= rows) throw Error("the tile table of this stage has no such row");
#ifdef FA2_FIRST_INSTANCE
  if (p.dtype != Dtype::fp16 || row != 0) throw Error("this build has fp16 and tile row 0 only");
  by_row(half{}, std::make_integer_sequence<int, 1>{});
#else
  if (p.dtype == Dtype::fp16)
    by_row(half{}, std::make_integer_sequence<int, rows>{});
  else
    by_row(bfloat16{}, std::make_integer_sequence<int, rows>{});
#endif
}

/// A grid of `heads` by `q_tiles` blocks. A GPU takes 2^31 - 1 along x, 65535 along y (a simulator
/// can be told fewer): z goes on where y ends, with less than one block per z too many.
inline dim3 grid_of(int64_t heads, int64_t q_tiles = 1) {
  if (heads > 0x7fffffff)
    throw Error("the grid has " + std::to_string(heads) +
                " blocks along x; a GPU takes at most 2147483647");
  const int64_t z = q_tiles / max_grid_y() + 1;
  return dim3(static_cast<unsigned>(heads), static_cast<unsigned>((q_tiles + z - 1) / z),
              static_cast<unsigned>(z));
}

}  // namespace fa2::inline FA2_BACKEND

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

/// The grid's length; a GPU takes at most 2^31 - 1 blocks along x.
inline unsigned grid_length(int64_t blocks) {
  if (blocks > 0x7fffffff)
    throw Error("batch x heads x query tiles is " + std::to_string(blocks) +
                " blocks; a grid holds at most 2147483647");
  return static_cast<unsigned>(blocks);
}

}  // namespace fa2::inline FA2_BACKEND

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

/// A grid of x by y blocks; a GPU takes at most 2^31 - 1 along x, 65535 along y.
inline dim3 grid_of(int64_t x, int64_t y = 1) {
  if (x > 0x7fffffff)
    throw Error("batch x heads is " + std::to_string(x) +
                " blocks; a grid holds at most 2147483647 along x");
  if (y > 0xffff)
    throw Error("Nq is " + std::to_string(y) + " query tiles; a grid holds at most 65535 along y");
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y));
}

}  // namespace fa2::inline FA2_BACKEND

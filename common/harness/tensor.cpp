#include "common/harness/tensor.h"

#include <algorithm>
#include <new>

namespace fa2 {

HostTensor::HostTensor(const Shape& shape, const Strides& strides)
    : shape_(shape), strides_(strides) {
  const int64_t all = extent(shape, strides);
  sparse_ = all > (int64_t{1} << 25) && all > 4 * shape.elements();
  constexpr size_t page = 4096;
  const size_t bytes = (2 * raw_size() + page - 1) / page * page;
  raw_.reset(static_cast<uint16_t*>(std::aligned_alloc(page, bytes)));
  if (!raw_) throw std::bad_alloc();
  if (!sparse_) {
    std::ranges::fill(raw(), poison);
    return;
  }
  std::ranges::fill(raw().first(guard), poison);
  std::ranges::fill(raw().last(guard), poison);
  for_each_row(shape,
               [&](int64_t b, int64_t h, int64_t i) { std::ranges::fill(row(b, h, i), poison); });
}

}  // namespace fa2

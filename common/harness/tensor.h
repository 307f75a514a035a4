#pragma once
// A [batch, head, row, d] tensor of 16-bit elements in host memory, with guards on both sides.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "common/harness/shape.h"

namespace fa2 {

/// A NaN in fp16 and in bf16 that no arithmetic produces: found in an output, it was never written;
/// found changed elsewhere, something wrote out of bounds.
inline constexpr uint16_t poison = 0x7fab;
inline constexpr uint32_t poison_fp32 = 0x7fabcdef;

class HostTensor {
 public:
  /// Elements on either side of the data. 144 bytes: the data is aligned to 16 bytes and no more,
  /// which is all that a caller promises.
  static constexpr int64_t guard = 72;

  /// Everything is `poison`: the elements, what lies between strided rows, and the guards. Of a
  /// sparse tensor only the guards and the elements are touched.
  HostTensor(const Shape& shape, const Strides& strides);

  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }

  uint16_t* data() { return raw_.get() + guard; }
  const uint16_t* data() const { return raw_.get() + guard; }

  /// The d elements of one row.
  std::span<uint16_t> row(int64_t b, int64_t h, int64_t i) {
    return {data() + offset(b, h, i), static_cast<size_t>(shape_.d)};
  }
  std::span<const uint16_t> row(int64_t b, int64_t h, int64_t i) const {
    return {data() + offset(b, h, i), static_cast<size_t>(shape_.d)};
  }

  /// Everything, guards included.
  std::span<uint16_t> raw() { return {raw_.get(), raw_size()}; }
  std::span<const uint16_t> raw() const { return {raw_.get(), raw_size()}; }
  size_t raw_bytes() const { return 2 * raw_size(); }

  /// Whether the strides leap so far that most of the memory is never touched. Such a tensor may be
  /// larger than the machine's memory.
  bool sparse() const { return sparse_; }

  int64_t offset(int64_t b, int64_t h, int64_t i) const {
    return b * strides_.batch + h * strides_.head + i * strides_.row;
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  size_t raw_size() const { return static_cast<size_t>(extent(shape_, strides_) + 2 * guard); }

  Shape shape_;
  Strides strides_;
  bool sparse_;
  std::unique_ptr<uint16_t[], Free> raw_;
};

/// Calls f(b, h, row) for every row of a tensor.
template <class F>
void for_each_row(const Shape& shape, F f) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      for (int64_t i = 0; i < shape.rows; ++i) f(b, h, i);
}

}  // namespace fa2

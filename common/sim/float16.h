#pragma once
// The two 16-bit floating-point types, by their bits: the same on every compiler and processor.
#include <bit>
#include <cstdint>

namespace fa2::sim {

/// The float that has these fp16 bits; exact.
constexpr float half_to_float(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffu;
  // The fraction and exponent at fp32's places; 2^112 corrects the bias, also of subnormal numbers.
  uint32_t f = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
  if (magnitude >= 0x7c00u) f |= 0x7f800000u;  // infinity, NaN
  return std::bit_cast<float>(f | (bits & 0x8000u) << 16);
}

/// Rounds to nearest, ties to even; NaN becomes 0x7fff, as on the GPU.
constexpr uint16_t float_to_half(float value) {
  const uint32_t f = std::bit_cast<uint32_t>(value), magnitude = f & 0x7fffffffu;
  const uint16_t sign = static_cast<uint16_t>(f >> 16 & 0x8000u);
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00;  // 65520 and more round to infinity
  uint32_t h;
  if (magnitude < 0x38800000u) {  // below 2^-14: let an fp32 addition round at 2^-24
    h = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    h = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  }
  return static_cast<uint16_t>(sign | h);
}

/// The float that has these bf16 bits; exact.
constexpr float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Rounds to nearest, ties to even; NaN becomes 0x7fff, as on the GPU.
constexpr uint16_t float_to_bfloat16(float value) {
  const uint32_t f = std::bit_cast<uint32_t>(value);
  if ((f & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((f + 0x7fffu + (f >> 16 & 1u)) >> 16);
}

/// IEEE binary16: what CUDA calls __half.
struct half {
  uint16_t bits;

  half() = default;
  constexpr explicit half(float value) : bits(float_to_half(value)) {}
  constexpr explicit operator float() const { return half_to_float(bits); }
};

/// The upper half of an IEEE binary32: what CUDA calls __nv_bfloat16.
struct bfloat16 {
  uint16_t bits;

  bfloat16() = default;
  constexpr explicit bfloat16(float value) : bits(float_to_bfloat16(value)) {}
  constexpr explicit operator float() const { return bfloat16_to_float(bits); }
};

}  // namespace fa2::sim

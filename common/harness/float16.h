#pragma once
// fp16 and bf16 as bit patterns on the host. Written apart from the simulator's conversions on
// purpose: the reference must not share a mistake with what it checks.
#include <bit>
#include <cmath>
#include <cstdint>

#include "common/device/problem.h"

namespace fa2 {

/// The half distance between 1 and the next larger number: the largest relative rounding error.
inline double unit_roundoff(Dtype type) { return type == Dtype::fp16 ? 0x1p-11 : 0x1p-8; }

/// Half the smallest subnormal: the largest absolute rounding error near zero.
inline double subnormal_roundoff(Dtype type) { return type == Dtype::fp16 ? 0x1p-25 : 0x1p-134; }

inline float decode_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

/// Rounds to nearest, ties to even.
inline uint16_t encode_bf16(float value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float decode_fp16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00)  // infinity and NaN: keep the mantissa
    return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  // The exponent's bias differs by 112; one multiplication mends it, subnormals included.
  const float magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

/// Rounds to nearest, ties to even; beyond 65519 to infinity.
inline uint16_t encode_fp16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7fff;
  if (magnitude >= 65520.f) return sign | 0x7c00;
  if (magnitude < 0x1p-14f) {  // a multiple of 2^-24: the sum with 0.5 rounds to one
    const float shifted = magnitude + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t m = std::bit_cast<uint32_t>(magnitude) - (112u << 23);
  return static_cast<uint16_t>(sign | (m + 0xfff + (m >> 13 & 1)) >> 13);
}

inline float decode(Dtype type, uint16_t bits) {
  return type == Dtype::fp16 ? decode_fp16(bits) : decode_bf16(bits);
}

inline uint16_t encode(Dtype type, float value) {
  return type == Dtype::fp16 ? encode_fp16(value) : encode_bf16(value);
}

/// The value after a trip through 16 bits.
inline float rounded(Dtype type, float value) { return decode(type, encode(type, value)); }

}  // namespace fa2

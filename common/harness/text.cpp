#include "common/harness/text.h"

#include <charconv>
#include <cmath>

namespace fa2 {

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  const int first = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) digits.insert(at, ",");
  return digits;
}

std::string short_number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits);
  return {buffer, end.ptr};
}

std::string address(const void* pointer) {
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, reinterpret_cast<uintptr_t>(pointer), 16);
  return "0x" + std::string(buffer, end.ptr);
}

}  // namespace fa2

#pragma once
// Small pieces of text.
#include <cstdint>
#include <string>

namespace fa2 {

/// A number with its thousands apart: 1073741824 -> "1,073,741,824". Independent of the locale.
std::string with_commas(int64_t value);

/// A number with this many significant digits and a decimal point, whatever the locale.
std::string short_number(double value, int digits = 4);

/// A pointer in hexadecimal.
std::string address(const void* pointer);

}  // namespace fa2

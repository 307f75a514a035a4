#pragma once
// Numbers and symbols as people read them. Decimal points always, whatever the locale.
#include <cstdint>
#include <string>
#include <string_view>

namespace fa2::cli {

/// What a terminal can show: arrows and signs beyond ASCII, or ASCII only.
enum class Charset { ascii, utf8 };

/// From LC_ALL, LC_CTYPE and LANG, the first that is set.
Charset charset_of_environment();

std::string_view arrow(Charset c);  // "→" or "->"
std::string_view minus(Charset c);  // "–" or "-", for a cell without a value

/// Three significant digits without an exponent: 0.0125, 1.25, 12.5, 125, 1250. "nan" and "inf"
/// stay.
std::string number(double value);

/// A whole number as it is up to six digits, then with four significant digits: 131072, 2.097M.
std::string count(uint64_t value);

/// Bytes in KiB or MiB, three significant digits.
std::string kib(uint64_t bytes);
std::string mib(uint64_t bytes);

/// A share of one as a percentage: 0.123 -> "12.3%".
std::string percent(double share);

/// after / before for people: "x4", "/8" ("×4", "÷8"), "gone" for -> 0, "new" for 0 ->.
std::string factor(double before, double after, Charset c);

/// The number of characters that a terminal shows for a UTF-8 text without combining marks.
int display_width(std::string_view text);

/// Breaks text at spaces so that no line is wider than `width`, where words allow. Every line after
/// the first starts with `indent` spaces.
std::string wrap(std::string_view text, int width, int indent = 0);

/// Text for people in a Markdown table cell or a CSV field.
std::string markdown_cell(std::string_view text);
std::string csv_field(std::string_view text);

}  // namespace fa2::cli

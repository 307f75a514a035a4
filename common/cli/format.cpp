#include "common/cli/format.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace fa2::cli {
namespace {

/// printf's %.*f. The program never calls setlocale(), so the point stays a point.
std::string fixed(double value, int decimals) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

/// Digits after the point that make `digits` significant ones; never negative.
int decimals_for(double value, int digits) {
  if (value == 0) return 0;
  const int exponent = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  return std::max(0, digits - 1 - exponent);
}

/// 1.50 -> 1.5, 4.00 -> 4.
std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Charset charset_of_environment() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    std::string text = value;
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool utf8 = text.find("utf-8") != text.npos || text.find("utf8") != text.npos;
    return utf8 ? Charset::utf8 : Charset::ascii;
  }
  return Charset::ascii;
}

std::string_view arrow(Charset c) { return c == Charset::utf8 ? "→" : "->"; }
std::string_view minus(Charset c) { return c == Charset::utf8 ? "–" : "-"; }

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fixed(value, std::min(decimals_for(value, 3), 9));
}

std::string count(uint64_t value) {
  if (value < 1'000'000) return std::to_string(value);
  const char* suffixes = "MGTPE";
  double scaled = static_cast<double>(value) / 1e6;
  for (; scaled >= 999.95 && suffixes[1]; scaled /= 1e3) ++suffixes;
  return fixed(scaled, decimals_for(scaled, 4)) + *suffixes;
}

std::string kib(uint64_t bytes) { return number(static_cast<double>(bytes) / 1024); }
std::string mib(uint64_t bytes) { return number(static_cast<double>(bytes) / (1024 * 1024)); }

std::string percent(double share) {
  return std::isfinite(share) ? fixed(share * 100, 1) + "%" : number(share);
}

std::string factor(double before, double after, Charset c) {
  if (before == after) return "same";
  if (after == 0) return "gone";
  if (before == 0) return "new";
  const bool more = after > before;
  const double ratio = more ? after / before : before / after;
  const std::string sign = c == Charset::utf8 ? (more ? "×" : "÷") : (more ? "x" : "/");
  if (ratio < 1.005) return (more ? "+" : "-") + number((ratio - 1) * 100) + "%";
  return sign + without_trailing_zeros(fixed(ratio, decimals_for(ratio, 3)));
}

int display_width(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string wrap(std::string_view text, int width, int indent) {
  const std::string new_line = "\n" + std::string(indent, ' ');
  std::string out;
  int column = 0;
  bool at_start = true;  // of a line
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const int length = display_width(word);
    if (!at_start && column + 1 + length > width) {
      out += new_line;
      column = indent;
    } else if (!at_start) {
      out += ' ';
      ++column;
    }
    out += word;
    column += length;
    at_start = false;
    if (end < text.size() && text[end] == '\n') {
      out += new_line;
      column = indent;
      at_start = true;
    }
    at = end + 1;
  }
  return out;
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace fa2::cli

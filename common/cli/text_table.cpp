#include "common/cli/text_table.h"

#include <algorithm>
#include <sstream>

#include "common/cli/format.h"

namespace fa2::cli {
namespace {

constexpr int gap = 2;  // spaces between columns

std::vector<std::string> lines_of(const std::string& head) {
  std::vector<std::string> lines;
  std::istringstream stream(head);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string padded(const std::string& cell, int width, bool left) {
  const std::string space(std::max(0, width - display_width(cell)), ' ');
  return left ? cell + space : space + cell;
}

/// Draws the first column and the columns [from, to) of a table.
class Part {
 public:
  Part(const Table& table, const std::vector<int>& widths, size_t from, size_t to)
      : table_(table), widths_(widths), columns_{0} {
    for (size_t c = from; c < to; ++c) columns_.push_back(c);
  }

  std::string text() const {
    std::string out = heads();
    std::string rule;
    for (size_t c : columns_)
      rule += (c ? std::string(gap, ' ') : "") + std::string(widths_[c], '-');
    out += rule + '\n';
    for (const auto& row : table_.rows) out += line(row);
    return out;
  }

 private:
  /// The heads stand on the rule: those with fewer lines start lower.
  std::string heads() const {
    size_t height = 1;
    for (size_t c : columns_) height = std::max(height, lines_of(table_.heads[c]).size());
    std::string out;
    for (size_t i = 0; i < height; ++i) {
      std::vector<std::string> cells(table_.heads.size());
      for (size_t c : columns_) {
        const auto lines = lines_of(table_.heads[c]);
        const size_t first = height - lines.size();
        if (i >= first) cells[c] = lines[i - first];
      }
      out += line(cells);
    }
    return out;
  }

  std::string line(const std::vector<std::string>& cells) const {
    std::string out;
    for (size_t c : columns_) {
      if (c) out += std::string(gap, ' ');
      out += padded(cells[c], widths_[c], c == 0);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + '\n';
  }

  const Table& table_;
  const std::vector<int>& widths_;
  std::vector<size_t> columns_;
};

std::vector<int> column_widths(const Table& table) {
  std::vector<int> widths;
  for (size_t c = 0; c < table.heads.size(); ++c) {
    int width = 1;
    for (const auto& line : lines_of(table.heads[c])) width = std::max(width, display_width(line));
    for (const auto& row : table.rows) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  return widths;
}

}  // namespace

std::string Table::text(int width) const {
  const std::vector<int> widths = column_widths(*this);
  std::string out;
  size_t from = 1;
  do {
    size_t to = from;
    int used = widths[0];
    while (to < heads.size() && (to == from || used + gap + widths[to] <= width)) {
      used += gap + widths[to++];
    }
    if (!out.empty()) out += '\n';
    out += Part(*this, widths, from, to).text();
    from = to;
  } while (from < heads.size());
  return out;
}

std::string Table::markdown() const {
  const auto row_of = [](const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const auto& cell : cells) line += " " + markdown_cell(cell) + " |";
    return line + "\n";
  };
  std::vector<std::string> one_line = heads;
  for (auto& head : one_line) {  // "wave-\nfronts" was divided for the terminal only
    for (size_t at; (at = head.find("-\n")) != head.npos;) head.erase(at, 2);
  }
  std::string out = row_of(one_line) + "|---|";
  for (size_t c = 1; c < heads.size(); ++c) out += "---:|";
  out += "\n";
  for (const auto& row : rows) out += row_of(row);
  return out;
}

}  // namespace fa2::cli

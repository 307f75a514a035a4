#pragma once
// A table of text that fits a terminal.
#include <string>
#include <vector>

namespace fa2::cli {

struct Table {
  std::vector<std::string> heads;              // column heads; '\n' stacks lines
  std::vector<std::vector<std::string>> rows;  // as many cells as heads

  /// Text of at most `width` columns where the cells allow. The first column is aligned left and
  /// the others right. A table too wide becomes several below each other, each with the first
  /// column.
  std::string text(int width) const;
  std::string markdown() const;
};

}  // namespace fa2::cli

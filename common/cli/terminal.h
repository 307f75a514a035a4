#pragma once
// Where a program's words go.
#include <string>

namespace fa2::cli {

/// Columns for text on standard output: the terminal's, else COLUMNS, else 100. At least 40.
int terminal_width();

/// A program's last act: throws fa2::Error if not all of what it printed could be written.
void end_output();

/// What a long run is doing, on standard error: one line that renews itself on a terminal, plain
/// lines elsewhere.
class Progress {
 public:
  /// `steps`: how many there will be. A quiet one says nothing.
  explicit Progress(int steps, bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;

  /// The next step begins.
  void step(const std::string& what);
  /// Makes room for other output on the terminal.
  void clear();

 private:
  int steps_, done_ = 0;
  bool quiet_, terminal_;
};

}  // namespace fa2::cli

#include "common/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/device/error.h"

namespace fa2::cli {

int terminal_width() {
  int width = 100;
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  } else if (const char* columns = std::getenv("COLUMNS"); columns && std::atoi(columns) > 0) {
    width = std::atoi(columns);
  }
  return std::max(width, 40);
}

void end_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw Error("The output could not be written. Is the disk full?");
}

Progress::Progress(int steps, bool quiet)
    : steps_(steps), quiet_(quiet), terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (terminal_ && !quiet_ && done_ > 0) std::fputs("\r\033[K", stderr);
}

void Progress::step(const std::string& what) {
  clear();
  ++done_;
  if (quiet_) return;
  std::string line = "[" + std::to_string(done_) + "/" + std::to_string(steps_) + "] " + what;
  winsize size{};
  if (terminal_ && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 8 &&
      line.size() >= size.ws_col) {
    line.resize(size.ws_col - 1);  // a line that wraps cannot be renewed
  }
  std::fprintf(stderr, terminal_ ? "%s" : "%s\n", line.c_str());
  std::fflush(stderr);
}

}  // namespace fa2::cli

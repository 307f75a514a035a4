#include "common/sim/finding.h"

#include <utility>

namespace fa2::sim {
namespace {

std::string triple(const Index3& i) {
  return "(" + std::to_string(i[0]) + ", " + std::to_string(i[1]) + ", " + std::to_string(i[2]) +
         ")";
}

std::string place(const std::string& file, int line) {
  return line == 0 ? std::string() : " at " + file + ":" + std::to_string(line);
}

std::string message(const Report& r) {
  std::string text = r.rule + ": " + r.summary;
  const auto add = [&](const char* label, const std::string& value) {
    text += std::string("\n  ") + label + value;
  };
  if (!r.kernel.empty())
    add("kernel  ", r.kernel + (r.has_thread ? ", block " + triple(r.block) : std::string()));
  if (r.has_thread)
    add("here    ", "thread " + triple(r.thread) + " " + r.action + place(r.file, r.line));
  if (r.has_other)
    add("there   ", "thread " + triple(r.other_thread) + " " + r.other_action +
                        place(r.other_file, r.other_line));
  for (const std::string& note : r.notes) add("        ", note);
  if (!r.fix.empty()) add("fix     ", r.fix);
  return text;
}

}  // namespace

Finding::Finding(Report report) : Error(message(report)), Report(std::move(report)) {}

}  // namespace fa2::sim

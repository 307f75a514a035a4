#pragma once
// The command line of fa2-compare.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/cli/compare/shapes.h"

namespace fa2::compare {

/// What was asked for.
struct Options {
  ShapeRequest shapes;
  std::vector<int> stages;              // their numbers; empty: all
  std::vector<std::string> dtypes;      // "fp16", "bf16"
  std::vector<std::string> tile_modes;  // "same", "same_b", "tuned"
  std::string backend;                  // "sim", "cuda", or empty: the best that works here
  std::string gpu;                      // the simulator's GPU model; empty: its default
  std::string out;                      // the folder of the results
  std::string against;                  // a file of results, or empty
  int threads = 0;                      // of the simulator; 0: all cores
  bool variants = false;                // also the variants beside the stages
  std::vector<std::pair<int, std::string>> mine;  // own kernels: stage and compiled library
  bool quiet = false;   // no progress, no tables: files and exit code only
  std::string resume;   // what a process that lost its GPU left to this one
  std::string command;  // the command line, for the record
};

/// Parses the arguments (without the program's name). Answers --help itself; no options are
/// returned when there is nothing left to do. Throws fa2::Error with one sentence for a person.
std::optional<Options> parse_options(std::vector<std::string> arguments);

}  // namespace fa2::compare

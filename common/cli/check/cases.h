#pragma once
// What fa2-check runs, and the files between its parts. Running is one process and judging another,
// so that nothing a kernel does to its own process can touch the verdict.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/harness/buffers.h"
#include "common/harness/spec.h"

namespace fa2::check {

/// One problem, and how the kernel is to solve it.
struct Case {
  Spec spec;
  std::string variant;  // "": the stage's first
  int tile_row = 0;     // of the variant's tile table
  Tile tile{};          // that row's tile, as the judge needs it
  bool only_LSE = false;
  bool timed = false;  // on a GPU
  // Of the simulator:
  bool blocks = false;          // what each block does, in the order in which blocks start
  unsigned max_grid_y = 65535;  // how many blocks a grid may have along y
};

/// Reads {"cases": [{"spec": "...", "variant": "", "tile_row": 0, "tile": [64, 128, 4, 1],
/// "only_LSE": false, "timed": false, "blocks": false, "max_grid_y": 65535}]}. Throws.
std::vector<Case> read_cases(const std::string& path);

/// What a case wrote, as O (in the order of its rows) and LSE, in `folder`.
void write_outputs(const std::string& folder, size_t index, const Outputs& outputs);

/// The inverse, for this problem. Throws Failure if the file is not there or not of its size.
Outputs read_outputs(const std::string& folder, size_t index, const Problem& problem);

/// The three commands. Each throws Failure.
void describe(const std::string& plugin, const std::string& out);
void run(const std::string& plugin, const std::string& cases, const std::string& folder,
         const std::string& backend, int threads);
nlohmann::ordered_json judge_all(const std::string& cases, const std::string& folder);

}  // namespace fa2::check

// fa2-try STAGE VARIANT TILE GRID_Y PROBLEM...: runs a stage of the simulator on problems, as every
// stage's contract test does, until one goes wrong. Prints "right", or what kind of mistake it is
// ("wrong", or the rule of the simulator that was broken) and, below it, the sentence. VARIANT may
// be "", TILE is "first" (without a ring of buffers), or "ring" or "tall" for the first with a ring,
// and with more than 4 warps; GRID_Y is how many blocks a grid may have along y, 65535 on a GPU.
#include <algorithm>
#include <cstdio>
#include <string>

#include "common/harness/failure.h"
#include "common/sim/finding.h"
#include "common/testing/contract.h"

namespace {

using namespace fa2;

int row_for(const Variant& variant, const Spec& spec, const std::string& tile) {
  const auto fits = [&](const TileRow& row) {
    return row.d == spec.d && (row.tile.depth > 1) == (tile != "first") &&
           (tile != "tall" || row.tile.warps > 4);
  };
  const auto row = std::ranges::find_if(variant.tiles, fits);
  if (row == variant.tiles.end()) throw Error("the stage has no such tile");
  return static_cast<int>(row - variant.tiles.begin());
}

int say(const std::string& kind, const std::string& text) {
  std::printf("%s\n%s\n", kind.c_str(), text.c_str());
  return 1;
}

int run(int argc, char** argv) {
  const Stage& stage = find_stage(Backend::sim, argv[1]);
  const Variant& variant = find_variant(stage, argv[2]);
  DeviceOptions options;
  options.max_grid_y = static_cast<unsigned>(std::stoul(argv[4]));
  const auto device = make_device(options);
  for (int i = 5; i < argc; ++i) {
    const Spec spec = parse_spec(argv[i]);
    const std::string problem = "\n  problem " + to_text(spec);
    const int row = row_for(variant, spec, argv[3]);
    try {
      const Outcome outcome = run_checked(*device, stage, variant, row, Workload(spec));
      if (!outcome.verdict.ok) return say("wrong", outcome.verdict.message + problem);
    } catch (const sim::Finding& finding) {
      return say(finding.rule, finding.what() + problem);
    }
  }
  std::printf("right\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: fa2-try STAGE VARIANT first|ring|tall GRID_Y PROBLEM...\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "fa2-try: %s\n", error.what());
    return 2;
  }
}

#include "common/cli/check/plugin.h"

#include <dlfcn.h>

#include "common/harness/failure.h"

namespace fa2 {
namespace {

/// Other programs read the sizes of a tile table: a strange one is refused here, in a sentence.
void check_tile(const std::string& path, const TileRow& row) {
  const Tile& t = row.tile;
  const auto positive = [](int value, int most) { return value > 0 && value <= most; };
  if (positive(t.Br, 512) && positive(t.Bc, 512) && positive(t.warps, 32) &&
      positive(t.depth, 16) && (row.d == 64 || row.d == 128))
    return;
  invalid("the tile table of " + path + " has a row with d=" + std::to_string(row.d) + ", tile " +
          std::to_string(t.Br) + "x" + std::to_string(t.Bc) + ", " + std::to_string(t.warps) +
          " warps, depth " + std::to_string(t.depth) + "; that is no tile of this course.");
}

}  // namespace

const Stage& load_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    invalid("the compiled kernel cannot be loaded: " + std::string(dlerror()));
  const auto* stage = static_cast<const Stage*>(dlsym(library, "fa2_plugin_stage"));
  if (stage == nullptr)
    invalid("the kernel defines no stage: its last lines must be FA2_STAGE(...) = {...};");
  if (stage->variants.empty() || stage->variants.front().tiles.empty())
    invalid("the stage has no variant with a tile table; see the last lines of the skeleton.");
  for (const Variant& variant : stage->variants)
    for (const TileRow& row : variant.tiles) check_tile(path, row);
  return *stage;
}

}  // namespace fa2

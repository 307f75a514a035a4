// The choice of a tile, and the count of visited tiles.
#include "common/harness/failure.h"
#include "common/harness/tiles.h"
#include "common/testing/catch.h"

using namespace fa2;

namespace {

constexpr TileRow rows[] = {
    {TileMode::same, 64, {64, 128, 4, 1}, 58368},
    {TileMode::same, 128, {64, 128, 4, 1}, 99328},
    {TileMode::tuned, 64, {256, 64, 8, 4}, 200000, 2},
    {TileMode::tuned, 64, {128, 64, 4, 2}, 90000, 2},
    {TileMode::tuned, 64, {64, 64, 4, 2}, 50000, 2},
};
const Variant variant = {"", rows, nullptr, nullptr};

Problem problem(int batch, int heads, int Nq, int Nk, int d, bool causal = false) {
  Problem p{};
  p.batch = batch;
  p.heads_q = p.heads_kv = heads;
  p.Nq = Nq;
  p.Nk = Nk;
  p.d = d;
  p.causal = causal;
  return p;
}

constexpr GpuLimits h200 = {232448, 132}, rtx3090 = {101376, 82};

int choose(TileMode mode, const Problem& p, const GpuLimits& gpu) {
  return choose_tile("stage9", variant, mode, p, gpu);
}

}  // namespace

TEST_CASE("the first row that fits and fills the GPU is taken", "[harness]") {
  CHECK(choose(TileMode::same, problem(1, 1, 64, 64, 64), h200) == 0);
  CHECK(choose(TileMode::same, problem(1, 1, 64, 64, 128), h200) == 1);
  CHECK(choose(TileMode::tuned, problem(2, 16, 4096, 64, 64), h200) == 2);  // 512 blocks
  CHECK(choose(TileMode::tuned, problem(2, 16, 1100, 64, 64), h200) == 3);  // 160, then 288
  CHECK(choose(TileMode::tuned, problem(2, 16, 4096, 64, 64), rtx3090) ==
        3);  // 200,000 is too much
}

TEST_CASE("a grid too small for any row takes the last that fits", "[harness]") {
  CHECK(choose(TileMode::tuned, problem(1, 1, 64, 64, 64), h200) == 4);
  CHECK(choose(TileMode::tuned, problem(1, 1, 64, 64, 64), {60000, 10}) == 4);
}

TEST_CASE("tuned falls back to the common tile", "[harness]") {
  CHECK(choose(TileMode::tuned, problem(1, 1, 64, 64, 128), h200) == 1);
}

TEST_CASE("a tile that does not exist or fit is named", "[harness]") {
  CHECK_THROWS_WITH(choose(TileMode::same_b, problem(1, 1, 1, 1, 64), h200),
                    "stage9 has no tile \"same_b\" for head_dim 64.");
  CHECK_THROWS_WITH(choose(TileMode::same, problem(1, 1, 1, 1, 128), {65536, 40}),
                    "stage9 has no tile \"same\" for head_dim 128 that fits this GPU: it needs "
                    "99,328 bytes of shared memory per block, the GPU has 65,536.");
}

TEST_CASE("visited tiles are those with a visible key", "[harness]") {
  CHECK(visited_tiles(problem(1, 1, 64, 128, 64), 64, 128) == 1);
  CHECK(visited_tiles(problem(2, 3, 65, 129, 64), 64, 128) == 2 * 3 * 2 * 2);
  CHECK(visited_tiles(problem(1, 1, 256, 256, 64, true), 64, 128) == 1 + 1 + 2 + 2);
  CHECK(visited_tiles(problem(1, 1, 64, 512, 64, true), 64, 128) == 4);
  CHECK(visited_tiles(problem(1, 1, 512, 64, 64, true), 64, 128) ==
        1);  // seven of eight see nothing
  CHECK(visited_tiles(problem(1, 1, 64, 0, 64), 64, 128) == 0);
  CHECK(visited_tiles(problem(1, 1, 0, 64, 64), 64, 128) == 0);
}

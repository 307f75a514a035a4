// Launches that a GPU would refuse, sessions, GPU models.
#include "common/device/device.h"
#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

using In = gptr<const float>;
using Out = gptr<float>;

const Kernel nothing = +[](In, Out) {};

TEST_CASE("launch: too much shared memory for the chosen GPU") {
  for (const sim::GpuModel& gpu : sim::gpu_models()) {
    Config config;
    config.gpu = &gpu;
    const auto bytes = static_cast<size_t>(gpu.shared_per_block);
    CHECK(!run(config, nothing, {1, 32, bytes}));
    const auto finding = run(config, nothing, {1, 32, bytes + 1});
    REQUIRE(finding);
    CHECK(finding->rule == rule::launch);
    CHECK(std::string(finding->what()).find(gpu.name) != std::string::npos);
    CHECK(std::string(finding->what()).find(std::to_string(bytes + 1)) != std::string::npos);
  }
}

TEST_CASE("launch: blocks and grids that no GPU takes, and the largest that they do") {
  for (const Shape& shape :
       {Shape{1, 1025, 0}, Shape{1, dim3(32, 33), 0}, Shape{0, 32, 0}, Shape{1, 0, 0},
        Shape{dim3(1, 65536), 32, 0}, Shape{dim3(1, 1, 65536), 32, 0}, Shape{1, dim3(1, 1, 65), 0},
        Shape{dim3(2147483648u), 32, 0}}) {
    const auto finding = run({}, nothing, shape);
    REQUIRE(finding);
    CHECK(finding->rule == rule::launch);
  }
  CHECK(!run({}, nothing, {1, 1024, 0}));
  CHECK(!run({}, nothing, {dim3(1, 2, 2), dim3(2, 2, 64), 0}));
  CHECK(!run({}, nothing, {1, 1, 0}));
}

TEST_CASE("launch: a grid of more q tiles than an axis takes has a block for each") {
  constexpr int q_tiles = 65537;
  const dim3 grid = grid_of(1, q_tiles);
  REQUIRE(grid.y <= 65535);
  std::vector<float> blocks(size_t{grid.y} * grid.z), none(1);
  Session session;
  session.expose("blocks", blocks.data(), blocks.size() * sizeof(float), true);
  const Kernel count = +[](In, Out out) { out[query_tile()] = out[query_tile()] + 1.f; };
  launch(count, grid, 1, 0, nullptr, none.data(), blocks.data());
  CHECK(std::all_of(blocks.begin(), blocks.end(), [](float n) { return n == 1.f; }));
  CHECK(blocks.size() >= q_tiles);
  CHECK(blocks.size() < q_tiles + grid.z);
  CHECK_THROWS_AS(grid_of(int64_t{1} << 31), Error);
  for (const int64_t tiles : {1, 65534, 65535, 65536, 131071, 16777216})  // the last: 2^30 queries
    CHECK((grid_of(1, tiles).y <= 65535 &&
           int64_t{grid_of(1, tiles).y} * grid_of(1, tiles).z >= tiles));
  CHECK(grid_of(1, 0).y == 0);  // an empty grid, which a launch refuses
}

TEST_CASE("launch: without a session") {
  Memory memory;
  CHECK_THROWS_AS(launch(nothing, 1, 1, 0, nullptr, memory.in.data(), memory.out.data()), Error);
}

TEST_CASE("launch: the report names the kernel and the line of the launch") {
  Session session;
  Memory memory;
  int line = 0;
  try {
    line = __LINE__ + 1;
    launch(nothing, 1, 2000, 0, nullptr, memory.in.data(), memory.out.data());
    FAIL("not refused");
  } catch (const Finding& finding) {
    CHECK(finding.line == line);
  }
}

template <int rows, class T>
void named_kernel(In, Out out) {
  out[-rows] = 1.f;
}

TEST_CASE("a finding names a templated, local kernel as its source has it") {
  const auto finding = run({}, named_kernel<3, half>);
  REQUIRE(finding);
  CHECK(finding->kernel.find("named_kernel<3, half>") != std::string::npos);
}

TEST_CASE("sessions: one inside another, arrays of none, no arrays at all") {
  Memory memory;
  const Kernel store = +[](In, Out out) { out[thread_id()] = 1.f; };
  const auto go = [&] { launch(store, 1, 32, 0, nullptr, memory.in.data(), memory.out.data()); };
  CHECK(Session::current() == nullptr);
  Session outer;
  memory.expose(outer);
  outer.expose("workspace", nullptr, 0, true);
  go();
  {
    Session inner;
    CHECK(Session::current() == &inner);
    CHECK_THROWS_AS(go(), Finding);
  }
  CHECK(Session::current() == &outer);
  go();
  CHECK(outer.counters().blocks == 2);
}

TEST_CASE("GPU models") {
  REQUIRE(!sim::gpu_models().empty());
  for (const sim::GpuModel& gpu : sim::gpu_models()) CHECK(sim::find_gpu(gpu.key) == &gpu);
  CHECK(sim::find_gpu("voodoo2") == nullptr);
  CHECK(sim::find_gpu("rtx3090")->shared_per_block == 101376);
}

}  // namespace
}  // namespace fa2::tests

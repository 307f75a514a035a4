// Stage 3: the same work as stage 2, in one block per query tile.
#include <algorithm>
#include <cstring>
#include <vector>

#include "common/harness/run.h"
#include "common/sim/observer.h"
#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage3_fa2_seqpar";
constexpr char natural_order[] = "stage3_fa2_seqpar/natural_order";
}

TEST_CASE("stage 3 keeps the contract", "[stage3]") { check_contract(stage); }
TEST_CASE("stage 3 gets the reported cases right", "[stage3]") { check_reported_cases(stage); }
TEST_CASE("stage 3 is reproducible", "[stage3]") { check_reproducible(stage); }
TEST_CASE("stage 3 solves random problems", "[stage3]") { check_random_problems(stage, 3); }

TEST_CASE("stage 3 counts what its algorithm says", "[stage3]") {
  for (const char* text : count_cases) {
    INFO(text);
    const Counted c = count_case(stage, text);
    const fa2_counters& n = c.n;
    check_common_counts(c);
    CHECK(n.blocks == c.q_tiles);
    check_split_k_counts(c);
    CHECK(n.block_barriers == c.T * (3 + 2 * c.d / 16) + 0);
  }
}

// ---- The variant that starts with the first q tile ---------------------------------------------

TEST_CASE("stage 3's natural_order solves random problems", "[stage3]") {
  check_random_problems(natural_order, 2);  // the code is the stage's
}
TEST_CASE("stage 3's natural_order moves no counter", "[stage3]") {
  for (const char* text : count_cases) {
    INFO(text);
    const fa2_counters n = count_case(natural_order, text).n,
                       heavy_first = count_case(stage, text).n;
    CHECK(std::memcmp(&n, &heavy_first, sizeof n) == 0);
  }
}

namespace {
/// How many products each block makes, in the order in which the blocks start.
std::vector<uint64_t> products(const char* name) {
  sim::BlockProducts found;
  DeviceOptions options;
  options.os_threads = 1;
  options.observer = &found;
  const Stage& stage_or_variant = find_stage(Backend::sim, name);
  run_checked(*make_device(options), stage_or_variant, find_variant(stage_or_variant, ""),
              TileMode::same, Workload(parse_spec("causal h=2 q=512 k=512")));
  std::vector<uint64_t> all;
  for (const auto& [block, mma] : found.mma) all.push_back(mma);
  return all;
}
}  // namespace

TEST_CASE("stage 3 starts with the heaviest block", "[stage3]") {
  const std::vector<uint64_t> found = products(stage);
  CHECK(found.size() == 16);
  CHECK(found.front() == 4 * found.back());
  CHECK(std::is_sorted(found.rbegin(), found.rend()));
}
TEST_CASE("stage 3's natural_order starts with the lightest block", "[stage3]") {
  const std::vector<uint64_t> heavy_first = products(stage), light_first = products(natural_order);
  CHECK(light_first == std::vector(heavy_first.rbegin(), heavy_first.rend()));
}

TEST_CASE("stages 3 to 6 go on along z where y ends", "[stage3]") {
  DeviceOptions options;
  options.max_grid_y = 3;
  const auto device = make_device(options);
  for (const Stage* one : stages(Backend::sim)) {
    if (one->number < 3) continue;
    for (const char* text : {"causal h=2 q=512 k=300", "q=150 k=70", "q=192 k=70"}) {
      INFO(one->name << ", " << text);
      for (const Variant& variant : one->variants) {
        const Outcome outcome =
            run_checked(*device, *one, variant, TileMode::same, Workload(parse_spec(text)));
        CHECK(outcome.verdict.message == "");
      }
    }
  }
}

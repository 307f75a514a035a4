// Stage 5: the statistics are in registers and meet by shuffles.
#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage5_fa2_registers";
}

TEST_CASE("stage 5 keeps the contract", "[stage5]") { check_contract(stage); }
TEST_CASE("stage 5 gets the reported cases right", "[stage5]") { check_reported_cases(stage); }
TEST_CASE("stage 5 is reproducible", "[stage5]") { check_reproducible(stage); }
TEST_CASE("stage 5 solves random problems", "[stage5]") { check_random_problems(stage, 5); }

TEST_CASE("stage 5 counts what its algorithm says", "[stage5]") {
  for (const char* text : count_cases) {
    INFO(text);
    const Counted c = count_case(stage, text);
    const fa2_counters& n = c.n;
    check_common_counts(c);
    CHECK(n.blocks == c.q_tiles);
    CHECK(n.exp2_stats == c.T * 4 * c.Br);
    CHECK(n.normalisations == c.T * 4 * c.Br);
    CHECK(n.shuffles == c.T * c.Br / 2);  // 8 per warp of 16 rows
    CHECK(n.shared_store_bytes_statistics == 0);
    CHECK(n.shared_load_bytes_statistics == 0);
    CHECK(n.warp_syncs == 0);
    CHECK(n.block_barriers == c.T * 3);
    CHECK(n.fp32_mul_O + n.fp32_fma_O == c.T * 2 * c.Br * c.d + c.q_tiles * c.Br * c.d);
  }
}

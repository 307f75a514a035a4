// Stage 6: O is divided once per row, and rescaled only when a maximum grew.
#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage6_fa2_deferred";
}

TEST_CASE("stage 6 keeps the contract", "[stage6]") { check_contract(stage); }
TEST_CASE("stage 6 gets the reported cases right", "[stage6]") { check_reported_cases(stage); }
TEST_CASE("stage 6 is reproducible", "[stage6]") { check_reproducible(stage); }
TEST_CASE("stage 6 solves random problems", "[stage6]") { check_random_problems(stage, 6); }

TEST_CASE("stage 6 counts what its algorithm says", "[stage6]") {
  for (const char* text : count_cases) {
    INFO(text);
    const Counted c = count_case(stage, text);
    const fa2_counters& n = c.n;
    check_common_counts(c);
    CHECK(n.blocks == c.q_tiles);
    CHECK(n.normalisations == c.q_tiles * 4 * c.Br);
    CHECK(n.shared_store_bytes_statistics == 0);
    CHECK(n.warp_syncs == 0);
    CHECK(n.block_barriers == c.T * 3);
    CHECK(n.exp2_stats <= c.T * 4 * c.Br);
    CHECK(n.shuffles <= c.T * c.Br / 4 + c.q_tiles * c.Br / 4);
    CHECK(n.fp32_mul_O + n.fp32_fma_O <= c.T * c.Br * c.d + c.q_tiles * c.Br * c.d);
  }
}

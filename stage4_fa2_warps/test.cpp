// Stage 4: no partial O, and the only block barriers are those of the K and V copies.
#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage4_fa2_warps";
}

TEST_CASE("stage 4 keeps the contract", "[stage4]") { check_contract(stage); }
TEST_CASE("stage 4 gets the reported cases right", "[stage4]") { check_reported_cases(stage); }
TEST_CASE("stage 4 is reproducible", "[stage4]") { check_reproducible(stage); }
TEST_CASE("stage 4 solves random problems", "[stage4]") { check_random_problems(stage, 4); }

TEST_CASE("stage 4 counts what its algorithm says", "[stage4]") {
  for (const char* text : count_cases) {
    INFO(text);
    const Counted c = count_case(stage, text);
    const fa2_counters& n = c.n;
    check_common_counts(c);
    CHECK(n.blocks == c.q_tiles);
    CHECK(n.exp2_stats == c.T * c.Br);
    CHECK(n.normalisations == c.T * c.Br);
    CHECK(n.shuffles == 0);
    CHECK(n.shared_store_bytes_partial_o == 0);
    CHECK(n.shared_store_bytes_statistics > 0);
    CHECK(n.warp_syncs == c.T * 4 * c.warps);
    CHECK(n.block_barriers == c.T * 3);
  }
}

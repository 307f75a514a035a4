// Stage 2: right over the whole contract, and S and P never reach global memory.
#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage2_fa1";
}

TEST_CASE("stage 2 keeps the contract", "[stage2]") { check_contract(stage); }
TEST_CASE("stage 2 gets the reported cases right", "[stage2]") { check_reported_cases(stage); }
TEST_CASE("stage 2 is reproducible", "[stage2]") { check_reproducible(stage); }
TEST_CASE("stage 2 solves random problems", "[stage2]") { check_random_problems(stage, 2); }

TEST_CASE("stage 2 counts what its algorithm says", "[stage2]") {
  for (const char* text : count_cases) {
    INFO(text);
    const Counted c = count_case(stage, text);
    const fa2_counters& n = c.n;
    check_common_counts(c);
    CHECK(n.blocks == c.heads);
    CHECK(n.exp2_stats == c.T * c.Br);
    CHECK(n.normalisations == c.T * c.Br);
    CHECK(n.shuffles == 0);
    CHECK(n.warp_syncs == 0);
    // Every warp gives the partial P V of the other warps' rows away, once per visited tile.
    CHECK(n.shared_store_bytes_partial_o == c.T * (c.warps - 1) * c.Br * c.d * 4);
    CHECK(n.shared_load_bytes_partial_o == n.shared_store_bytes_partial_o);
    CHECK(n.shared_wavefronts_partial_o == n.shared_wavefronts_ideal_partial_o);
    CHECK(n.block_barriers == c.T * (3 + 2 * c.d / 16) + c.q_tiles);
  }
}

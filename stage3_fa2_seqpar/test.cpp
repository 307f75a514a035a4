// Stage 3: the same work as stage 2, in one block per query tile.
#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage3_fa2_seqpar";
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

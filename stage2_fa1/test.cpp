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
    check_split_k_counts(c);
    CHECK(n.block_barriers == c.T * (3 + 2 * c.d / 16) + c.q_tiles);
  }
}

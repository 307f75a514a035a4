// Stage 3: the same work as stage 2, in one block per query tile.
#include <cstring>

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

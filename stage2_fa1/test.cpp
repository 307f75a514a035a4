// Stage 2: right over the whole contract, and S and P never reach global memory.
#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage2_fa1", kv_outer[] = "stage2_fa1/kv_outer";
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

// ---- The variant with the loops of FA1's paper -------------------------------------------------

TEST_CASE("stage 2's kv_outer keeps the contract", "[stage2]") { check_contract(kv_outer); }
TEST_CASE("stage 2's kv_outer is reproducible", "[stage2]") { check_reproducible(kv_outer); }
TEST_CASE("stage 2's kv_outer solves random problems", "[stage2]") {
  check_random_problems(kv_outer, 1);
}

TEST_CASE("stage 2's kv_outer: O crosses global memory with every tile of K", "[stage2]") {
  for (const char* text : count_cases) {
    INFO(text);
    const Counted c = count_case(kv_outer, text), inner = count_case(stage, text);
    const fa2_counters& n = c.n;
    CHECK(n.blocks == c.heads);
    CHECK(n.mma == inner.n.mma);
    check_split_k_counts(c);
    // Q with every pair of tiles, K and V once per head; O, m and l but for the first and last tile.
    const uint64_t Tc = (c.Nk + c.Bc - 1) / c.Bc, kept = c.Br * 4 * (c.d + 2);
    CHECK(n.global_load_bytes ==
          c.T * 2 * c.Br * c.d + c.heads * Tc * 2 * 2 * c.Bc * c.d + (c.T - c.q_tiles) * kept);
    CHECK(n.global_store_bytes == c.heads * c.Nq * (2 * c.d + 4) + (c.T - c.q_tiles) * kept);
  }
}

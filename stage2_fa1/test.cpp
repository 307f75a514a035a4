// Stage 2: right over the whole contract, and S and P never reach global memory.
#include "common/harness/tiles.h"
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
TEST_CASE("stage 2 solves random problems", "[stage2]") { check_random_problems(stage, 3); }

TEST_CASE("stage 2 counts what its algorithm says", "[stage2]") {
  for (const char* text : {"h=2 q=256 k=256", "causal h=2 q=256 k=256", "d=128 q=128 k=384",
                           "causal b=2 h=4/2 q=128 k=256"}) {
    const Spec spec = parse_spec(text);
    Tile tile{};
    const fa2_counters n = count(stage, spec, &tile);
    Problem p{};
    p.batch = static_cast<int>(spec.batch);
    p.heads_q = static_cast<int>(spec.heads_q);
    p.Nq = static_cast<int>(spec.Nq);
    p.Nk = static_cast<int>(spec.Nk);
    p.causal = spec.causal;
    const uint64_t Br = tile.Br, Bc = tile.Bc, d = spec.d, heads = spec.batch * spec.heads_q;
    const uint64_t T = visited_tiles(p, tile.Br, tile.Bc);
    INFO(text);
    CHECK(n.blocks == heads);
    CHECK(n.mma == T * 4 * Br * Bc * d / 4096);
    CHECK(n.exp2_p == T * Br * Bc);
    CHECK(n.exp2_stats == T * Br);
    CHECK(n.normalisations == T * Br);
    CHECK(n.shuffles == 0);
    // Q once, K and V once per visit; O and LSE once.
    CHECK(n.global_load_bytes == 2 * heads * spec.Nq * d + T * 2 * 2 * Bc * d);
    CHECK(n.global_store_bytes == heads * spec.Nq * (2 * d + 4));
  }
}

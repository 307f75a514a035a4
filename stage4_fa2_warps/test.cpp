// Stage 4: no partial O, and the only block barriers are those of the K and V copies.
#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage4_fa2_warps", kv_split[] = "stage4_fa2_warps/kv_split";

/// Exponentials of one q tile when the warps combine: of every row, each of the 32 / 8 lanes of every
/// warp that hold it weighs all warps and its own, and the row's owner does once more for LSE.
uint64_t combined_exp2(const Counted& c) { return c.Br * (4 * c.warps * (c.warps + 1) + c.warps); }
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

// ---- The variant whose warps split the keys ----------------------------------------------------

TEST_CASE("stage 4's kv_split keeps the contract", "[stage4]") { check_contract(kv_split); }
TEST_CASE("stage 4's kv_split is reproducible", "[stage4]") { check_reproducible(kv_split); }
TEST_CASE("stage 4's kv_split solves random problems", "[stage4]") {
  check_random_problems(kv_split, 1);
}

TEST_CASE("stage 4's kv_split exchanges O once per q tile", "[stage4]") {
  for (const char* text : count_cases) {
    INFO(text);
    const Counted c = count_case(kv_split, text);
    const fa2_counters& n = c.n;
    check_common_counts(c);
    CHECK(c.Br == (c.d == 64 ? 64 : 32));
    CHECK(n.exp2_stats == c.T * c.warps * c.Br + c.q_tiles * combined_exp2(c));
    CHECK(n.shuffles == 0);
    CHECK(n.warp_syncs == c.T * c.warps * (4 + c.d / 16 - 1));
    CHECK(n.block_barriers == c.T * 3 + c.q_tiles * 2 * c.Br / 16);
    CHECK(n.shared_store_bytes_partial_o == c.q_tiles * (c.warps - 1) * c.Br * c.d * 4);
    CHECK(n.shared_load_bytes_partial_o == n.shared_store_bytes_partial_o);
    CHECK(n.shared_wavefronts_partial_o == n.shared_wavefronts_ideal_partial_o);
  }
}

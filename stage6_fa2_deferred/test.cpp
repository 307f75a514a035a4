// Stage 6: O is divided once per row, and rescaled only when a maximum grew.
#include <string>

#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage6_fa2_deferred";
constexpr char threshold_0[] = "stage6_fa2_deferred/threshold_0";
}

TEST_CASE("stage 6 keeps the contract", "[stage6]") { check_contract(stage); }
TEST_CASE("stage 6 gets the reported cases right", "[stage6]") { check_reported_cases(stage); }
TEST_CASE("stage 6 is reproducible", "[stage6]") { check_reproducible(stage); }
TEST_CASE("stage 6 solves random problems", "[stage6]") { check_random_problems(stage, 6); }

TEST_CASE("stage 6 counts what its algorithm says", "[stage6]") {
  for (const char* text : count_cases)
    for (const std::string variant : {"paper", "lazy"}) {
      INFO(text << ", " << variant);
      const Counted c = count_case(stage, text, variant.c_str());
      const fa2_counters& n = c.n;
      check_common_counts(c);
      CHECK(n.blocks == c.q_tiles);
      CHECK(n.normalisations == c.q_tiles * 4 * c.Br);
      CHECK(n.shared_store_bytes_statistics == 0);
      CHECK(n.warp_syncs == 0);
      CHECK(n.block_barriers == c.T * 3);
      CHECK(n.votes == c.T * c.warps);

      // A rescale is one warp's, of 16 rows: two per lane.
      const uint64_t rescales = n.exp2_stats / 64;
      CHECK(n.exp2_stats == rescales * 64);
      CHECK(n.shuffles == rescales * 4 + c.q_tiles * c.warps * 4);
      CHECK(n.fp32_mul_O + n.fp32_fma_O == (rescales * 16 + c.q_tiles * c.Br) * c.d);
      if (variant == "paper") {
        CHECK(rescales == c.T * c.warps);  // every tile
      } else {
        CHECK(rescales >= c.q_tiles * c.warps);  // the first tile raises m from -inf
        CHECK(rescales < c.T * c.warps);
      }
    }
}

// ---- The variant with a threshold of 0 ---------------------------------------------------------

TEST_CASE("stage 6's threshold_0 solves random problems", "[stage6]") {
  check_random_problems(threshold_0, 2);  // the code is the stage's
}
TEST_CASE("stage 6's threshold_0 rescales when a maximum grew", "[stage6]") {
  for (const char* text : count_cases) {
    INFO(text);
    const fa2_counters zero = count_case(threshold_0, text).n;
    const fa2_counters paper = count_case(stage, text, "paper").n;
    const fa2_counters lazy = count_case(stage, text, "lazy").n;
    CHECK(zero.exp2_stats <= paper.exp2_stats);
    CHECK(zero.exp2_stats >= lazy.exp2_stats);
    CHECK(zero.mma == paper.mma);
    CHECK(zero.exp2_p == paper.exp2_p);
    CHECK(zero.global_load_bytes == paper.global_load_bytes);
  }
}

// Stage 6: O is divided once per row, and rescaled only when a maximum grew.
#include <algorithm>
#include <string>

#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage6_fa2_deferred";
constexpr char threshold_0[] = "stage6_fa2_deferred/threshold_0";
constexpr char first_max[] = "stage6_fa2_deferred/first_max";
int64_t ceil_to(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
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

TEST_CASE("in stage 6's tall tiles a warp leaves out what its rows do not see", "[stage6]") {
  int tall = 0;
  for_each_kernel(stage, [&](Device& device, const Stage& s, const Variant& variant, int row) {
    const auto [Br, Bc, warps, depth] = variant.tiles[row].tile;
    if (warps <= 4 || device.info().backend != Backend::sim) return;
    ++tall;
    Spec spec = parse_spec("causal h=2 q=600 k=650");
    spec.d = variant.tiles[row].d;
    const Workload workload(spec);
    const Outcome outcome = run_checked(device, s, variant, row, workload);
    CHECK(outcome.verdict.message == "");

    const int rows = Br / warps;
    int64_t visits = 0;  // pairs of a warp and a key tile that some row of the warp sees
    for (int64_t first = 0; first < ceil_to(spec.Nq, Br); first += rows) {
      const int64_t last = std::min<int64_t>(first + rows, spec.Nq) - 1;
      visits += spec.heads_q * ceil_to(visible_keys(workload.problem(), last), Bc) / Bc;
    }
    const auto T = visited_tiles(workload.problem(), Br, Bc);
    CHECK(visits < T * warps);
    CHECK(outcome.counters.mma == static_cast<uint64_t>(visits * 4 * rows * Bc * spec.d / 4096));
    CHECK(outcome.counters.exp2_p == static_cast<uint64_t>(visits * rows * Bc));
    CHECK(outcome.counters.cp_async ==
          static_cast<uint64_t>(T * 2 * Bc + spec.heads_q * ceil_to(spec.Nq, Br)) * spec.d / 8);
  });
  CHECK(tall >= 2);
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

// ---- The variant that keeps the first tile's maximum -------------------------------------------

TEST_CASE("stage 6's first_max keeps the contract", "[stage6]") { check_contract(first_max); }
TEST_CASE("stage 6's first_max gets the reported cases right", "[stage6]") {
  check_reported_cases(first_max);
}
TEST_CASE("stage 6's first_max is reproducible", "[stage6]") { check_reproducible(first_max); }
TEST_CASE("stage 6's first_max solves random problems", "[stage6]") {
  check_random_problems(first_max, 2);
}
TEST_CASE("stage 6's first_max repeats a q tile only where some P was infinite", "[stage6]") {
  int kernels = 0;
  for_each_kernel(first_max, [&](Device& device, const Stage& s, const Variant& variant, int row) {
    if (device.info().backend != Backend::sim) return;
    ++kernels;
    const auto [Br, Bc, warps, depth] = variant.tiles[row].tile;
    const auto counters = [&](const char* text) {
      Spec spec = parse_spec(text);
      spec.d = variant.tiles[row].d;
      const Outcome outcome = run_checked(device, s, variant, row, Workload(spec));
      CHECK(outcome.verdict.message == "");
      return outcome.counters;
    };
    const uint64_t q_tiles = ceil_to(300, Br) / Br, key_tiles = ceil_to(650, Bc) / Bc;
    const uint64_t per_row = 4;  // lanes that hold a row
    const fa2_counters once = counters("q=300 k=650");
    CHECK(once.votes == q_tiles * warps);
    CHECK(once.exp2_stats == q_tiles * Br * per_row);  // of the first key tile
    CHECK(once.block_barriers == q_tiles * (depth == 1 ? 3 * key_tiles + 1 : 2));
    const fa2_counters again = counters("q=300 k=650 inputs=large_logits");
    CHECK(again.mma == 2 * once.mma);
    CHECK(again.votes == once.votes);
    CHECK(again.exp2_stats == q_tiles * Br * per_row * (1 + key_tiles));
  });
  CHECK(kernels == 4);
}

// Stage 1: right over the whole contract, and S and P cost N^2 bytes of global memory.
#include "common/testing/attention_counts.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

using namespace fa2;
using namespace fa2::testing;

namespace {
constexpr char stage[] = "stage1_naive";
}

TEST_CASE("stage 1 keeps the contract", "[stage1]") { check_contract(stage); }
TEST_CASE("stage 1 gets the reported cases right", "[stage1]") { check_reported_cases(stage); }
TEST_CASE("stage 1 is reproducible", "[stage1]") { check_reproducible(stage); }
TEST_CASE("stage 1 solves random problems", "[stage1]") { check_random_problems(stage, 3); }

TEST_CASE("stage 1 counts what its algorithm says", "[stage1]") {
  for (const char* text : count_cases) {
    INFO(text);
    const Counted c = count_case(stage, text);
    const fa2_counters& n = c.n;
    const uint64_t rows = c.heads * c.Nq, Tc = (c.Nk + c.Bc - 1) / c.Bc;
    CHECK(n.mma == c.T * 4 * c.Br * c.Bc * c.d / 4096);
    CHECK(n.exp2_p == 2 * c.visible);  // once for the sum, once for P
    CHECK(n.normalisations == rows * 32);
    // S = Q K^T per pair of tiles, the softmax 4 rows per block, O = P V per query tile.
    CHECK(n.blocks == c.q_tiles * Tc + (rows + 3) / 4 + c.q_tiles);
    CHECK(n.block_barriers == 3 * c.T);
    CHECK(n.warp_syncs == 3 * rows);
    // Q, K and V tiles per pair of tiles; S three times, in fp32, where it is visible; P as a tile.
    CHECK(n.global_load_bytes ==
          c.T * 2 * (c.Br + 2 * c.Bc) * c.d + 3 * 4 * c.visible + c.T * 2 * c.Br * c.Bc);
    // S and P as tiles, O, LSE.
    CHECK(n.global_store_bytes == c.T * (4 + 2) * c.Br * c.Bc + rows * (2 * c.d + 4));
    CHECK(n.shared_store_bytes_statistics == 2 * rows * 32 * 4);
    CHECK(n.shared_load_bytes_statistics == 2 * rows * 32 * 32 * 4);
    CHECK(n.shared_wavefronts_tiles == n.shared_wavefronts_ideal_tiles);
  }
}

TEST_CASE("stage 1's global bytes grow as N^2", "[stage1]") {
  const auto bytes = [](const char* spec) {
    const fa2_counters n = count(stage, parse_spec(spec));
    return static_cast<double>(n.global_load_bytes + n.global_store_bytes);
  };
  const double once = bytes("q=512 k=512"), twice = bytes("q=1024 k=1024");
  CHECK(twice / once > 3.8);
  CHECK(twice / once < 4.2);
}

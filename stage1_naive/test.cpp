// Stage 1: right over the whole contract, and S and P cost N^2 bytes of global memory.
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

TEST_CASE("stage 1's global bytes grow as N^2", "[stage1]") {
  const auto bytes = [](const char* spec) {
    const fa2_counters n = count(stage, parse_spec(spec));
    return static_cast<double>(n.global_load_bytes + n.global_store_bytes);
  };
  const double once = bytes("q=512 k=512"), twice = bytes("q=1024 k=1024");
  CHECK(twice / once > 3.8);
  CHECK(twice / once < 4.2);
}

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/cli/compare/csv.h"
#include "common/cli/compare/record.h"
#include "common/cli/tests/records.h"
#include "common/device/error.h"
#include "common/testing/catch.h"

namespace {

using namespace fa2::compare;
using namespace fa2::compare::testing;
using Json = nlohmann::ordered_json;

Results everything() {
  Results r;
  r.command = "fa2 compare";
  r.environment = environment();
  r.records = {counted("stage2_fa1", 2), timed("stage6_fa2_deferred", 6, 0.5, 0.02, "lazy")};
  r.records[0].counters->exp2_p = (uint64_t{1} << 60) + 1;  // more than a double holds
  r.records[0].counters->fp32_fma_stat = 7;
  Record none = record("stage1_naive", 1);
  none.backend = "cuda";
  none.tile.reset();
  none.max_abs_err.reset();
  none.tolerance.reset();
  none.share_of_tolerance.reset();
  none.outcome = Outcome::not_run;
  none.reason = "the workspace, 4 GiB, does not fit";
  r.records.push_back(none);
  return r;
}

TEST_CASE("TFLOP/s are 4 B H Nq Nk d / time, halved when causal") {
  Record r = timed("stage2_fa1", 2, 2.0);
  const double flops = 4.0 * 2 * 16 * 4096 * 4096 * 128;
  CHECK(close(*r.tflops(), flops / 2e-3 / 1e12));
  r.shape.causal = true;
  CHECK(close(*r.tflops(), flops / 2 / 2e-3 / 1e12));
  r.time_ms.reset();
  CHECK_FALSE(r.tflops());
}

TEST_CASE("labels") {
  CHECK(label(record("stage2_fa1", 2)) == "2 fa1");
  CHECK(label(record("stage3_fa2_seqpar", 3)) == "3 seqpar");
  CHECK(label(record("stage6_fa2_deferred", 6, "lazy")) == "6 deferred lazy");
  CHECK(label(record("stage2_fa1/kv_outer", 2)) == "2 fa1/kv_outer");
  CHECK(label(Shape{1, 2, 2, 512, 512, 64, true}) == "B1 H2 N512 d64 causal");
  CHECK(label(Shape{1, 8, 2, 100, 512, 64, false}) == "B1 H8 Hkv2 Nq100 Nk512 d64 full");
  CHECK(label(TileUsed{64, 128, 4, 1, 0}) == "64x128, 4 warps");
  CHECK(label(TileUsed{64, 128, 4, 2, 0}) == "64x128, 4 warps, depth 2");
}

TEST_CASE("a record keeps everything through JSON") {
  const Results before = everything();
  const Json j = to_json(before);
  const Results after = results_from_json(Json::parse(j.dump()));
  REQUIRE(after.records.size() == 3);
  CHECK(to_json(after) == j);
  const Record& r = after.records[0];
  CHECK(r.counters->exp2_p == (uint64_t{1} << 60) + 1);
  CHECK(r.counters->fp32_fma_stat == 7);
  CHECK(r.shape == before.records[0].shape);
  CHECK(r.tile == before.records[0].tile);
  CHECK(r.environment == before.records[0].environment);
  CHECK(after.records[1].time_ms == 0.5);
  CHECK_FALSE(after.records[1].counters);
  CHECK(after.records[2].outcome == Outcome::not_run);
  CHECK_FALSE(after.records[2].tile);
}

TEST_CASE("the simulator's records never have seconds, a GPU's never counters") {
  const Json j = to_json(everything());
  CHECK(j["version"] == 1);
  CHECK(j["records"][0]["time_ms"].is_null());
  CHECK(j["records"][0]["tflops"].is_null());
  CHECK(j["records"][0]["counters"]["mma"] == 4096);
  CHECK(j["records"][0]["ok"] == true);
  CHECK(j["records"][1]["counters"].is_null());
  CHECK(j["records"][2]["ok"].is_null());
}

TEST_CASE("NaN survives JSON") {
  Results r = everything();
  r.records[0].max_abs_err = std::nan("");
  r.records[1].max_abs_err = std::numeric_limits<double>::infinity();
  const Results after = results_from_json(Json::parse(to_json(r).dump()));
  CHECK(std::isnan(*after.records[0].max_abs_err));
  CHECK(std::isinf(*after.records[1].max_abs_err));
}

TEST_CASE("a file that is not ours is refused with a sentence") {
  CHECK(mentions([&] { results_from_json(Json::parse("[1, 2]")); }, "no file of fa2"));
  Json j = to_json(everything());
  j["version"] = 99;
  CHECK(mentions([&] { results_from_json(j); }, "version 99"));
  j = to_json(everything());
  j["records"][1].erase("stage");
  CHECK(mentions([&] { results_from_json(j); }, "record 2"));
  j = to_json(everything());
  j["records"][0]["shape"]["B"] = "two";
  CHECK_THROWS_AS(results_from_json(j), fa2::Error);
  CHECK(mentions([&] { read_results("/nowhere/at/all.json"); }, "/nowhere/at/all.json"));
}

TEST_CASE("CSV has as many fields in every line as in the first") {
  Results r = everything();
  r.records[2].reason = "does not fit, at all";
  std::istringstream lines(to_csv(r));
  std::string line;
  std::vector<size_t> fields;
  for (int i = 0; std::getline(lines, line); ++i) {
    bool quoted = false;
    size_t n = 1;
    for (char c : line) {
      quoted ^= c == '"';
      n += c == ',' && !quoted;
    }
    fields.push_back(n);
    if (i == 1) {
      CHECK(
          line.starts_with("stage2_fa1,,sim,1,2,2,512,512,64,false,fp16,same,64,128,4,1,99328,,"));
      CHECK(line.find("1152921504606846977") != std::string::npos);  // exact
    }
  }
  REQUIRE(fields.size() == 4);
  CHECK(fields[0] > 60);
  for (size_t n : fields) CHECK(n == fields[0]);
}

}  // namespace

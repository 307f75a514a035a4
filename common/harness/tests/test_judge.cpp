// The checks accept a right stage and reject every wrong one.
#include "common/harness/judge.h"

#include <cmath>

#include "common/harness/run.h"
#include "common/testing/catch.h"
#include "common/testing/contract.h"
#include "common/testing/plain_attention.h"

using namespace fa2;
using namespace fa2::testing;

namespace {

/// The first case that a stage gets wrong, as "name: message", or "".
std::string first_complaint(Device& device, const PlainStage& plain, int tile_row,
                            const std::vector<ContractCase>& cases) {
  for (const ContractCase& item : cases) {
    const std::string message =
        run_case(device, plain.stage, plain.stage.variants[0], tile_row, item.spec);
    if (!message.empty()) return item.name + ": " + message;
  }
  return "";
}

std::vector<ContractCase> all_cases(int d) {
  std::vector<ContractCase> cases = contract_cases({64, 128, 4, 1}, d);
  for (ContractCase& item : reported_cases(d, Backend::cuda)) cases.push_back(std::move(item));
  return cases;
}

std::string message_for(const char* mistake, const char* spec) {
  const auto device = make_device({});
  for (const PlainStage& plain : plain_stages())
    if (std::string(plain.mistake) == mistake)
      return run_case(*device, plain.stage, plain.stage.variants[0], 0, parse_spec(spec));
  return "no such mistake";
}

}  // namespace

TEST_CASE("a right stage passes every case", "[harness]") {
  const auto device = make_device({});
  CHECK(first_complaint(*device, plain_stages()[0], 0, all_cases(64)) == "");
  CHECK(first_complaint(*device, plain_stages()[0], 1, all_cases(128)) == "");
}

TEST_CASE("every wrong stage is rejected", "[harness]") {
  const auto device = make_device({});
  const std::vector<ContractCase> cases = all_cases(64);
  for (const PlainStage& plain : plain_stages().subspan(1)) {
    INFO(plain.mistake);
    CHECK(first_complaint(*device, plain, 0, cases) != "");
  }
}

// NaN (SGEMM_CUDA #20), random noise (mlir-air #1427), Q and K ignored (66RING #12) and one head's
// data for all (cs149gpt) passed where they were reported.
TEST_CASE("mistakes that pass in other checkers fail on the plainest problem", "[harness]") {
  const char* plainest = "h=2 q=100 k=100";
  for (const char* mistake :
       {"writes_nothing", "writes_zeros", "writes_nan", "writes_noise", "ignores_Q_and_K",
        "unscaled", "last_row_missing", "last_key_missing", "one_head_for_all", "LSE_in_log2",
        "sums_in_16_bits", "probabilities_in_8_bits"}) {
    INFO(mistake);
    CHECK(message_for(mistake, plainest) != "");
  }
}

TEST_CASE("a complaint names the place and both numbers", "[harness]") {
  CHECK(message_for("writes_nothing", "q=3 k=3") ==
        "O[batch 0, head 0, row 0, column 0] was never written.");
  CHECK_THAT(message_for("writes_nan", "q=3 k=3"),
             Catch::Matchers::StartsWith("O[batch 0, head 0, row 0, column 0] is NaN, expected "));
  CHECK_THAT(message_for("LSE_in_log2", "q=3 k=3"),
             Catch::Matchers::StartsWith("LSE[batch 0, head 0, row 0] is "));
  CHECK_THAT(message_for("writes_between_rows", "q=3 k=3 layout=row_gap"),
             Catch::Matchers::Equals("memory was changed between the rows of O, at element 64."));
  CHECK(message_for("writes_behind_O", "q=3 k=3") == "memory was changed behind the end of O.");
  CHECK(message_for("writes_before_LSE", "q=3") == "memory was changed before the start of LSE.");
  CHECK(message_for("writes_behind_workspace", "q=3") ==
        "memory was changed behind the end of the workspace.");
  CHECK(message_for("hides_nan", "q=90 k=90 inputs=nan_Q") != "");
  CHECK(message_for("empty_rows_nan", "causal q=4 k=2") ==
        "LSE[batch 0, head 0, row 0] is NaN, expected -inf: the row has no weight.");
}

TEST_CASE("the verdict reports the error and what was allowed", "[harness]") {
  const auto device = make_device({});
  const Stage& right = plain_stages()[0].stage;
  const Workload workload(parse_spec("h=2 q=100 k=100"));
  const Verdict v =
      run_checked(*device, right, right.variants[0], TileMode::same, workload).verdict;
  CHECK(v.ok);
  CHECK(v.max_abs_err > 0);
  CHECK(v.tolerance > 0);
  CHECK((v.worst_share > 0.05 && v.worst_share <= 1));
  CHECK(v.max_lse_err < 1e-5);

  const Stage& wrong = plain_stages()[3].stage;  // writes NaN
  const Verdict bad =
      run_checked(*device, wrong, wrong.variants[0], TileMode::same, workload).verdict;
  CHECK_FALSE(bad.ok);
  CHECK(std::isnan(bad.max_abs_err));
}

TEST_CASE("rows outside the sample are still looked at", "[harness]") {
  const auto device = make_device({});
  const Workload workload(parse_spec("q=500 k=500"), 1e6);
  REQUIRE_FALSE(workload.reference().all_rows);
  for (const int mistake : {1, 3}) {  // writes nothing, writes NaN
    const Stage& wrong = plain_stages()[mistake].stage;
    CHECK_FALSE(
        run_checked(*device, wrong, wrong.variants[0], TileMode::same, workload).verdict.ok);
  }
}

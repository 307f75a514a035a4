// Campaigns of random problems, on stages with planted mistakes.
#include "common/cli/fuzz/campaign.h"
#include "common/device/error.h"
#include "common/testing/catch.h"
#include "common/testing/plain_attention.h"

using namespace fa2;
using namespace fa2::fuzzing;
using Catch::Matchers::StartsWith;

namespace {

Kernel plain(const std::string& mistake) {
  for (const testing::PlainStage& stage : testing::plain_stages())
    if (mistake == stage.mistake) return {&stage.stage, &stage.stage.variants.front()};
  throw std::logic_error("no such mistake");
}

Options some(int64_t count, int threads) {
  Options o;
  o.seed = 1;
  o.count = count;
  o.seconds = 0;
  o.threads = threads;
  return o;
}

fuzzing::Outcome run_on(const Options& options, std::vector<Kernel> kernels) {
  return run(options, std::move(kernels), [](int64_t) {});
}

}  // namespace

TEST_CASE("fuzz: every problem goes to one kernel, whatever the threads", "[fuzz]") {
  for (const int threads : {1, 3}) {
    const auto outcome = run_on(some(90, threads), {plain(""), plain(""), plain("")});
    CHECK(!outcome.failure);
    CHECK(outcome.run == 90);
    for (const Kernel& kernel : outcome.kernels) CHECK(kernel.run == 30);
  }
}

TEST_CASE("fuzz: a wrong kernel is found, and its seed alone repeats the failure", "[fuzz]") {
  const auto first = run_on(some(500, 2), {plain(""), plain("mask_top_left")});
  REQUIRE(first.failure);
  CHECK(first.failed_kernel == 1);
  CHECK(first.failure->small.Nq <= 8);

  Options alone = some(1, 1);
  alone.seed = first.failure->seed;
  const auto second = run_on(alone, {plain("mask_top_left")});
  REQUIRE(second.failure);
  CHECK(second.failure->found == first.failure->found);
  CHECK(second.failure->small == first.failure->small);
  CHECK(second.failure->message == first.failure->message);
}

TEST_CASE("fuzz: time is a limit, too", "[fuzz]") {
  Options o = some(0, 2);
  o.seconds = 0.3;
  const auto outcome = run_on(o, {plain("")});
  CHECK(outcome.run > 0);
}

TEST_CASE("fuzz: options, and the command that repeats a failure", "[fuzz]") {
  const auto o = parse_options({"--stage", "6", "--variant", "lazy", "--seed", "7"});
  REQUIRE(o);
  CHECK(o->seconds == 60);
  CHECK(parse_options({"--count", "5"})->seconds == 0);
  CHECK(parse_options({"--minutes", "0.5"})->seconds == 30);
  const auto kernels = kernels_of(*o);
  REQUIRE(kernels.size() == 1);
  CHECK(label(kernels[0]) == "stage6_fa2_deferred lazy");
  CHECK(again(*o, kernels[0], 99) ==
        "./fa2 fuzz --backend sim --stage stage6_fa2_deferred --variant lazy --seed 99 --count 1");
  CHECK(kernels_of(*parse_options({})).size() > 6);

  CHECK_THROWS_WITH(parse_options({"--minutes", "-1"}), StartsWith("--minutes"));
  CHECK_THROWS_WITH(parse_options({"--count", "many"}), StartsWith("--count"));
  const auto kernels_for = [](std::vector<std::string> words) {
    return kernels_of(*parse_options(words));
  };
  CHECK(kernels_for({"--stage", "stage2_fa1"}).size() == 1);
  CHECK_THROWS_WITH(kernels_for({"--stage", "9"}),
                    StartsWith("there is no stage \"9\"; the stages"));
  CHECK_THROWS_WITH(kernels_for({"--stage", "2", "--variant", "fast"}),
                    StartsWith("there is no stage \"2\" with a variant \"fast\"; the stages are"));
}

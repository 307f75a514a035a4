// Random problems, and how failures shrink.
#include "common/testing/fuzz.h"

#include "common/testing/catch.h"
#include "common/testing/plain_attention.h"

using namespace fa2;
using namespace fa2::testing;

namespace {

const Stage& plain(const std::string& mistake) {
  for (const PlainStage& stage : plain_stages())
    if (mistake == stage.mistake) return stage.stage;
  throw std::logic_error("no such mistake");
}

FuzzReport run(const std::string& mistake, int64_t count) {
  const auto device = make_device({});
  FuzzOptions options;
  options.count = count;
  return fuzz(*device, plain(mistake), options);
}

}  // namespace

TEST_CASE("random problems cover the contract and stay within the limits", "[harness]") {
  const FuzzLimits limits;
  int causal = 0, bf16 = 0, grouped = 0, ragged = 0, empty = 0, strided = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Spec s = random_spec(seed, limits);
    CHECK(s == random_spec(seed, limits));
    REQUIRE((s.Nq <= limits.seqlen && s.Nk <= limits.seqlen && s.batch <= limits.batch));
    REQUIRE((s.heads_q <= limits.heads && s.heads_q % s.heads_kv == 0));
    REQUIRE(double(s.batch) * s.heads_q * s.Nq * s.Nk * s.d <= limits.products);
    causal += s.causal;
    bf16 += s.dtype == Dtype::bf16;
    grouped += s.heads_q != s.heads_kv;
    ragged += s.Nq != s.Nk;
    empty += s.Nq == 0 || s.Nk == 0 || s.batch == 0;
    strided += s.layouts != std::array<Layout, 4>{};
  }
  for (const int covered : {causal, bf16, grouped, ragged, empty, strided}) CHECK(covered > 50);
}

TEST_CASE("random problems find nothing in a right stage", "[harness]") {
  const FuzzReport report = run("", 150);
  CHECK(report.run == 150);
  if (report.failure) FAIL_CHECK(to_text(*report.failure, plain("")));
}

TEST_CASE("random problems find mistakes and shrink them", "[harness]") {
  for (const char* mistake : {"mask_top_left", "kv_head_modulo", "strides_ignored",
                              "one_batch_for_all", "empty_rows_nan", "maximum_from_zero"}) {
    const FuzzReport report = run(mistake, 500);
    INFO(mistake);
    REQUIRE(report.failure);
    const Spec& small = report.failure->small;
    INFO(to_text(*report.failure, plain(mistake)));
    CHECK(small.Nq <= 8);
    CHECK(small.Nk <= 8);
    CHECK(small.batch <= 2);
    CHECK(report.failure->message != "");
  }
}

TEST_CASE("a shrunk problem keeps only what the failure needs", "[harness]") {
  const Spec found =
      parse_spec("bf16 causal b=3 h=4/2 q=200 k=77 d=128 layout=packed inputs=descending seed=99");
  const Spec small = shrink(found, [](const Spec& s) { return s.Nq >= 65 && s.causal; });
  CHECK(small == parse_spec("fp16 causal b=0 h=1 q=65 k=0 d=128 seed=1"));
}

#include <algorithm>

#include "common/cli/compare/options.h"
#include "common/cli/tests/records.h"
#include "common/testing/catch.h"

namespace {

using namespace fa2::compare;
using fa2::compare::testing::mentions;
using Words = std::vector<std::string>;

Options parsed(const Words& words) { return *parse_options(words); }

bool refused(const Words& words, const std::string& sentence) {
  return mentions([&] { parse_options(words); }, sentence);
}

std::vector<Shape> shapes(const Words& words, const std::string& backend = "sim") {
  return shapes_of(parsed(words).shapes, backend);
}

bool shape_refused(const Words& words, const std::string& sentence) {
  return mentions([&] { shapes(words); }, sentence);
}

TEST_CASE("options: defaults") {
  const Options o = parsed({});
  CHECK(o.stages.empty());
  CHECK(o.dtypes == Words{"fp16"});
  CHECK(o.tile_modes == Words{"same"});
  CHECK(o.backend.empty());
  CHECK(o.threads == 0);
  CHECK_FALSE(o.variants);
  CHECK_FALSE(o.shapes.has_sizes());
}

TEST_CASE("options: own kernels") {
  const Options o = parsed({"--mine", "4=a.so,5=b=c.so"});
  REQUIRE(o.mine.size() == 2);
  CHECK(o.mine[0] == std::pair<int, std::string>(4, "a.so"));
  CHECK(o.mine[1] == std::pair<int, std::string>(5, "b=c.so"));
  for (const char* word : {"a.so", "7=a.so", "=a.so"})
    CHECK(refused({"--mine", word}, "--mine is"));
}

TEST_CASE("options: lists with commas, spaces or repeated") {
  for (const Words& words :
       {Words{"--seqlen", "256,512"}, Words{"--seqlen", "256", "512"}, Words{"--seqlen=256,512"},
        Words{"--seqlen", "256", "--seqlen", "512"}}) {
    CHECK(parsed(words).shapes.seqlens == std::vector<int64_t>{256, 512});
  }
  CHECK(parsed({"--stages", "2,5"}).stages == std::vector<int>{2, 5});
  CHECK(parsed({"--tiles", "same,tuned"}).tile_modes == Words{"same", "tuned"});
  CHECK(parsed({"--dtype", "fp16,bf16"}).dtypes == Words{"fp16", "bf16"});
}

TEST_CASE("options: the command line is kept for the record") {
  CHECK(parsed({"--stages", "2"}).command == "fa2 compare --stages 2");
}

TEST_CASE("options: what is not accepted is refused with a sentence") {
  CHECK(refused({"--nonsense"}, "--nonsense"));
  CHECK(refused({"stray"}, "stray"));
  CHECK(refused({"--seqlen"}, "--seqlen"));
  CHECK(refused({"--seqlen", "abc"}, "--seqlen is \"abc\""));
  CHECK(refused({"--seqlen", "512x"}, "whole number"));
  CHECK(refused({"--seqlen", "1.5"}, "whole number"));
  CHECK(refused({"--batch", "99999999999999999999"}, "far too large"));
  CHECK(refused({"--dtype", "fp32"}, "accepted are fp16, bf16"));
  CHECK(refused({"--tiles", "best"}, "accepted are same, same_b, tuned"));
  CHECK(refused({"--backend", "tpu"}, "accepted are sim, cuda"));
  CHECK(refused({"--stages", "0"}, "1 to 6"));
  CHECK(refused({"--stages", "7"}, "1 to 6"));
  CHECK(refused({"--threads", "-1"}, "--threads is -1"));
}

TEST_CASE("shapes: absurd ones are refused before anything runs") {
  CHECK(shape_refused({"--seqlen", "-5"}, "seqlen_q is -5"));
  CHECK(shape_refused({"--seqlen", "1099511627776"}, "seqlen_q is 1,099,511,627,776"));
  CHECK(shape_refused({"--seqlen", "0"}, "nothing to compare"));
  CHECK(shape_refused({"--seqlen-k", "0"}, "nothing to compare"));
  CHECK(shape_refused({"--batch", "0"}, "nothing to compare"));
  CHECK(shape_refused({"--batch", "-1"}, "batch is -1"));
  CHECK(shape_refused({"--heads", "0"}, "heads_q is 0"));
  CHECK(shape_refused({"--heads", "3", "--heads-kv", "2"}, "multiple of heads_kv"));
  CHECK(shape_refused({"--headdim", "80"}, "head_dim is 80"));
  CHECK(shape_refused({"--seqlen", "100000000"}, "days"));
}

TEST_CASE("shapes: the simulator's defaults are small, a GPU's are the sweep") {
  const auto small = shapes({});
  CHECK(small.size() >= 3);
  for (const Shape& s : small) CHECK(s.Nq <= 512);
  const auto sweep = shapes({}, "cuda");
  CHECK(sweep.size() == 2 * 2 * 6);
  CHECK(sweep.back().Nq == 16384);
}

TEST_CASE("shapes: every combination of what is given") {
  CHECK(shapes({"--seqlen", "64,128", "--headdim", "64,128", "--causal"}).size() == 4);
  CHECK(shapes({"--seqlen", "64", "--causal", "--full"}).size() == 2);
  const Shape s = shapes(
      {"--heads", "8", "--heads-kv", "2", "--seqlen", "100", "--seqlen-k", "300", "--full"})[0];
  CHECK(s == Shape{1, 8, 2, 100, 300, 64, false});
  CHECK(shapes({"--seqlen", "64,64", "--full"}).size() == 1);
}

TEST_CASE("shapes: --causal alone keeps the defaults that are causal") {
  const auto causal = shapes({"--causal"});
  CHECK_FALSE(causal.empty());
  CHECK(std::all_of(causal.begin(), causal.end(), [](const Shape& s) { return s.causal; }));
}

}  // namespace

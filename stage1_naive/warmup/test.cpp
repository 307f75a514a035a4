// The warm-ups: right on every machine, and each shows its one idea on the simulator.
#include "common/testing/catch.h"
#include "stage1_naive/warmup/cases.h"

using namespace fa2::warmup;

TEST_CASE("warm-ups are right", "[warmup]") {
  for (const Case& c : cases()) {
    const Result result = run_on_sim(c);
    CHECK(result.finding == "");
    CHECK(judge(c, result.out) == "");
#ifdef FA2_WITH_CUDA
    if (const auto out = run_on_gpu(c); !out.empty()) CHECK(judge(c, out) == "");
#endif
  }
}

TEST_CASE("a wrong answer is noticed", "[warmup]") {
  for (const Case& c : cases()) {
    Result result = run_on_sim(c);
    result.out.back() += 0.01f;
    CHECK(judge(c, result.out) != "");
    result.out.back() = NAN;
    CHECK(judge(c, result.out) != "");
  }
}

TEST_CASE("warm-up 2: one ldmatrix per operand, where warm-up 1 has six loads", "[warmup]") {
  CHECK(run_on_sim(cases()[0]).counters.ldmatrix == 0);
  CHECK(run_on_sim(cases()[1]).counters.ldmatrix == 3);
}

TEST_CASE("warm-up 3: the swizzle removes every excess wavefront", "[warmup]") {
  const auto plain = run_on_sim(cases()[2]).counters, swizzled = run_on_sim(cases()[3]).counters;
  const auto stores = 16u * 64 / 32, loads = 4u * 4;  // 4 ldmatrix of 4 matrices
  CHECK(swizzled.shared_wavefronts_tiles == stores + loads);
  CHECK(swizzled.shared_wavefronts_ideal_tiles == stores + loads);
  CHECK(plain.shared_wavefronts_tiles == stores + 8 * loads);
  CHECK(plain.shared_wavefronts_ideal_tiles == stores + loads);
}

TEST_CASE("warm-up 4: the simulator catches the forgotten wait and the forgotten barrier",
          "[warmup]") {
  const std::string no_wait = run_on_sim(mistakes()[0]).finding;
  CHECK(no_wait.find("use of a cp.async destination before its wait") == 0);
  CHECK(no_wait.find("4_cp_async.cu:") != std::string::npos);
  // The reader comes before the copies in this order of turns; in others it races with them.
  const std::string no_barrier = run_on_sim(mistakes()[1]).finding;
  CHECK(no_barrier.find("read of unwritten shared memory") == 0);
  CHECK(no_barrier.find("4_cp_async.cu:") != std::string::npos);
}

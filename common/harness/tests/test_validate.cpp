// Every wrong argument has a sentence with its name, its value and what is accepted.
#include "common/harness/validate.h"

#include <cmath>
#include <functional>
#include <string>

#include "common/harness/failure.h"
#include "common/testing/catch.h"

using namespace fa2;

namespace {

fa2_problem good() {
  fa2_problem p;
  fa2_problem_init(&p);
  p.batch = 2;
  p.heads_q = 4;
  p.heads_kv = 2;
  p.seqlen_q = 10;
  p.seqlen_k = 20;
  p.head_dim = 64;
  return p;
}

/// The sentence about a problem with one change, "" if it is accepted.
std::string sentence(const std::function<void(fa2_problem&)>& change) {
  fa2_problem p = good();
  change(p);
  try {
    validate(&p);
    return "";
  } catch (const Failure& failure) {
    CHECK(failure.status == FA2_INVALID_ARGUMENT);
    return failure.what();
  }
}

constexpr int64_t absurd = int64_t{1} << 40;

}  // namespace

TEST_CASE("a good problem is filled in", "[harness]") {
  const fa2_problem given = good();
  const Problem p = validate(&given);
  CHECK(p.scale == 0.125f);
  CHECK(p.Q.row == 64);
  CHECK(p.Q.head == 640);
  CHECK(p.Q.batch == 2560);
  CHECK(p.K.batch == 2 * 20 * 64);
  CHECK_FALSE(p.causal);
}

TEST_CASE("sizes that no call can have are refused", "[harness]") {
  CHECK(sentence([](fa2_problem& p) { p.batch = -1; }) ==
        "batch is -1; it must be between 0 and 2,147,483,647.");
  CHECK(sentence([](fa2_problem& p) { p.batch = absurd; }) ==
        "batch is 1,099,511,627,776; it must be between 0 and 2,147,483,647.");
  CHECK(sentence([](fa2_problem& p) { p.heads_q = 0; }) ==
        "heads_q is 0; it must be between 1 and 2,147,483,647.");
  CHECK(sentence([](fa2_problem& p) { p.heads_kv = -4; }) ==
        "heads_kv is -4; it must be between 1 and 2,147,483,647.");
  CHECK(sentence([](fa2_problem& p) { p.seqlen_q = absurd; }) ==
        "seqlen_q is 1,099,511,627,776; it must be between 0 and 1,073,741,824.");
  CHECK(sentence([](fa2_problem& p) { p.seqlen_k = -20; }) ==
        "seqlen_k is -20; it must be between 0 and 1,073,741,824.");
  CHECK(sentence([](fa2_problem& p) { p.heads_kv = 3; }) ==
        "heads_q is 4 and heads_kv is 3; heads_q must be a multiple of heads_kv.");
  CHECK(sentence([](fa2_problem& p) { p.seqlen_q = p.seqlen_k = 1 << 30; }) ==
        "batch * heads_q * seqlen_q * seqlen_k is more than 288,230,376,151,711,744; the sizes are "
        "too large.");
  CHECK(sentence([](fa2_problem& p) { p.batch = 1 << 29; }) ==
        "batch * heads_q is more than 2,147,483,647; the sizes are too large.");
  CHECK(sentence([](fa2_problem& p) { p.batch = p.heads_q = p.heads_kv = INT32_MAX; }) != "");
}

TEST_CASE("head dims other than 64 and 128 are refused (flash-attention #1347)", "[harness]") {
  for (const int64_t d : {0, 1, 40, 63, 72, 96, 256})
    CHECK(sentence([d](fa2_problem& p) { p.head_dim = d; }) ==
          "head_dim is " + std::to_string(d) + "; accepted are 64 and 128.");
  CHECK(sentence([](fa2_problem& p) { p.head_dim = 128; }) == "");
}

TEST_CASE("types, masks and scales are checked", "[harness]") {
  CHECK(sentence([](fa2_problem& p) { p.dtype = 2; }) ==
        "dtype is 2; accepted are 0 (fp16) and 1 (bf16).");
  CHECK(sentence([](fa2_problem& p) { p.causal = -1; }) == "causal is -1; accepted are 0 and 1.");
  CHECK(sentence([](fa2_problem& p) { p.scale = -0.5f; }) ==
        "scale is -0.5; it must be finite and not negative (0 means 1 / sqrt(head_dim)).");
  CHECK(sentence([](fa2_problem& p) { p.scale = std::nanf(""); }) ==
        "scale is NaN; it must be finite and not negative (0 means 1 / sqrt(head_dim)).");
  CHECK(sentence([](fa2_problem& p) { p.scale = INFINITY; }) != "");
}

TEST_CASE("strides are checked", "[harness]") {
  const auto with = [](int64_t batch, int64_t head, int64_t row) {
    return sentence([=](fa2_problem& p) {
      p.o_strides[0] = batch, p.o_strides[1] = head, p.o_strides[2] = row;
    });
  };
  CHECK(with(2560, 640, 64) == "");
  CHECK(with(2560, 64, 256) == "");  // [batch, row, head, d]
  CHECK(with(2560, 640, -64) ==
        "o_strides[2] (row) is -64; it must be between 0 and 288,230,376,151,711,744 elements.");
  CHECK(with(2560, 641, 64) ==
        "o_strides[1] (head) is 641; it must be a multiple of 8 elements (16 bytes).");
  CHECK(with(2560, 640, 56) ==
        "o_strides are {2560, 640, 56}; with these sizes rows of o overlap.");
  CHECK(with(0, 640, 64) == "o_strides are {0, 640, 64}; with these sizes rows of o overlap.");
  CHECK(with(2496, 640, 64) != "");  // the last row of one batch, the first of the next
  CHECK(with(int64_t{1} << 58, 640, 64) ==
        "o_strides reach further than 288,230,376,151,711,744 elements.");
  // An input may repeat: one K for the whole batch.
  CHECK(sentence([](fa2_problem& p) {
          p.k_strides[0] = 0, p.k_strides[1] = 1280, p.k_strides[2] = 64;
        }) == "");
}

TEST_CASE("structures of another version are refused", "[harness]") {
  CHECK(sentence([](fa2_problem& p) { p.abi_version = 7; }) ==
        "fa2_problem.abi_version is 7; this library has version 1. Call fa2_problem_init and build "
        "against the fa2.h of this library.");
  CHECK(sentence([](fa2_problem& p) { p.struct_size = 8; }) ==
        "fa2_problem.struct_size is 8; this library expects " +
            std::to_string(sizeof(fa2_problem)) +
            ". Call fa2_problem_init and build against the fa2.h of this library.");
  CHECK_THROWS_WITH(validate(nullptr), "problem is null.");
  CHECK_THROWS_WITH(validate_options(nullptr), "options is null.");
}

TEST_CASE("pointers are checked, unless there is nothing behind them", "[harness]") {
  const fa2_problem given = good();
  const Problem p = validate(&given);
  alignas(16) static char memory[16];
  float lse = 0;
  const Tensors all = {memory, memory, memory, memory + 16, &lse, nullptr};
  CHECK_NOTHROW(validate_tensors(p, all));
  Tensors x = all;
  x.K = nullptr;
  CHECK_THROWS_WITH(validate_tensors(p, x), "k is null.");
  x = all;
  x.LSE = nullptr;
  CHECK_THROWS_WITH(validate_tensors(p, x), "lse is null.");
  x = all;
  x.Q = memory + 8;
  CHECK_THROWS_WITH(validate_tensors(p, x),
                    Catch::Matchers::EndsWith("; it must be aligned to 16 bytes."));
  x = all;
  x.O = memory;
  CHECK_THROWS_WITH(validate_tensors(p, x),
                    "o is the same memory as an input; it must be its own.");

  fa2_problem empty = given;
  empty.seqlen_k = 0;
  CHECK_NOTHROW(
      validate_tensors(validate(&empty), {memory, nullptr, nullptr, memory + 16, &lse, {}}));
  empty.seqlen_q = 0;
  CHECK_NOTHROW(validate_tensors(validate(&empty), {}));
}

TEST_CASE("the workspace is checked", "[harness]") {
  alignas(16) static char memory[16];
  CHECK_NOTHROW(validate_workspace("stage1_naive", 0, nullptr, 0));
  CHECK_THROWS_WITH(validate_workspace("stage1_naive", 4096, memory, 4095),
                    "workspace_bytes is 4,095; stage1_naive needs 4,096 for this problem.");
  CHECK_THROWS_WITH(validate_workspace("stage1_naive", 4096, nullptr, 4096), "workspace is null.");
  CHECK_THROWS(validate_workspace("stage1_naive", 8, memory + 4, 8));
}

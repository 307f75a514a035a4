// What is in Q, K and V.
#include <cmath>
#include <cstring>

#include "common/harness/float16.h"
#include "common/harness/inputs.h"
#include "common/harness/validate.h"
#include "common/testing/catch.h"

using namespace fa2;

namespace {

InputTensors make(const Spec& spec) {
  const fa2_problem p = to_problem(spec);
  return make_inputs(spec, validate(&p));
}

bool same_row(const HostTensor& a, int b, int h, int i, const HostTensor& other, int b2, int h2,
              int i2) {
  return std::memcmp(a.row(b, h, i).data(), other.row(b2, h2, i2).data(), 128) == 0;
}

}  // namespace

TEST_CASE("every batch, head and row has data of its own (cs149gpt)", "[harness]") {
  const InputTensors x = make(parse_spec("b=2 h=2 q=3 k=3"));
  CHECK_FALSE(same_row(x.K, 0, 0, 0, x.K, 1, 0, 0));
  CHECK_FALSE(same_row(x.K, 0, 0, 0, x.K, 0, 1, 0));
  CHECK_FALSE(same_row(x.K, 0, 0, 0, x.K, 0, 0, 1));
  CHECK_FALSE(same_row(x.K, 0, 0, 0, x.V, 0, 0, 0));
  CHECK_FALSE(same_row(x.Q, 0, 0, 0, x.K, 0, 0, 0));
}

TEST_CASE("data does not depend on the size or layout of the problem", "[harness]") {
  const InputTensors small = make(parse_spec("b=1 h=2 q=3 k=3"));
  const InputTensors large = make(parse_spec("b=4 h=5 q=30 k=9 layout=packed"));
  CHECK(same_row(small.Q, 0, 1, 2, large.Q, 0, 1, 2));
  CHECK(same_row(small.V, 0, 1, 2, large.V, 0, 1, 2));
}

TEST_CASE("noise has unit variance after rounding", "[harness]") {
  for (const char* text : {"fp16 q=500", "bf16 q=500"}) {
    const InputTensors x = make(parse_spec(text));
    const Dtype type = text[0] == 'f' ? Dtype::fp16 : Dtype::bf16;
    double squares = 0;
    for (int i = 0; i < 500; ++i)
      for (const uint16_t bits : x.Q.row(0, 0, i)) squares += std::pow(decode(type, bits), 2);
    CHECK(std::fabs(squares / (500 * 64) - 1) < 0.03);
  }
}

TEST_CASE("gaps and guards hold NaN", "[harness]") {
  for (const char* text : {"b=2 h=2 q=5 layout=row_gap", "b=2 h=2 q=5 layout=head_gap"}) {
    InputTensors x = make(parse_spec(text));
    size_t gaps = 0;
    for (const uint16_t bits : x.Q.raw()) gaps += bits == poison;
    CHECK(gaps == x.Q.raw().size() - 2 * 2 * 5 * 64);
    CHECK(std::isnan(decode_fp16(poison)));
    CHECK(std::isnan(decode_bf16(poison)));
  }
}

TEST_CASE("data is aligned to 16 bytes and no more", "[harness]") {
  const InputTensors x = make(parse_spec("q=5"));
  CHECK(reinterpret_cast<uintptr_t>(x.Q.data()) % 32 == 16);
}

TEST_CASE("planted values are where only some rows see them", "[harness]") {
  for (const char* name : {"nan_Q", "nan_K", "nan_V", "inf_Q", "inf_K", "inf_V"}) {
    const InputTensors x = make(parse_spec("b=2 h=2 q=90 k=90 inputs=" + std::string(name)));
    int found = 0;
    for (const HostTensor* tensor : {&x.Q, &x.K, &x.V})
      for_each_row(tensor->shape(), [&](int64_t b, int64_t h, int64_t i) {
        for (const uint16_t bits : tensor->row(b, h, i)) {
          if (std::isfinite(decode_fp16(bits))) continue;
          ++found;
          CHECK((b == 1 && h == 1 && i >= 30 && i <= 60));
        }
      });
    INFO(name);
    CHECK(found == 1);
  }
}

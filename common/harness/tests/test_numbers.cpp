// 16-bit conversions, random numbers, text.
#include <cmath>
#include <limits>

#include "common/harness/float16.h"
#include "common/harness/random.h"
#include "common/harness/text.h"
#include "common/testing/catch.h"

using namespace fa2;

TEST_CASE("every 16-bit pattern survives a trip through float", "[harness]") {
  for (const Dtype type : {Dtype::fp16, Dtype::bf16})
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const float value = decode(type, static_cast<uint16_t>(bits));
      if (std::isnan(value))
        REQUIRE(std::isnan(rounded(type, value)));
      else
        REQUIRE(encode(type, value) == bits);
    }
}

TEST_CASE("fp16 rounds to nearest, ties to even", "[harness]") {
  CHECK(decode_fp16(0x3c00) == 1.f);
  CHECK(decode_fp16(0x0001) == 0x1p-24f);
  CHECK(decode_fp16(0x7bff) == 65504.f);
  CHECK(encode_fp16(1.f + 0x1p-11f) == 0x3c00);      // a tie, down to even
  CHECK(encode_fp16(1.f + 3 * 0x1p-11f) == 0x3c02);  // a tie, up to even
  CHECK(encode_fp16(1.f + 0x1.1p-11f) == 0x3c01);
  CHECK(encode_fp16(65519.f) == 0x7bff);
  CHECK(encode_fp16(65520.f) == 0x7c00);
  CHECK(encode_fp16(-0x1p-25f) == 0x8000);            // a tie with zero
  CHECK(encode_fp16(0x1.8p-24f) == 0x0002);           // a tie between subnormals
  CHECK(encode_fp16(0x1p-14f - 0x1p-26f) == 0x0400);  // up to the smallest normal number
  CHECK(encode_fp16(-std::numeric_limits<float>::infinity()) == 0xfc00);
}

TEST_CASE("bf16 rounds to nearest, ties to even", "[harness]") {
  CHECK(encode_bf16(1.f + 0x1p-8f) == 0x3f80);
  CHECK(encode_bf16(1.f + 3 * 0x1p-8f) == 0x3f82);
  CHECK(encode_bf16(1.f + 0x1.1p-8f) == 0x3f81);
  CHECK(encode_bf16(std::numeric_limits<float>::max()) == 0x7f80);
}

TEST_CASE("random numbers have mean 0 and variance 1 and no memory", "[harness]") {
  double sum = 0, squares = 0, neighbours = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = normal(i), next = normal(i + 1);
    sum += x;
    squares += x * x;
    neighbours += x * next;
  }
  CHECK(std::fabs(sum / n) < 0.01);
  CHECK(std::fabs(squares / n - 1) < 0.02);
  CHECK(std::fabs(neighbours / n) < 0.01);
  CHECK(normal(42) == normal(42));
}

TEST_CASE("numbers in sentences do not depend on the locale", "[harness]") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(-999) == "-999");
  CHECK(with_commas(-1000) == "-1,000");
  CHECK(with_commas(1099511627776) == "1,099,511,627,776");
  CHECK(short_number(0.125) == "0.125");
  CHECK(short_number(std::nan("")) == "NaN");
  CHECK(short_number(-INFINITY) == "-inf");
}

// Problems as text, and where their tensors lie.
#include <set>

#include "common/harness/failure.h"
#include "common/harness/spec.h"
#include "common/harness/validate.h"
#include "common/testing/catch.h"
#include "common/testing/fuzz.h"

using namespace fa2;
using Catch::Matchers::Equals;
using Catch::Matchers::StartsWith;

TEST_CASE("a problem survives a trip through text", "[harness]") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Spec spec = testing::random_spec(seed, {});
    CHECK(parse_spec(to_text(spec)) == spec);
  }
}

TEST_CASE("a problem's text may be short", "[harness]") {
  const Spec spec = parse_spec("bf16 causal  h=4/2 q=10 k=20 layout=bnhd");
  CHECK(spec.dtype == Dtype::bf16);
  CHECK(spec.causal);
  CHECK(spec.heads_q == 4);
  CHECK(spec.heads_kv == 2);
  CHECK(spec.d == 64);
  for (const Layout layout : spec.layouts) CHECK(layout == Layout::bnhd);
}

TEST_CASE("a wrong word in a problem is named", "[harness]") {
  CHECK_THROWS_WITH(parse_spec("fp17"), StartsWith("\"fp17\" is no part of"));
  CHECK_THROWS_WITH(parse_spec("q=12x"), Equals("\"12x\" is no number; \"q=\" needs one."));
  CHECK_THROWS_WITH(parse_spec("q="), Equals("\"\" is no number; \"q=\" needs one."));
  CHECK_THROWS_WITH(parse_spec("inputs=odd"),
                    StartsWith("\"odd\" is no set of inputs; known are normal,"));
  CHECK_THROWS_WITH(parse_spec("layout=bhnd,up"),
                    StartsWith("\"up\" is no layout; known are bhnd,"));
}

TEST_CASE("in every layout each element has its own place, inside the extent", "[harness]") {
  for (int i = 0; i < layout_count; ++i) {
    const Layout layout = static_cast<Layout>(i);
    const Shape shape = {2, 3, 5, 64};
    const Strides strides = strides_of(layout, shape);
    std::set<int64_t> offsets;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 3; ++h)
        for (int64_t row = 0; row < 5; ++row)
          for (int64_t c = 0; c < 64; ++c)
            offsets.insert(b * strides.batch + h * strides.head + row * strides.row + c);
    INFO(name_of(layout));
    CHECK(offsets.size() == 2 * 3 * 5 * 64);
    CHECK(*offsets.rbegin() + 1 == extent(shape, strides));
  }
}

TEST_CASE("every layout passes validation", "[harness]") {
  for (int i = 0; i < layout_count; ++i) {
    Spec spec = parse_spec("b=2 h=4/2 q=70 k=33");
    spec.layouts.fill(static_cast<Layout>(i));
    const fa2_problem p = to_problem(spec);
    CHECK_NOTHROW(validate(&p));
  }
}

TEST_CASE("sizes beyond all limits are refused in every layout, found by libFuzzer", "[harness]") {
  for (int i = 0; i < layout_count; ++i)
    for (const char* text :
         {"q=751801475187518066", "b=9223372036854775807 h=2147483647 k=2147483647",
          "h=-9223372036854775808", "q=1073741824 k=1073741824 d=1073741824"}) {
      Spec spec = parse_spec(text);
      spec.layouts.fill(static_cast<Layout>(i));
      const fa2_problem p = to_problem(spec);
      CHECK_THROWS_AS(validate(&p), Failure);
    }
}

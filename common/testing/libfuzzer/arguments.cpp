// libFuzzer: the checks of a caller's arguments, and the text form of a test problem.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>
#include <set>
#include <string>

#include "common/harness/failure.h"
#include "common/harness/shape.h"
#include "common/harness/spec.h"
#include "common/harness/validate.h"

namespace {

using namespace fa2;

/// Small, near a limit, or anything.
int64_t number(FuzzedDataProvider& data) {
  static constexpr int64_t near[] = {0,
                                     1,
                                     2,
                                     4,
                                     8,
                                     64,
                                     128,
                                     INT32_MAX,
                                     1ll << 30,
                                     1ll << 31,
                                     1ll << 58,
                                     1ll << 62,
                                     INT64_MAX,
                                     INT64_MIN,
                                     -1,
                                     -8,
                                     UINT32_MAX,
                                     1ll << 32,
                                     (1ll << 58) + 8};
  switch (data.ConsumeIntegralInRange(0, 3)) {
    case 0:
      return data.ConsumeIntegralInRange<int64_t>(0, 6);
    case 1:
      return 8 * data.ConsumeIntegralInRange<int64_t>(0, 300);
    case 2:
      return data.PickValueInArray(near);
    default:
      return data.ConsumeIntegral<int64_t>();
  }
}

void fill(FuzzedDataProvider& data, int64_t (&strides)[3]) {
  for (int64_t& stride : strides) stride = number(data);
}

/// What every accepted problem promises to the code behind it.
void check_promises(const Problem& p) {
  for (const auto& [shape, strides] : {std::pair(shape_q(p), p.Q), std::pair(shape_kv(p), p.K),
                                       std::pair(shape_kv(p), p.V), std::pair(shape_q(p), p.O)}) {
    const int64_t last = extent(shape, strides);  // UBSan watches for an overflow
    if (last < 0 || 2 * last < 0) std::abort();
  }
  if (p.heads_q % p.heads_kv != 0 || !(p.scale >= 0)) std::abort();
  const Shape s = shape_q(p);
  if (s.batch > 3 || s.heads > 3 || s.rows > 3) return;
  std::set<int64_t> columns;  // of eight: all strides are multiples
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.rows; ++i)
        for (int64_t c = 0; c < s.d; c += 8)
          if (!columns.insert(b * p.O.batch + h * p.O.head + i * p.O.row + c).second)
            std::abort();  // rows of O overlap
}

void fuzz_problem(FuzzedDataProvider& data) {
  fa2_problem given;
  fa2_problem_init(&given);
  if (data.ConsumeIntegralInRange(0, 30) == 0) given.struct_size = data.ConsumeIntegral<uint32_t>();
  if (data.ConsumeIntegralInRange(0, 30) == 0) given.abi_version = data.ConsumeIntegral<uint32_t>();
  for (int64_t* size :
       {&given.batch, &given.heads_q, &given.heads_kv, &given.seqlen_q, &given.seqlen_k})
    *size = number(data);
  given.head_dim = data.ConsumeBool() ? 64 : number(data);
  if (data.ConsumeBool()) fill(data, given.q_strides);
  if (data.ConsumeBool()) fill(data, given.k_strides);
  if (data.ConsumeBool()) fill(data, given.v_strides);
  if (data.ConsumeBool()) fill(data, given.o_strides);
  given.dtype = data.ConsumeIntegralInRange(-1, 2);
  given.causal = data.ConsumeIntegralInRange(-1, 2);
  given.scale = data.ConsumeBool() ? 0 : data.ConsumeFloatingPoint<float>();
  const Problem p = validate(&given);
  check_promises(p);
  const auto pointer = [&] { return reinterpret_cast<void*>(number(data)); };
  validate_tensors(
      p, {pointer(), pointer(), pointer(), pointer(), static_cast<float*>(pointer()), pointer()});
  validate_workspace("stage", static_cast<size_t>(number(data)), pointer(),
                     static_cast<size_t>(number(data)));
}

void fuzz_options(FuzzedDataProvider& data) {
  fa2_options given;
  fa2_options_init(&given);
  given.backend = data.ConsumeIntegralInRange(-1, 2);
  given.tile_mode = data.ConsumeIntegralInRange(-1, 3);
  given.order = data.ConsumeIntegralInRange(-1, 3);
  given.os_threads = static_cast<int32_t>(number(data));
  validate_options(&given);
}

void fuzz_text(FuzzedDataProvider& data) {
  const Spec spec = parse_spec(data.ConsumeRemainingBytesAsString());
  if (!(parse_spec(to_text(spec)) == spec)) std::abort();
  const fa2_problem given = to_problem(spec);
  check_promises(validate(&given));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  try {
    switch (data.ConsumeIntegralInRange(0, 3)) {
      case 0:
        fuzz_options(data);
        break;
      case 1:
        fuzz_text(data);
        break;
      default:
        fuzz_problem(data);
    }
  } catch (const Failure& failure) {
    if (failure.status != FA2_INVALID_ARGUMENT || std::string(failure.what()).empty()) std::abort();
  }
  return 0;
}

#include "stage1_naive/warmup/cases.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#include "common/harness/float16.h"
#include "common/harness/random.h"
#include "common/sim/session.h"
#include "stage1_naive/warmup/warmups.h"

#ifdef FA2_WITH_CUDA
#define FA2_ON_BOTH(call)                                  \
  [](const void* const* in, float* out) { on_sim::call; }, \
      [](const void* const* in, float* out) { on_gpu::call; }
#else
#define FA2_ON_BOTH(call) [](const void* const* in, float* out) { on_sim::call; }, nullptr
#endif

namespace fa2::warmup {
namespace {

/// Small whole numbers, whose products and sums are exact in fp16 and fp32.
std::vector<float> whole_numbers(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.in(-8, 8));
  return values;
}

std::vector<float> normal_numbers(size_t count, uint64_t seed, float deviation) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = deviation * normal(seed << 32 | i);
  return values;
}

template <class T>
std::vector<char> bytes(const std::vector<T>& values) {
  std::vector<char> copy(values.size() * sizeof(T));
  std::memcpy(copy.data(), values.data(), copy.size());
  return copy;
}

std::vector<char> fp16(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(encode_fp16(value));
  return bytes(bits);
}

std::vector<float> made(int count, const std::function<double(int)>& element) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(element(i)));
  return values;
}

/// Sum over k of a(k) b(k).
double dot(int count, const std::function<double(int)>& a, const std::function<double(int)>& b) {
  double sum = 0;
  for (int k = 0; k < count; ++k) sum += a(k) * b(k);
  return sum;
}

constexpr int softmax_keys = 96;

/// softmax(S) V in double precision, in two passes.
std::vector<float> softmax_V(const std::vector<float>& S, const std::vector<float>& V) {
  double largest = -INFINITY;
  for (const float s : S) largest = std::fmax(largest, s);
  const auto P = [&](int k) { return std::exp(S[size_t(k)] - largest); };
  const double l = dot(softmax_keys, P, [](int) { return 1; });
  return made(32, [&](int c) {
    return dot(softmax_keys, P, [&](int k) { return V[size_t(k) * 32 + size_t(c)]; }) / l;
  });
}

}  // namespace

std::vector<Case> cases() {
  const auto A = whole_numbers(256, 1), B = whole_numbers(256, 2), rows = whole_numbers(1024, 3);
  const auto numbers = whole_numbers(512, 4);
  const auto S = normal_numbers(softmax_keys, 5, 4.f),
             V = normal_numbers(softmax_keys * 32, 6, 1.f);
  const auto at = [](const std::vector<float>& M, int row, int col) {
    return double{M[size_t(row) * 16 + size_t(col)]};
  };
  // A B^T, of which only the first `columns` columns are wanted; or A B.
  const auto A_BT = [&](int i, int columns) {
    return dot(
        16, [&](int k) { return at(A, i / columns, k); },
        [&](int k) { return at(B, i % columns, k); });
  };
  const auto A_B = [&](int i) {
    return dot(
        16, [&](int k) { return at(A, i / 16, k); }, [&](int k) { return at(B, k, i % 16); });
  };
  const auto sums = made(16, [&](int row) {
    return dot(
        64, [&](int k) { return rows[size_t(row) * 64 + size_t(k)]; }, [](int) { return 1; });
  });
  return {
      {"mma_fragments",
       {fp16(A), fp16(B)},
       made(128, [&](int i) { return A_BT(i, 8); }),
       FA2_ON_BOTH(mma_fragments(in[0], in[1], out))},
      {"ldmatrix",
       {fp16(A), fp16(B)},
       made(512, [&](int i) { return i < 256 ? A_BT(i, 16) : A_B(i - 256); }),
       FA2_ON_BOTH(ldmatrix(in[0], in[1], out))},
      {"plain rows", {fp16(rows)}, sums, FA2_ON_BOTH(swizzle(in[0], out, false))},
      {"swizzled", {fp16(rows)}, sums, FA2_ON_BOTH(swizzle(in[0], out, true))},
      {"cp_async",
       {bytes(numbers)},
       made(512, [&](int i) { return numbers[size_t(511 - i)]; }),
       FA2_ON_BOTH(cp_async(in[0], out, Mistake::none))},
      {"online_softmax",
       {bytes(S), bytes(V)},
       softmax_V(S, V),
       FA2_ON_BOTH(online_softmax(in[0], in[1], out, softmax_keys))},
  };
}

std::vector<Case> mistakes() {
  const Case right = cases()[4];
  const auto with = [&](const char* name, Launch launch) {
    return Case{name, right.in, right.right, launch, nullptr};
  };
  return {with("without cp_async_wait",
               [](const void* const* in, float* out) {
                 on_sim::cp_async(in[0], out, Mistake::no_wait);
               }),
          with("without block_barrier", [](const void* const* in, float* out) {
            on_sim::cp_async(in[0], out, Mistake::no_barrier);
          })};
}

Result run_on_sim(const Case& c) {
  Result result{std::vector<float>(c.right.size(), NAN)};
  std::vector<const void*> in;
  sim::Session session({.os_threads = 1});
  for (const std::vector<char>& array : c.in) {
    session.expose("input " + std::to_string(in.size()), array.data(), array.size(), false);
    in.push_back(array.data());
  }
  session.expose("out", result.out.data(), result.out.size() * sizeof(float), true);
  try {
    c.on_sim(in.data(), result.out.data());
    result.counters = session.counters();
  } catch (const sim::Finding& finding) {
    result.finding = finding.what();
  }
  return result;
}

std::string judge(const Case& c, const std::vector<float>& out) {
  for (size_t i = 0; i < c.right.size(); ++i) {
    const float tolerance = 1e-5f * std::fmax(1.f, std::fabs(c.right[i]));
    if (!(std::fabs(out[i] - c.right[i]) <= tolerance))
      return c.name + ": out[" + std::to_string(i) + "] is " + std::to_string(out[i]) +
             ", right is " + std::to_string(c.right[i]);
  }
  return "";
}

}  // namespace fa2::warmup

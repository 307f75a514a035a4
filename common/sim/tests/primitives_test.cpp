// What each primitive computes, and the 16-bit types.
#include <bit>
#include <cmath>
#include <limits>

#include "common/sim/tests/support.h"

// The compiler's own 16-bit float. g++ has _Float16 in C++ on x86 only, before its version 13.
#if defined(__aarch64__)
#define NATIVE_HALF __fp16
#elif defined(__FLT16_MANT_DIG__)
#define NATIVE_HALF _Float16
#endif

namespace fa2::tests {
namespace {

using In = gptr<const float>;
using Out = gptr<float>;

/// Runs one warp and returns what it stored.
std::vector<float> output(Kernel kernel) {
  Memory memory;
  Session session;
  memory.expose(session);
  launch(kernel, 1, 32, 16384, nullptr, memory.in.data(), memory.out.data());
  return memory.out;
}

TEST_CASE("threads know where they are") {
  struct Ids {
    std::vector<unsigned> values = std::vector<unsigned>(2 * 3 * 2 * 4 * 2 * 3);
  } ids;
  Session session;
  session.expose("ids", ids.values.data(), 4 * ids.values.size(), true);
  const auto kernel = +[](gptr<unsigned> out) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
        blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + 1000 * threadIdx.x + 10000 * threadIdx.y +
        100000 * threadIdx.z;
  };
  launch(kernel, dim3(2, 3, 2), dim3(4, 2, 3), 0, nullptr, ids.values.data());
  size_t i = 0;
  for (unsigned bz = 0; bz < 2; ++bz)
    for (unsigned by = 0; by < 3; ++by)
      for (unsigned bx = 0; bx < 2; ++bx)
        for (unsigned z = 0; z < 3; ++z)
          for (unsigned y = 0; y < 2; ++y)
            for (unsigned x = 0; x < 4; ++x)
              REQUIRE(ids.values[i++] ==
                      bx + 10 * by + 100 * bz + 1000 * x + 10000 * y + 100000 * z);
}

TEST_CASE("shuffles and votes") {
  const auto out = output(+[](In, Out out) {
    const int t = thread_id();
    out[t] = static_cast<float>(shuffle_xor(t, 5));
    out[32 + t] = shuffle_xor(static_cast<float>(t), 16);
    out[64 + t] = shuffle_xor(reg<S_tag>(static_cast<float>(t)), 0);
    out[96 + t] = warp_any(t == 31) ? 1.f : 0.f;
    out[128 + t] = warp_any(t == 32) ? 1.f : 0.f;
    out[160 + t] = __ballot_sync(0xffffffffu, t % 4 == 0) == 0x11111111u ? 1.f : 0.f;
    out[192 + t] = __all_sync(0xffffffffu, t < 32) && !__all_sync(0xffffffffu, t < 31) ? 1.f : 0.f;
    out[224 + t] = static_cast<float>(__shfl_sync(0xffffffffu, t, (t * 7) % 32));
    out[256 + t] = static_cast<float>(from_lane_0(t + 5));
  });
  for (int t = 0; t < 32; ++t) {
    const auto at = [&](int i) { return out[static_cast<size_t>(i + t)]; };
    CHECK(at(0) == static_cast<float>(t ^ 5));
    CHECK(at(32) == static_cast<float>(t ^ 16));
    CHECK(at(64) == static_cast<float>(t));
    CHECK(at(96) == 1.f);
    CHECK(at(128) == 0.f);
    CHECK(at(160) == 1.f);
    CHECK(at(192) == 1.f);
    CHECK(at(224) == static_cast<float>(t * 7 % 32));
    CHECK(at(256) == 5.f);
  }
}

// A 32 x 8 tile whose element (row, column) is 8 * row + column: four matrices below each other.
template <bool transposed>
void load_matrices(In, Out out) {
  const sptr<half> s = dyn_smem<half>(0, 256, Use::tiles, "tile");
  for (int c = 0; c < 8; ++c)
    s[8 * thread_id() + c] = half(static_cast<float>(8 * thread_id() + c));
  warp_barrier();
  uint32_t r[4];
  if constexpr (transposed)
    ldmatrix_x4_trans(r, s + 8 * thread_id());
  else
    ldmatrix_x4(r, s + 8 * thread_id());
  for (int m = 0; m < 4; ++m) {
    out[64 * m + 2 * thread_id()] = sim::half_to_float(static_cast<uint16_t>(r[m]));
    out[64 * m + 2 * thread_id() + 1] = sim::half_to_float(static_cast<uint16_t>(r[m] >> 16));
  }
}

TEST_CASE("ldmatrix: each lane gets two neighbours of a row, or of a column") {
  const auto plain = output(load_matrices<false>), transposed = output(load_matrices<true>);
  for (int m = 0; m < 4; ++m)
    for (int lane = 0; lane < 32; ++lane)
      for (int e = 0; e < 2; ++e) {
        const int row = lane / 4, column = lane % 4 * 2 + e;
        const auto i = static_cast<size_t>(64 * m + 2 * lane + e);
        CHECK(plain[i] == static_cast<float>(64 * m + 8 * row + column));
        CHECK(transposed[i] == static_cast<float>(64 * m + 8 * column + row));
      }
}

template <class T>
void multiply(In, Out out) {
  // A[i][k] = i + 16 k (mod 7), B[k][j] = k - 3 j (mod 5), C[i][j] = 100 i + j: exact in fp32.
  const int g = thread_id() / 4, t = thread_id() % 4 * 2;
  const auto a = [](int i, int k) { return static_cast<float>((i + 16 * k) % 7); };
  const auto b = [](int k, int j) { return static_cast<float>((k + 15 - 3 * j % 5) % 5); };
  const uint32_t A[4] = {pack2<T>(a(g, t), a(g, t + 1)), pack2<T>(a(g + 8, t), a(g + 8, t + 1)),
                         pack2<T>(a(g, t + 8), a(g, t + 9)),
                         pack2<T>(a(g + 8, t + 8), a(g + 8, t + 9))};
  reg<O_tag> D[4];
  float C[4];
  for (int e = 0; e < 4; ++e) C[e] = static_cast<float>(100 * (g + e / 2 * 8) + t + e % 2);
  mma_m16n8k16<T>(D, A, pack2<T>(b(t, g), b(t + 1, g)), pack2<T>(b(t + 8, g), b(t + 9, g)), C);
  for (int e = 0; e < 4; ++e) {
    const int i = g + e / 2 * 8, j = t + e % 2;
    float expected = static_cast<float>(100 * i + j);
    for (int k = 0; k < 16; ++k) expected += a(i, k) * b(k, j);
    out[4 * thread_id() + e] = D[e] == expected ? 1.f : 0.f;
  }
}

TEST_CASE("mma: the fragments of both types") {
  for (Kernel kernel : {multiply<half>, multiply<bfloat16>}) {
    const auto out = output(kernel);
    for (size_t i = 0; i < 128; ++i) REQUIRE(out[i] == 1.f);
  }
}

TEST_CASE("mma: sums in order of k, in fp32; NaN and infinity arrive") {
  const auto out = output(+[](In, Out out) {
    // Row 0 of A is 1, 2^-12, 2^-12, ...; B is 1. From C = 4096 the small terms vanish one by one.
    const int g = thread_id() / 4, t = thread_id() % 4;
    const float tiny = 0x1p-12f;
    const auto row = [&](float first, float rest) {
      return g == 0 ? pack2<half>(first, rest) : 0u;
    };
    const uint32_t A[4] = {row(t == 0 ? 1.f : tiny, tiny), 0, row(tiny, tiny), 0};
    const uint32_t ones = pack2<half>(1.f, 1.f);
    const float C[4] = {4096.f, 0, 0, 0};
    float D[4];
    mma_m16n8k16<half>(D, A, ones, ones, C);
    if (thread_id() == 0) out[0] = D[0];
    const uint32_t B = pack2<half>(t == 0 ? INFINITY : 1.f, 1.f);
    mma_m16n8k16<half>(D, A, B, ones, C);
    if (thread_id() == 0) out[1] = D[0], out[2] = D[2];
    const uint32_t N = pack2<half>(NAN, 1.f);
    mma_m16n8k16<half>(D, A, N, ones, C);
    if (thread_id() == 0) out[3] = D[0];
  });
  CHECK(out[0] == 4097.f);
  CHECK(std::isinf(out[1]));
  CHECK(std::isnan(out[2]));  // 0 * infinity, in row 8
  CHECK(std::bit_cast<uint32_t>(out[3]) == 0x7fffffffu);
}

TEST_CASE("copies: valid ones copy, others fill with zeros") {
  const auto out = output(+[](In in, Out out) {
    const sptr<float> s = floats();
    const int t = thread_id();
    cp_async_16(s + 4 * t, in + 4 * t, t % 2 == 0);
    cp_async_commit();
    cp_async_wait<0>();
    for (int e = 0; e < 4; ++e) out[4 * t + e] = s[4 * t + e];
  });
  for (int i = 0; i < 128; ++i)
    CHECK(out[static_cast<size_t>(i)] == (i / 4 % 2 == 0 ? static_cast<float>(i) : 0.f));
}

TEST_CASE("elements: a = b between any two pointers, conversions, arithmetic") {
  const auto out = output(+[](In in, Out out) {
    const sptr<float> s = floats();
    const sptr<half> h = dyn_smem<half>(4096, 64, Use::tiles, "h");
    const int t = thread_id();
    s[t] = in[t];
    s[t + 32] = s[t];
    h[t] = half(in[t]);
    out[t] = s[t + 32];
    out[t + 32] = out[t];
    out[t + 64] = static_cast<float>(h[t]) * 2.f + s[t];
    reg<stat_tag> m = s[t];
    m = m * s[t];
    m += s[t];
    m = max(m, s[t]);
    out[t + 96] = m;
  });
  for (int t = 0; t < 32; ++t) {
    const auto x = static_cast<float>(t);
    CHECK(out[static_cast<size_t>(t)] == x);
    CHECK(out[static_cast<size_t>(t) + 32] == x);
    CHECK(out[static_cast<size_t>(t) + 64] == 3 * x);
    CHECK(out[static_cast<size_t>(t) + 96] == x * x + x);
  }
}

// `auto v = p[i]` does not read; such a v must not be usable as a number.
template <class E>
concept reusable = requires(E& e) {
  static_cast<float>(e);
};
static_assert(!reusable<sim::SharedElement<float>>);
static_assert(!reusable<sim::GlobalElement<float>>);
static_assert(!std::is_assignable_v<sim::GlobalElement<const float>, float>);
static_assert(std::is_convertible_v<gptr<float>, gptr<const float>>);
static_assert(!std::is_convertible_v<gptr<const float>, gptr<float>>);

TEST_CASE("arithmetic: exp2 flushes, max drops a NaN, an empty row divides to 0") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(fast_exp2(-inf) == 0.f);
  CHECK(fast_exp2(inf) == inf);
  CHECK(std::isnan(fast_exp2(std::nanf(""))));
  CHECK(fast_exp2(0.f) == 1.f);
  CHECK(fast_exp2(-126.f) == 0x1p-126f);
  CHECK(fast_exp2(-126.5f) == 0.f);
  CHECK(fa2::max(std::nanf(""), 1.f) == 1.f);
  CHECK(fa2::max(1.f, std::nanf("")) == 1.f);
  CHECK(fa2::max(-inf, -2.f) == -2.f);
  CHECK(max_from_0(0.f, -2.f, -1.f) == 0.f);
  CHECK(max_from_0(0.f, 3.f, -inf) == 3.f);
  CHECK(max_from_0(1.f, 0x1p-140f, 0x1p100f) == 0x1p100f);
  CHECK(max_from_0(5.f, 4.f, 3.f) == 5.f);
  CHECK(max_from_0(0.f, inf, 1.f) == inf);
  CHECK(reciprocal_or_zero(0.f) == 0.f);
  CHECK(reciprocal_or_zero(4.f) == 0.25f);
  CHECK(fa2::log2(8.f) == 3.f);
  CHECK(fa2::fma(0x1p12f + 1, 0x1p12f + 1, -0x1p24f) == 8193.f);  // a product would round
  CHECK(pack2<half>(1.f, 2.f) == 0x40003c00u);
  CHECK(pack2<bfloat16>(1.f, 2.f) == 0x40003f80u);
}

TEST_CASE("half: all bit patterns go to float and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float f = sim::half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(f))
      REQUIRE(((bits & 0x7fff) > 0x7c00 && sim::float_to_half(f) == 0x7fff));
    else
      REQUIRE(sim::float_to_half(f) == bits);
#ifdef NATIVE_HALF
    const auto native = static_cast<float>(std::bit_cast<NATIVE_HALF>(static_cast<uint16_t>(bits)));
    REQUIRE((std::isnan(f) || std::bit_cast<uint32_t>(f) == std::bit_cast<uint32_t>(native)));
#endif
  }
}

TEST_CASE("half and bfloat16: rounding is to nearest, ties to even") {
  const auto ulp = [](float x, int n) {
    return std::bit_cast<float>(std::bit_cast<uint32_t>(x) + n);
  };
  CHECK(half(1.f + 0x1p-11f).bits == 0x3c00);          // a tie, down to even
  CHECK(half(ulp(1.f + 0x1p-11f, 1)).bits == 0x3c01);  // just above
  CHECK(half(1.f + 3 * 0x1p-11f).bits == 0x3c02);      // a tie, up to even
  CHECK(half(65519.f).bits == 0x7bff);
  CHECK(half(65520.f).bits == 0x7c00);
  CHECK(half(0x1p-24f).bits == 1);
  CHECK(half(0x1p-25f).bits == 0);
  CHECK(half(ulp(0x1p-25f, 1)).bits == 1);
  CHECK(half(-0.f).bits == 0x8000);
  CHECK(half(ulp(0x1p-14f, -1)).bits == 0x0400);
  CHECK(bfloat16(1.f + 0x1p-8f).bits == 0x3f80);
  CHECK(bfloat16(ulp(1.f + 0x1p-8f, 1)).bits == 0x3f81);
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(bfloat16(std::nanf("")).bits == 0x7fff);
#ifdef NATIVE_HALF
  for (uint32_t i = 0; i < 0xfff00000u; i += 4099) {
    const float f = std::bit_cast<float>(i);
    if (!std::isnan(f))
      REQUIRE(half(f).bits == std::bit_cast<uint16_t>(static_cast<NATIVE_HALF>(f)));
  }
#endif
}

}  // namespace
}  // namespace fa2::tests

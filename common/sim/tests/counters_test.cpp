// What each primitive adds to the counters, by closed form, in every order of turns.
#include "common/sim/banks.h"
#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

using In = gptr<const float>;
using Out = gptr<float>;

constexpr uint64_t blocks = 2, threads = 64, warps = 2;  // of Shape{}

TEST_CASE("counters: global memory, by requested bytes") {
  const fa2_counters c = counted(+[](In in, Out out) {
    const float x = in[thread_id()];
    out[thread_id()] = x;
    const gptr<half> h(reinterpret_cast<half*>(out.get()));
    store2(h + 2 * thread_id(), 0u);
    h[128 + thread_id()] = half(1.f);
  });
  CHECK(c.blocks == blocks);
  CHECK(c.global_load_bytes == blocks * threads * 4);
  CHECK(c.global_store_bytes == blocks * threads * (4 + 4 + 2));
  CHECK(c.shared_load_bytes_tiles + c.shared_store_bytes_tiles == 0);
}

TEST_CASE("counters: shared memory, by purpose") {
  const fa2_counters c = counted(+[](In, Out) {
    const int t = thread_id();
    const sptr<half> tile = dyn_smem<half>(0, 64, Use::tiles, "tile");
    const sptr<float> stat = dyn_smem<float>(256, 64, Use::statistics, "stat");
    const sptr<float4_t> partial = dyn_smem<float4_t>(1024, 64, Use::partial_o, "partial");
    const sptr<uint64_t> bar = dyn_smem<uint64_t>(4096, 64, Use::barriers, "bar");
    tile[t] = half(1.f);
    stat[t] = 1.f;
    partial[t] = float4_t{};
    bar[t] = uint64_t{0};
    const float x = stat[t], y = stat[t];
    const float4_t z = partial[t];
    if (x + y + z.x < 0) stat[0] = x;
  });
  CHECK(c.shared_store_bytes_tiles == blocks * threads * 2);
  CHECK(c.shared_load_bytes_tiles == 0);
  CHECK(c.shared_store_bytes_statistics == blocks * threads * 4);
  CHECK(c.shared_load_bytes_statistics == blocks * threads * 8);
  CHECK(c.shared_store_bytes_partial_o == blocks * threads * 16);
  CHECK(c.shared_load_bytes_partial_o == blocks * threads * 16);
  CHECK(c.shared_wavefronts_tiles == blocks * warps);
  CHECK(c.shared_wavefronts_statistics == blocks * warps * 3);
  CHECK(c.shared_wavefronts_partial_o == blocks * warps * 2 * 4);
  CHECK(c.shared_wavefronts_ideal_partial_o == c.shared_wavefronts_partial_o);
}

TEST_CASE("counters: barriers, shuffles, votes, waits at mbarriers") {
  const fa2_counters c = counted(+[](In, Out) {
    const sptr<uint64_t> bar = dyn_smem<uint64_t>(0, 1, Use::barriers, "bar");
    if (thread_id() == 0) mbarrier_init(bar, 64);
    for (int i = 0; i < 3; ++i) block_barrier();
    for (int i = 0; i < 5; ++i) warp_barrier();
    for (int i = 0; i < 7; ++i) shuffle_xor(1.f, 1);
    for (int i = 0; i < 11; ++i) warp_any(false);
    for (int i = 0; i < 13; ++i) {
      mbarrier_arrive(bar);
      mbarrier_wait(bar, i % 2);
    }
  });
  CHECK(c.block_barriers == blocks * 3);
  CHECK(c.warp_syncs == blocks * warps * 5);
  CHECK(c.shuffles == blocks * warps * 7);
  CHECK(c.votes == blocks * warps * 11);
  CHECK(c.mbarrier_waits == blocks * warps * 13);
}

TEST_CASE("counters: ldmatrix, mma, cp.async") {
  const fa2_counters c = counted(+[](In in, Out) {
    const sptr<half> s = dyn_smem<half>(0, 1024, Use::tiles, "tile");
    const gptr<const half> from(reinterpret_cast<const half*>(in.get()));
    cp_async_16(s + 8 * thread_id(), from + 8 * thread_id(), true);
    cp_async_16(s + 8 * thread_id() + 512, from, thread_id() < 16);
    cp_async_commit();
    cp_async_wait<0>();
    block_barrier();
    uint32_t A[4], B[4];
    ldmatrix_x4(A, s + 8 * (thread_id() % 32));
    ldmatrix_x4_trans(B, s + 8 * (thread_id() % 32));
    float D[4] = {};
    for (int i = 0; i < 5; ++i) mma_m16n8k16<half>(D, A, B[0], B[1], D);
    mma_m16n8k16<bfloat16>(D, A, B[2], B[3], D);
  });
  CHECK(c.cp_async == blocks * threads * 2);
  CHECK(c.global_load_bytes == blocks * (64 + 16) * 16);  // zeros are not loaded
  CHECK(c.shared_store_bytes_tiles == blocks * threads * 2 * 16);
  CHECK(c.ldmatrix == blocks * warps * 2);
  CHECK(c.shared_load_bytes_tiles == c.ldmatrix * 512);
  CHECK(c.mma == blocks * warps * 6);
  CHECK(c.shared_wavefronts_tiles == c.ldmatrix * 4);  // rows of 16 bytes one after the other
}

TEST_CASE("counters: arithmetic by tag") {
  const fa2_counters c = counted(+[](In, Out out) {
    reg<O_tag> O = 1.f;
    reg<S_tag> S = 2.f;
    reg<stat_tag> m = 3.f;
    float x = 4.f;
    O = O * m + S;                      // O: mul, add
    O += S * x;                         // O: add; S: mul
    S = S - m;                          // S: add
    S *= m;                             // S: mul
    m = m * x + 1;                      // stat: mul, add
    m -= S;                             // stat: add
    m = fma(m, x, S);                   // S: fma
    O = fma(O, m, O);                   // O: fma
    m = fma(m, m, 1.f);                 // stat: fma
    m = -max(m, S);                     // nothing
    S = fast_exp2(S);                   // exp2_p
    m = fast_exp2(m);                   // exp2_stats
    x = fast_exp2(x);                   // a plain float: nothing
    m = reciprocal_or_zero(m);          // a normalisation
    O = O / m;                          // O: mul, and a normalisation
    const reg<S_tag> from_O = O;        // conversions are free
    if (from_O < 0.f || m == S) x = m;  // so are comparisons
    out[thread_id()] = O + x;           // O: add
  });
  constexpr uint64_t n = blocks * threads;
  CHECK(c.fp32_mul_O == 2 * n);
  CHECK(c.fp32_add_O == 3 * n);
  CHECK(c.fp32_fma_O == n);
  CHECK(c.fp32_mul_S == 2 * n);
  CHECK(c.fp32_add_S == n);
  CHECK(c.fp32_fma_S == n);
  CHECK(c.fp32_mul_stat == n);
  CHECK(c.fp32_add_stat == 2 * n);
  CHECK(c.fp32_fma_stat == n);
  CHECK(c.exp2_p == n);
  CHECK(c.exp2_stats == n);
  CHECK(c.normalisations == 2 * n);
}

TEST_CASE("counters: sums over launches, and nothing from a launch that failed") {
  Memory memory;
  Session session;
  memory.expose(session);
  const auto go = [&](Kernel kernel) {
    launch(kernel, 1, 32, 0, nullptr, memory.in.data(), memory.out.data());
  };
  for (int i = 0; i < 3; ++i) go(+[](In, Out out) { out[thread_id()] = 1.f; });
  CHECK(session.counters().global_store_bytes == 3 * 32 * 4);
  CHECK_THROWS_AS(go(+[](In, Out out) { out[-thread_id()] = 1.f; }), Finding);
  CHECK(session.counters().global_store_bytes == 3 * 32 * 4);
  CHECK(session.counters().blocks == 3);
}

// ---- Bank conflicts -----------------------------------------------------------------------------

// Wavefronts of one load of a warp, lane l at element l * stride (mod the array).
template <class T>
sim::Wavefronts strided(int stride) {
  uint32_t addresses[32];
  uint8_t lanes[32];
  for (uint8_t l = 0; l < 32; ++l)
    addresses[l] = static_cast<uint32_t>(l * stride * static_cast<int>(sizeof(T))), lanes[l] = l;
  return sim::count_request(addresses, lanes, sizeof(T));
}

TEST_CASE("banks: strides of each width") {
  const auto is = [](sim::Wavefronts w, uint32_t taken, uint32_t ideal) {
    return w.taken == taken && w.ideal == ideal;
  };
  CHECK(is(strided<float>(0), 1, 1));
  CHECK(is(strided<float>(1), 1, 1));
  CHECK(is(strided<float>(2), 2, 1));
  CHECK(is(strided<float>(4), 4, 1));
  CHECK(is(strided<float>(32), 32, 1));
  CHECK(is(strided<float>(33), 1, 1));
  CHECK(is(strided<half>(1), 1, 1));
  CHECK(is(strided<half>(2), 1, 1));
  CHECK(is(strided<half>(64), 32, 1));
  CHECK(is(strided<double>(1), 2, 2));
  CHECK(is(strided<double>(2), 4, 2));
  CHECK(is(strided<float4_t>(0), 1, 1));
  CHECK(is(strided<float4_t>(1), 4, 4));
  CHECK(is(strided<float4_t>(2), 8, 4));
  CHECK(is(strided<float4_t>(8), 32, 4));
}

TEST_CASE("banks: rows of an ldmatrix") {
  const auto passes = [](uint32_t row_bytes) {
    uint32_t rows[8];
    for (uint32_t i = 0; i < 8; ++i) rows[i] = i * row_bytes;
    return sim::count_matrix_rows(rows);
  };
  CHECK(passes(16) == 1);
  CHECK(passes(128) == 8);
  CHECK(passes(144) == 1);
  CHECK(passes(64) == 4);
  CHECK(passes(0) == 1);
}

TEST_CASE("banks: what lanes log is zipped to the warp's instructions, in every order") {
  const fa2_counters c = counted(
      +[](In, Out) {
        const sptr<float> s = floats();
        const int t = thread_id();
        for (int i = 0; i < 3; ++i) s[t * 4] = 1.f;  // 4 passes instead of 1, three times
        warp_barrier();
        if (t < 16) s[t] = 1.f;                            // half a warp: one request
        if (t % 2 == 1) s[512 + t] = 1.f;                  // and again
        for (int i = 0; i < t % 4; ++i) s[256 + t] = 1.f;  // 3 rounds, of fewer and fewer lanes
      },
      {1, 32, 16384});
  CHECK(c.shared_wavefronts_statistics == 3 * 4 + 1 + 1 + 3);
  CHECK(c.shared_wavefronts_ideal_statistics == 3 * 1 + 1 + 1 + 3);
}

TEST_CASE("banks: logs that fill up are counted as if they had not") {
  const fa2_counters c = counted(
      +[](In, Out) {
        const sptr<float> s = floats();
        const int t = thread_id();
        for (int i = 0; i < 2000; ++i) s[t] = 1.f;
        if (t < 8)
          for (int i = 0; i < 700; ++i) s[t] = 1.f;
        for (int i = 0; i < 2000; ++i) s[t] = 1.f;
        warp_barrier();
      },
      {1, 32, 16384});
  CHECK(c.shared_wavefronts_statistics == 2000 + 700 + 2000);
}

TEST_CASE("banks: full logs beside a lane that waits at an mbarrier") {
  const fa2_counters c = counted(
      +[](In, Out) {
        const sptr<float> s = floats();
        const sptr<uint64_t> bar = dyn_smem<uint64_t>(8192, 1, Use::barriers, "bar");
        const int t = thread_id();
        if (t == 0) mbarrier_init(bar, 1);
        block_barrier();
        if (t == 63)
          for (int i = 0; i < 900; ++i) s[512 + t] = 1.f;
        if (t == 63) mbarrier_arrive(bar);
        if (t == 5) mbarrier_wait(bar, 0);
        for (int i = 0; i < 1500; ++i) s[t] = 1.f;
      },
      {1, 64, 16384});
  CHECK(c.shared_wavefronts_statistics == 900 + 2 * 1500);
  CHECK(c.mbarrier_waits == 1);
}

}  // namespace
}  // namespace fa2::tests

// Results and counters depend on nothing but the kernel and its inputs; and what they should be.
#include <cstdio>
#include <cstring>
#include <thread>

#include <sys/resource.h>

#include "common/sim/tests/attention_kernel.h"
#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

uint64_t hash(const Attention& a) {
  uint64_t h = 1469598103934665603u;
  for (const half x : a.O) h = (h ^ x.bits) * 1099511628211u;
  for (const float x : a.LSE) h = (h ^ std::bit_cast<uint32_t>(x)) * 1099511628211u;
  return h;
}

bool same(const fa2_counters& a, const fa2_counters& b) { return memcmp(&a, &b, sizeof a) == 0; }

TEST_CASE("determinism: the same bits and counters in every order, on any number of OS threads") {
  Attention a(2, 128, 64);
  const fa2_counters counters = a.run({});
  const uint64_t bits = hash(a);
  CHECK(a.error() < 2e-3);
  for (Config config : all_orders())
    for (uint64_t seed = 0; seed < (config.order == Order::random ? 4 : 1); ++seed) {
      config.seed = seed;
      std::fill(a.O.begin(), a.O.end(), half(-1.f));
      CHECK(same(a.run(config), counters));
      CHECK(hash(a) == bits);
    }
}

TEST_CASE("determinism: sessions of several OS threads at once, each alone with its counters") {
  Attention reference(1, 128, 64);
  const fa2_counters counters = reference.run({});
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Attention a(1, 128, 64);
      for (int round = 0; round < 3; ++round) {
        Config config;
        config.os_threads = 2;
        if (same(a.run(config), counters) && hash(a) == hash(reference)) ++good;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 12);
}

TEST_CASE("determinism: the mistake of the lowest block is reported, whoever finds one first") {
  for (const Config& config : all_orders())
    for (int repeat = 0; repeat < 5; ++repeat) {
      const auto finding = run(config,
                               +[](gptr<const float>, gptr<float> out) {
                                 // Later blocks fail sooner.
                                 for (unsigned i = blockIdx.x; i < 64; ++i) out[0] = 1.f;
                                 if (blockIdx.x >= 7) out[-static_cast<int>(blockIdx.x)] = 1.f;
                               },
                               {64, 32, 0});
      REQUIRE(finding);
      CHECK(finding->block == Index3{7, 0, 0});
      CHECK(finding->offset == -28);
    }
}

TEST_CASE("counters: closed forms of a whole attention kernel") {
  constexpr uint64_t heads = 2, N = 256, d = 64, blocks = heads * N / 64, tiles = blocks * N / 64;
  Attention a(heads, N, d);
  const fa2_counters c = a.run({});
  CHECK(c.blocks == blocks);
  CHECK(c.global_load_bytes == blocks * 64 * d * 2 + tiles * 2 * 64 * d * 2);
  CHECK(c.global_store_bytes == heads * N * (d * 2 + 4));
  CHECK(c.cp_async * 16 == c.global_load_bytes);
  CHECK(c.shared_store_bytes_tiles == c.global_load_bytes);
  CHECK(c.mma == tiles * 4 * 64 * 64 * d / 4096);
  CHECK(c.ldmatrix == tiles * 4 * (4 + 4 * 4 + 4 * 4));
  CHECK(c.shared_load_bytes_tiles == c.ldmatrix * 512);
  CHECK(c.shared_wavefronts_ideal_tiles == c.ldmatrix * 4);
  CHECK(c.shared_wavefronts_tiles == c.shared_wavefronts_ideal_tiles);
  CHECK(c.exp2_p == tiles * 64 * 64);
  CHECK(c.exp2_stats == tiles * 128 * 2);
  CHECK(c.block_barriers == tiles * 2);
  CHECK(c.shuffles == tiles * 4 * 4 + blocks * 4 * 4);
  CHECK(c.normalisations == blocks * 128 * 2);
  CHECK(c.fp32_mul_O == tiles * 64 * d + blocks * 64 * d);
  CHECK(c.fp32_add_O == 0);
  CHECK(c.fp32_fma_S == tiles * 64 * 64);
  CHECK(c.fp32_add_S == 0);
  // The subtraction before alpha, and the sums of each lane; then the two quad reductions, and LSE.
  CHECK(c.fp32_add_stat == tiles * (128 * 2 + 64 * 64) + blocks * (128 * 2 * 2 + 64));
  CHECK(c.shared_load_bytes_statistics + c.shared_store_bytes_statistics == 0);
  CHECK(c.warp_syncs + c.votes + c.mbarrier_waits == 0);

  // Without the swizzle the eight rows of a matrix lie in the same four banks.
  const fa2_counters plain = a.run<false>({});
  CHECK(plain.shared_wavefronts_ideal_tiles == c.shared_wavefronts_ideal_tiles);
  CHECK(plain.shared_wavefronts_tiles == 8 * c.shared_wavefronts_tiles);
  CHECK(plain.mma == c.mma);
}

// Run it with: sim_test "[benchmark]"
TEST_CASE("benchmark: B1 H2 d64", "[.][benchmark]") {
  for (int N : {128, 512, 1024, 2048}) {
    Attention a(2, N, 64);
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      a.run({});
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      best = std::min(best, seconds.count());
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("N %4d: %7.1f ms, %.0f ns per (query, key) pair, peak memory %ld MB\n", N,
                1e3 * best, 1e9 * best / (2.0 * N * N), usage.ru_maxrss / 1024);
  }
}

}  // namespace
}  // namespace fa2::tests

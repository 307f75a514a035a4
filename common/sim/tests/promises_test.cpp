// Every rule has at least three kernels that break it in different places and three that come close
// and are legal. The other files here have most of them, by rule; this one has what they lack.
#include <cmath>
#include <limits>

#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

using In = gptr<const float>;
using Out = gptr<float>;

// ---- Shared memory that nobody has written ------------------------------------------------------

TEST_CASE("unwritten: one byte of a wide read, the far end of a row, a slot of another round") {
  planted(
      rule::unwritten, +[](In, Out out) {
        const sptr<uint8_t> bytes = dyn_smem<uint8_t>(0, 256, Use::tiles, "bytes");
        const sptr<uint32_t> words = dyn_smem<uint32_t>(0, 64, Use::tiles, "words");
        for (int i = 0; i < 3; ++i) bytes[4 * thread_id() + i] = uint8_t{1};
        const uint32_t x = HERE(words[thread_id()]);
        out[thread_id()] = static_cast<float>(x);
      });
  planted(
      rule::unwritten, +[](In in, Out out) {  // two buffers, and the loop begins with the wrong one
        const sptr<float> s = floats();
        cp_async_16(s + 4 * thread_id(), in, true);
        cp_async_commit();
        cp_async_wait<0>();
        block_barrier();
        const float x = HERE(s[256 + 4 * thread_id()]);
        out[thread_id()] = x;
      });
}

TEST_CASE("written, legal: by other warps behind a barrier, and only as far as it is read") {
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    if (thread_id() < 32) s[2 * thread_id()] = 1.f;
    block_barrier();
    out[thread_id()] = s[2 * (thread_id() % 32)];
  });
  legal(+[](In, Out) {  // an ldmatrix over exactly the rows that exist
    const sptr<half> s = dyn_smem<half>(0, 512, Use::tiles, "tile");
    for (int i = thread_id(); i < 256; i += 64) s[i] = half(1.f);
    block_barrier();
    uint32_t r[4];
    ldmatrix_x4(r, s + thread_id() % 32 * 8);
  });
  legal(+[](In, Out) {  // unwritten memory may be pointed at, and written twice
    const sptr<float> s = floats();
    const sptr<float> later = s + 512;
    later[thread_id()] = 1.f;
    later[thread_id()] = 2.f;
  });
}

// ---- Bounds -------------------------------------------------------------------------------------

TEST_CASE("shared bounds, legal: overlapping arrays, pointers beyond that are not used") {
  legal(+[](In, Out) {
    const sptr<float> whole = dyn_smem<float>(0, 256, Use::partial_o, "whole");
    const sptr<float> upper = dyn_smem<float>(512, 128, Use::partial_o, "upper");
    whole[128 + thread_id()] = 1.f;  // the same element as upper[thread_id()]
    upper[thread_id()] = 2.f;
    block_barrier();
    if (thread_id() == 0) whole[255] = 3.f;
  });
  legal(+[](In, Out out) {
    const sptr<float> s = dyn_smem<float>(0, 64, Use::statistics, "s");
    sptr<float> p = s;
    for (int i = 0; i < 4; ++i, p = p + 16)
      if (thread_id() / 16 == i) p[thread_id() % 16] = 1.f;
    warp_barrier();  // p has left the array by now
    out[thread_id()] = s[thread_id() ^ 15];
  });
}

TEST_CASE("global bounds, legal: the corners of an array, and a guarded ragged row") {
  legal(+[](In in, Out out) {
    if (thread_id() == 0) out[0] = in[Memory::floats - 1];
    if (thread_id() == 63) out[Memory::floats - 1] = in[0];
  });
  legal(+[](In in, Out out) {
    const int rows = Memory::floats - 10;  // the last rows of the tile do not exist
    for (int i = thread_id(); i < Memory::floats; i += 64)
      if (i < rows) out[i] = in[i];
  });
}

TEST_CASE("read-only: the last element, a pair of halves, a read before it changes nothing") {
  planted(
      rule::read_only, +[](In in, Out) {
        const gptr<float> input(const_cast<float*>(in.get()));
        if (thread_id() == 63) HERE(input[Memory::floats - 1] = 1.f);
      });
  planted(
      rule::read_only, +[](In in, Out) {
        const gptr<half> h(reinterpret_cast<half*>(const_cast<float*>(in.get())));
        HERE(store2(h + 2 * thread_id(), 0));
      });
  planted(
      rule::read_only, +[](In in, Out) {
        const gptr<float> input(const_cast<float*>(in.get()));
        const float x = input[thread_id()];
        HERE(input[thread_id()] = x);  // the same value, but a store
      });
}

TEST_CASE(
    "read-only, legal: inputs read, outputs read and written, an input as a mutable pointer") {
  legal(+[](In in, Out out) { out[thread_id()] = in[thread_id()] + in[thread_id()]; });
  legal(+[](In, Out out) {
    out[thread_id()] = 1.f;
    const float x = out[thread_id()];
    out[thread_id()] = 2 * x;
  });
  legal(+[](In in, Out out) {
    const gptr<float> input(const_cast<float*>(in.get()));
    const float x = input[thread_id()];
    out[thread_id()] = x;
  });
}

TEST_CASE("null, legal: never used, used under a false condition, the source of a copy of zeros") {
  legal(+[](In, Out out) {
    const gptr<const float> mask(nullptr);
    out[thread_id()] = mask ? 1.f : 0.f;
  });
  legal(+[](In, Out out) {
    const gptr<float> LSE(nullptr);
    const gptr<float> row = LSE + thread_id();
    if (thread_id() > 1000) row[0] = 1.f;
    out[thread_id()] = 0.f;
  });
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    cp_async_16(s + 4 * thread_id(), gptr<const float>(nullptr), false);
    cp_async_commit();
    cp_async_wait<0>();
    out[thread_id()] = s[4 * thread_id()];
  });
}

TEST_CASE("aligned, legal: copies and matrix rows at every multiple of 16, pairs at even ones") {
  legal(+[](In in, Out) {
    const sptr<half> s = dyn_smem<half>(16, 1024, Use::tiles, "tile");
    const gptr<const half> from(reinterpret_cast<const half*>(in.get()));
    for (int i = 0; i < 2; ++i)
      cp_async_16(s + 16 * thread_id() + 8 * i, from + 8 * thread_id(), true);
    cp_async_commit();
    cp_async_wait<0>();
    block_barrier();
    uint32_t r[4];
    ldmatrix_x4(r, s + thread_id() % 32 * 24 % 1024);
  });
  legal(+[](In, Out out) {
    const gptr<half> h(reinterpret_cast<half*>(out.get()));
    store2(h + 2 * thread_id() + 128, 0);
  });
}

// ---- mbarriers, deadlock ------------------------------------------------------------------------

TEST_CASE("mbarrier, legal: one arrival for a warp, a second use, waits by part of the block") {
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    const sptr<uint64_t> bar = dyn_smem<uint64_t>(8192, 1, Use::barriers, "bar");
    if (thread_id() == 0) mbarrier_init(bar, 2);
    block_barrier();
    for (int round = 0; round < 3; ++round) {
      s[thread_id()] = static_cast<float>(round);
      warp_barrier();
      if (thread_id() % 32 == 0) mbarrier_arrive(bar);
      mbarrier_wait(bar, round % 2);
      out[thread_id()] = s[63 - thread_id()];
      block_barrier();
    }
  });
  legal(+[](In, Out out) {  // nobody needs to wait
    const sptr<uint64_t> bar = dyn_smem<uint64_t>(8192, 1, Use::barriers, "bar");
    if (thread_id() == 0) mbarrier_init(bar, 64);
    block_barrier();
    mbarrier_arrive(bar);
    if (thread_id() == 5) mbarrier_wait(bar, 0);
    out[thread_id()] = 1.f;
  });
}

TEST_CASE("no deadlock: warps at different barriers that all complete") {
  legal(+[](In, Out out) {  // the second warp is released by the first one's arrival
    const sptr<uint64_t> bar = dyn_smem<uint64_t>(8192, 1, Use::barriers, "bar");
    if (thread_id() == 0) mbarrier_init(bar, 32);
    block_barrier();
    if (thread_id() < 32)
      mbarrier_arrive(bar);
    else
      mbarrier_wait(bar, 0);
    block_barrier();
    out[thread_id()] = 1.f;
  });
  legal(+[](In, Out) {  // the first warp exits while the second still meets
    if (thread_id() < 32) return;
    for (int i = 0; i < 10; ++i) warp_barrier();
    block_barrier();
  });
  legal(+[](In, Out out) {  // one lane works while its warp waits
    float x = 0;
    if (thread_id() % 32 == 3)
      for (int i = 0; i < 100; ++i) out[thread_id()] = x = x + 1.f;
    warp_barrier();
    block_barrier();
  });
}

// ---- Kernels that never end, or crash -----------------------------------------------------------

TEST_CASE("not endless: a wait that a slow thread ends, and one step below the limit") {
  legal(+[](In, Out out) {
    if (thread_id() == 40)
      for (int i = 0; i < 20000; ++i) out[thread_id()] = 1.f;
    block_barrier();
  });
  for (const bool one_more : {false, true}) {
    Config config;
    config.os_threads = 1;
    config.step_limit = 50;  // of the block
    const Kernel kernel = one_more ? +[](In, Out out) {
      for (int i = 0; i < 51; ++i) out[0] = 1.f;
    }
                                   : +[](In, Out out) {
      for (int i = 0; i < 50; ++i) out[0] = 1.f;
    };
    const auto finding = run(config, kernel, {1, 1, 0});
    CHECK(finding.has_value() == one_more);
    if (finding) CHECK(finding->rule == rule::endless);
  }
}

int sum_to(int n) {
  volatile char frame[256];
  frame[0] = 1;
  return n == 0 ? 0 : sum_to(n - 1) + frame[0];
}

TEST_CASE("no crash: recursion that ends, floats divided by zero, a large local array") {
  legal(+[](In, Out out) { out[thread_id()] = static_cast<float>(sum_to(100)); });
  legal(+[](In in, Out out) {
    const float x = in[1] / in[0];  // 1 / 0
    out[thread_id()] = x == std::numeric_limits<float>::infinity() ? 1.f : 0.f;
  });
  legal(+[](In, Out out) {
    volatile float local[4096];  // 16 KiB of the thread's stack
    for (int i = 0; i < 4096; ++i) local[i] = 1.f;
    out[thread_id()] = local[4095];
  });
}

}  // namespace
}  // namespace fa2::tests

// Two accesses of different threads to the same shared memory, at least one a write, and nothing
// that orders them.
#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

using In = gptr<const float>;
using Out = gptr<float>;

TEST_CASE("race: a block barrier is missing between a write and a read") {
  const Finding f = planted(
      rule::race, +[](In, Out out) {
        const sptr<float> s = written_floats();
        THERE(s[thread_id()] = 1.f);
        const float x = HERE(s[63 - thread_id()]);
        out[thread_id()] = x;
      });
  CHECK(f.array == "s_smem");
  CHECK(f.offset == 0);  // thread 63 has read it first
  CHECK(f.block == Index3{0, 0, 0});
  CHECK(f.thread == Index3{0, 0, 0});
  CHECK(f.other_thread == Index3{63, 0, 0});
  CHECK(f.fix.starts_with("put block_barrier() between"));
  CHECK(f.fix.find("warp_barrier() orders one warp only") != std::string::npos);
  CHECK(f.file.find("races_test.cpp") != std::string::npos);
}

TEST_CASE("race: shuffles do not order memory, not even inside a warp") {
  const Finding f = planted(
      rule::race, +[](In, Out out) {
        const sptr<float> s = written_floats();
        THERE(s[thread_id()] = 1.f);
        const int y = shuffle_xor(thread_id(), 1);
        out[thread_id()] = HERE(s[y]);
      });
  CHECK(f.fix.starts_with("put warp_barrier() between"));
  CHECK(f.fix.find("both threads are in one warp") != std::string::npos);
}

TEST_CASE("race: the next round overwrites what others still read") {
  planted(
      rule::race, +[](In, Out out) {
        const sptr<float> s = written_floats();
        for (int round = 0; round < 3; ++round) {
          THERE(s[thread_id()] = 1.f);
          block_barrier();
          out[thread_id()] = HERE(s[(thread_id() + 32) % 64]);
        }
      });
}

TEST_CASE("race: two threads write one element") {
  planted(
      rule::race, +[](In, Out) {
        const sptr<float> s = written_floats();
        line_there = __LINE__ + 1;
        HERE(s[thread_id() / 2] = 1.f);
      });
}

TEST_CASE("race: ldmatrix reads what another warp has just written") {
  planted(
      rule::race, +[](In, Out) {
        const sptr<half> s = dyn_smem<half>(0, 1024, Use::tiles, "tile");
        for (int i = 0; i < 16; ++i) s[thread_id() * 16 + i] = half(0.f);
        block_barrier();
        for (int i = 0; i < 16; ++i) THERE(s[thread_id() * 16 + i] = half(0.f));
        warp_barrier();  // orders the warp, but the rows are the other warp's
        uint32_t r[4];
        HERE(ldmatrix_x4(r, s + (thread_id() ^ 32) * 8));
      });
}

TEST_CASE("race: a warp barrier does not order two warps") {
  planted(
      rule::race, +[](In, Out out) {
        const sptr<float> s = written_floats();
        THERE(s[thread_id()] = 1.f);
        warp_barrier();
        out[thread_id()] = HERE(s[(thread_id() + 32) % 64]);
      });
}

TEST_CASE("race: cp_async_wait covers the thread's own copies only") {
  const Finding f = planted(
      rule::race, +[](In in, Out out) {
        const sptr<float> s = written_floats();
        THERE(cp_async_16(s + 4 * thread_id(), in + 4 * thread_id(), true));
        cp_async_commit();
        cp_async_wait<0>();
        const int other = (thread_id() + 63) % 64;
        out[thread_id()] = HERE(s[4 * other]);
      });
  CHECK(f.array == "s_smem");
}

TEST_CASE("race: a copy overwrites the tile before every warp has read it") {
  planted(
      rule::race, +[](In in, Out out) {
        const sptr<float> s = written_floats();
        for (int round = 0; round < 2; ++round) {
          THERE(cp_async_16(s + 4 * thread_id(), in + 4 * thread_id(), true));
          cp_async_commit();
          cp_async_wait<0>();
          block_barrier();
          out[thread_id()] = HERE(s[4 * (thread_id() ^ 32)]);
          warp_barrier();
        }
      });
}

TEST_CASE("race: that the other thread has exited orders nothing") {
  planted(
      rule::race, +[](In, Out out) {
        const sptr<float> s = written_floats();
        if (thread_id() == 40) {
          THERE(s[0] = 1.f);
          return;
        }
        if (thread_id() == 41) out[0] = HERE(s[0]);
      });
}

TEST_CASE("race: a barrier of part of the warp does not order the rest") {
  planted(
      rule::race, +[](In, Out out) {
        const sptr<float> s = written_floats();
        if (thread_id() >= 32) return;
        if (thread_id() < 16) {
          THERE(s[thread_id()] = 1.f);
          __syncwarp(0x0000ffffu);
        } else {
          __syncwarp(0xffff0000u);
          out[thread_id()] = HERE(s[thread_id() - 16]);
        }
      });
}

TEST_CASE("race: many readers in several warps, and all of them are remembered") {
  // Only warp 2 is not waited for; its read lies between those of the others.
  planted(rule::race,
          +[](In, Out out) {
            const sptr<float> s = written_floats();
            const sptr<uint64_t> bar = dyn_smem<uint64_t>(8192, 1, Use::barriers, "bar");
            if (thread_id() == 0) s[0] = 1.f, mbarrier_init(bar, 96);
            block_barrier();
            const int warp = thread_id() / 32;
            const float x = HERE(s[0]);
            if (warp != 2) mbarrier_arrive(bar);
            if (thread_id() == 0) {
              mbarrier_wait(bar, 0);
              THERE(s[0] = 2.f);
            }
            out[thread_id()] = x;
          },
          {1, 128, 16384});
}

// ---- Legal near misses --------------------------------------------------------------------------

TEST_CASE("no race: ordered by a block barrier, round after round") {
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    for (int round = 0; round < 3; ++round) {
      s[thread_id()] = static_cast<float>(round);
      block_barrier();
      const float x = s[63 - thread_id()];
      if (x != static_cast<float>(round)) s[-1] = x;
      block_barrier();
      out[thread_id()] = x;
    }
  });
}

TEST_CASE("no race: inside a warp, ordered by its barrier") {
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    for (int round = 0; round < 3; ++round) {
      s[thread_id()] = 1.f;
      warp_barrier();
      out[thread_id()] = s[thread_id() ^ 31];
      warp_barrier();
    }
  });
}

TEST_CASE("no race: everybody reads one element, again and again") {
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    if (thread_id() == 0) s[5] = 1.f;
    block_barrier();
    float sum = 0;
    for (int i = 0; i < 40; ++i) sum += s[5];
    warp_barrier();
    for (int i = 0; i < 40; ++i) sum += s[5];
    out[thread_id()] = sum;
    block_barrier();
    if (thread_id() == 63) s[5] = 2.f;
  });
}

TEST_CASE("no race: neighbouring bytes and 16-bit elements belong to different threads") {
  legal(+[](In, Out) {
    const sptr<half> h = dyn_smem<half>(0, 64, Use::tiles, "h");
    const sptr<uint8_t> b = dyn_smem<uint8_t>(128, 64, Use::tiles, "b");
    h[thread_id()] = half(1.f);
    b[thread_id()] = uint8_t{1};
    const half x = h[thread_id()];
    h[thread_id()] = x;
  });
}

TEST_CASE("no race: one warp ordered after another by an mbarrier") {
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    const sptr<uint64_t> full = dyn_smem<uint64_t>(8192, 2, Use::barriers, "full"),
                         empty = full + 1;
    if (thread_id() == 0) mbarrier_init(full, 32), mbarrier_init(empty, 32);
    block_barrier();
    for (int round = 0; round < 5; ++round) {
      if (thread_id() < 32) {
        if (round > 0) mbarrier_wait(empty, (round + 1) % 2);
        s[thread_id()] = static_cast<float>(round);
        mbarrier_arrive(full);
      } else {
        mbarrier_wait(full, round % 2);
        out[thread_id()] = s[63 - thread_id()];
        mbarrier_arrive(empty);
      }
    }
  });
}

TEST_CASE("no race: what a lane learns from an mbarrier reaches its warp by the warp's barrier") {
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    const sptr<uint64_t> bar = dyn_smem<uint64_t>(8192, 1, Use::barriers, "bar");
    if (thread_id() == 0) mbarrier_init(bar, 1);
    block_barrier();
    if (thread_id() < 32) {
      s[thread_id()] = 1.f;
      warp_barrier();
      if (thread_id() == 0) mbarrier_arrive(bar);  // for the warp
    } else {
      if (thread_id() == 32) mbarrier_wait(bar, 0);
      warp_barrier();
      out[thread_id()] = s[thread_id() - 32];
    }
  });
}

TEST_CASE("no race: writers that have exited are ordered by the barrier that the others reach") {
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    s[thread_id()] = 1.f;
    if (thread_id() >= 32) return;
    block_barrier();
    out[thread_id()] = s[thread_id() + 32];
  });
}

TEST_CASE("no race: blocks do not share their shared memory") {
  legal(
      +[](In, Out out) {
        const sptr<float> s = floats();
        for (int i = 0; i < 4; ++i) {
          s[thread_id()] = 1.f;
          warp_barrier();  // moves the warp's clock beyond the block's
        }
        block_barrier();
        out[thread_id()] = s[63 - thread_id()];
        warp_barrier();
      },
      {64, 64, 16384});
}

TEST_CASE("no race: parts of a warp, each ordered by a barrier of its own") {
  legal(+[](In, Out out) {
    const sptr<float> s = floats();
    const int t = thread_id() % 32;
    const unsigned mask = t < 16 ? 0x0000ffffu : 0xffff0000u;
    s[thread_id()] = 1.f;
    __syncwarp(mask);
    out[thread_id()] = s[thread_id() ^ 15];
    __syncwarp();
    s[thread_id() ^ 31] = 2.f;
  });
}

}  // namespace
}  // namespace fa2::tests

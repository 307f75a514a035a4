// Threads that do not meet where they should: barriers, collectives, deadlocks.
#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

using In = gptr<const float>;
using Out = gptr<float>;

bool tells(const Finding& f, const char* what) {
  return std::string(f.what()).find(what) != std::string::npos;
}

// ---- Block barriers -----------------------------------------------------------------------------

TEST_CASE("divergence: one warp skips a barrier and waits at the next one") {
  planted(
      rule::divergence, +[](In, Out) {
        if (thread_id() < 32) THERE(block_barrier());
        HERE(block_barrier());
      });
}

TEST_CASE("divergence: a loop whose last round some threads leave early") {
  planted(
      rule::divergence, +[](In, Out) {
        for (int i = 0; i < 4; ++i) {
          if (i == 3 && thread_id() % 2 == 1) break;
          THERE(block_barrier());
        }
        HERE(block_barrier());
      });
}

TEST_CASE("divergence: one barrier in each branch") {
  planted(
      rule::divergence, +[](In, Out) {
        if (thread_id() == 5)
          HERE(block_barrier());
        else
          THERE(block_barrier());
      });
}

TEST_CASE("deadlock: half of a warp at a barrier, the other half in a shuffle") {
  const Finding f = planted(rule::deadlock,
                            +[](In, Out out) {
                              if (thread_id() < 16)
                                block_barrier();
                              else
                                out[thread_id()] = static_cast<float>(shuffle_xor(thread_id(), 1));
                            },
                            {2, 32, 0});
  CHECK(tells(f, "threads 0-15 wait in block_barrier"));
  CHECK(tells(f, "threads 16-31 wait in shuffle_xor"));
}

TEST_CASE("deadlock: one thread waits at an mbarrier, the others at the block barrier") {
  const Finding f = planted(
      rule::deadlock, +[](In, Out) {
        const sptr<uint64_t> bar = dyn_smem<uint64_t>(0, 1, Use::barriers, "bar");
        if (thread_id() == 0) {
          mbarrier_init(bar, 1);
          mbarrier_wait(bar, 0);
        }
        block_barrier();
        if (thread_id() == 1) mbarrier_arrive(bar);
      });
  CHECK(tells(f, "threads 0 wait in mbarrier_wait (parity 0)"));
  CHECK(tells(f, "threads 1-63 wait in block_barrier"));
}

TEST_CASE("deadlock: a lane goes to the block barrier instead of the warp's") {
  const Finding f = planted(
      rule::deadlock, +[](In, Out) {
        if (thread_id() != 7) warp_barrier();
        block_barrier();
      });
  CHECK(tells(f, "threads 0-6, 8-31 wait in warp_barrier"));
}

TEST_CASE("barriers, legal: threads that have exited are not awaited") {
  legal(+[](In, Out out) {
    if (thread_id() >= 40) return;
    block_barrier();
    out[thread_id()] = 1.f;
    if (thread_id() == 3) return;
    block_barrier();
  });
}

TEST_CASE("barriers, legal: in a loop, and in an if that is the same for all") {
  legal(+[](In, Out) {
    for (int i = 0; i < 100; ++i)
      if (blockIdx.x == 0 || i % 2 == 0) block_barrier();
  });
}

TEST_CASE("barriers, legal: the last threads to exit release the others") {
  legal(
      +[](In, Out) {
        if (thread_id() % 3 == 0) block_barrier();
      },
      {2, 96, 0});
}

// ---- Collectives --------------------------------------------------------------------------------

TEST_CASE("collective: lanes in different operations") {
  const Finding f = planted(
      rule::collective, +[](In, Out out) {
        if (thread_id() % 32 < 8)
          HERE(warp_any(true));
        else
          out[0] = THERE(shuffle_xor(1.f, 1));
      });
  CHECK((tells(f, "shuffle_xor") && tells(f, "vote")));
}

TEST_CASE("collective: the same operation in two branches") {
  planted(
      rule::collective, +[](In, Out out) {
        float x = 0;
        if (thread_id() % 2 == 0)
          x = HERE(shuffle_xor(1.f, 1));
        else
          x = THERE(shuffle_xor(2.f, 1));
        out[thread_id()] = x;
      });
}

TEST_CASE("collective: an mma that one lane does not reach") {
  planted(
      rule::collective, +[](In, Out) {
        float D[4] = {};
        const uint32_t A[4] = {};
        if (thread_id() != 33) HERE(mma_m16n8k16<half>(D, A, 0, 0, D));
        THERE(warp_barrier());
      });
}

TEST_CASE("missing lanes: an mma and an ldmatrix after a return, and in a block of 40 threads") {
  planted(
      rule::missing_lanes, +[](In, Out) {
        float D[4] = {};
        const uint32_t A[4] = {};
        if (thread_id() == 12) return;
        HERE(mma_m16n8k16<bfloat16>(D, A, 0, 0, D));
      });
  planted(
      rule::missing_lanes, +[](In, Out) {
        const sptr<half> s = dyn_smem<half>(0, 256, Use::tiles, "tile");
        for (int i = thread_id(); i < 256; i += 64) s[i] = half(1.f);
        block_barrier();
        if (thread_id() >= 60) return;
        uint32_t r[4];
        HERE(ldmatrix_x4_trans(r, s + thread_id() % 32 * 8));
      });
  const Finding f = planted(rule::missing_lanes,
                            +[](In, Out) {
                              float D[4] = {};
                              const uint32_t A[4] = {};
                              HERE(mma_m16n8k16<half>(D, A, 0, 0, D));
                            },
                            {1, 40, 0});
  CHECK(f.thread == Index3{32, 0, 0});
}

TEST_CASE("missing lanes: a shuffle from a lane that has exited, or does not exist") {
  planted(
      rule::missing_lanes, +[](In, Out out) {
        if (thread_id() == 31) return;
        out[thread_id()] = HERE(shuffle_xor(1.f, 1));
      });
  planted(rule::missing_lanes, +[](In, Out out) { out[thread_id()] = HERE(shuffle_xor(1.f, 16)); },
          {1, 24, 0});
  planted(
      rule::missing_lanes, +[](In, Out out) { out[thread_id()] = HERE(shuffle_xor(1.f, 32)); });
}

TEST_CASE("wrong mask: without the lane itself") {
  planted(
      rule::wrong_mask, +[](In, Out) { HERE(__any_sync(0x7fffffffu, true)); });
}

TEST_CASE("wrong mask: lanes that disagree") {
  planted(
      rule::wrong_mask, +[](In, Out) {
        const unsigned mask = thread_id() % 32 < 16 ? 0x0001ffffu : 0xffffffffu;
        HERE(__any_sync(mask, true));
      });
}

TEST_CASE("wrong mask: too narrow a mask inside an if") {
  planted(
      rule::wrong_mask, +[](In, Out) {
        if (thread_id() % 32 < 8) HERE(__syncwarp(0x0000000fu));
      });
}

TEST_CASE("collectives, legal: halves of a warp with their own masks, in different branches") {
  legal(+[](In, Out out) {
    float x = 0;
    if (thread_id() % 32 < 16)
      x = __shfl_xor_sync(0x0000ffffu, 1.f, 8);
    else
      x = __shfl_xor_sync(0xffff0000u, 2.f, 8);
    x += shuffle_xor(x, 16);
    if (x != 3.f) out[-1] = x;
  });
}

TEST_CASE("collectives, legal: warps differ, exited lanes need not vote or meet") {
  legal(
      +[](In, Out out) {
        if (thread_id() < 32) {
          for (int i = 0; i < 5; ++i) warp_barrier();
        } else if (warp_any(thread_id() == 40)) {
          if (thread_id() > 50) return;
          warp_barrier();
          out[thread_id()] = warp_any(true) ? 1.f : 0.f;
        }
      },
      {2, 64, 0});
}

TEST_CASE("collectives, legal: a warp barrier in each branch") {
  legal(+[](In, Out) {
    if (thread_id() % 2 == 0)
      warp_barrier();
    else
      warp_barrier();
  });
}

}  // namespace
}  // namespace fa2::tests

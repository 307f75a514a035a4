// cp.async and mbarriers, used too early, never waited for, or used as they should be.
#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

using In = gptr<const float>;
using Out = gptr<float>;

sptr<uint64_t> barriers(int count = 4) {
  return dyn_smem<uint64_t>(8192, count, Use::barriers, "mbarriers");
}

// ---- In flight ----------------------------------------------------------------------------------

TEST_CASE("in flight: the thread itself reads before its wait") {
  const Finding f = planted(
      rule::in_flight, +[](In in, Out out) {
        const sptr<float> s = floats();
        THERE(cp_async_16(s + 4 * thread_id(), in, true));
        cp_async_commit();
        const float x = HERE(s[4 * thread_id() + 1]);
        out[0] = x;
      });
  CHECK(f.fix.find("cp_async_wait") != std::string::npos);
}

TEST_CASE("in flight: one group too many may still be pending") {
  planted(
      rule::in_flight, +[](In in, Out out) {
        const sptr<float> s = floats();
        for (int group = 0; group < 2; ++group) {
          THERE(cp_async_16(s + 4 * thread_id() + 256 * group, in, true));
          cp_async_commit();
        }
        cp_async_wait<1>();
        out[0] = s[4 * thread_id()];  // the first group: it has landed
        const float x = HERE(s[4 * thread_id() + 256]);
        out[0] = x;
      });
}

TEST_CASE("in flight: a copy whose group was never committed") {
  planted(
      rule::in_flight, +[](In in, Out out) {
        const sptr<float> s = floats();
        THERE(cp_async_16(s + 4 * thread_id(), in, true));
        cp_async_wait<0>();
        const float x = HERE(s[4 * thread_id()]);
        out[0] = x;
      });
}

TEST_CASE("in flight: another thread reads behind a barrier, but the copier has not waited") {
  planted(
      rule::in_flight, +[](In in, Out) {
        const sptr<half> s = dyn_smem<half>(0, 512, Use::tiles, "tile");
        const gptr<const half> from(reinterpret_cast<const half*>(in.get()));
        THERE(cp_async_16(s + 8 * thread_id(), from, true));
        cp_async_commit();
        block_barrier();
        uint32_t r[4];
        HERE(ldmatrix_x4(r, s + (thread_id() ^ 32) * 8));
      });
}

TEST_CASE("in flight: the destination is overwritten, by a store and by a second copy") {
  planted(
      rule::in_flight, +[](In in, Out) {
        const sptr<float> s = floats();
        THERE(cp_async_16(s + 4 * thread_id(), in, true));
        HERE(s[4 * thread_id()] = 1.f);
      });
  planted(
      rule::in_flight, +[](In in, Out) {
        const sptr<float> s = floats();
        THERE(cp_async_16(s + 4 * thread_id(), in, true));
        cp_async_commit();
        HERE(cp_async_16(s + 4 * thread_id(), in, false));
      });
}

TEST_CASE("in flight: an mbarrier announces the copy, and nobody has waited for it") {
  // Not even the thread that copies may look before.
  const Finding f = planted(
      rule::in_flight, +[](In in, Out out) {
        const sptr<float> s = floats();
        if (thread_id() == 0) mbarrier_init(barriers(), 64);
        block_barrier();
        THERE(cp_async_16(s + 4 * thread_id(), in, true));
        cp_async_arrive(barriers());
        const float x = HERE(s[4 * thread_id()]);
        out[0] = x;
        mbarrier_wait(barriers(), 0);
      });
  CHECK(f.fix.find("mbarrier_wait") != std::string::npos);
}

TEST_CASE("never waited: committed, not committed, or the last of several") {
  const Finding f = planted(
      rule::never_waited, +[](In in, Out) {
        HERE(cp_async_16(floats() + 4 * thread_id(), in, true));
        cp_async_commit();
      });
  CHECK(f.fix.find("cp_async_wait<0>") != std::string::npos);
  const Finding g = planted(
      rule::never_waited, +[](In in, Out) {
        HERE(cp_async_16(floats() + 4 * thread_id(), in, true));
        cp_async_wait<0>();
      });
  CHECK(g.fix.find("cp_async_commit") != std::string::npos);
  planted(
      rule::never_waited, +[](In in, Out) {
        for (int i = 0; i < 3; ++i) {
          HERE(cp_async_16(floats() + 4 * thread_id() + 256 * i, in, i != 1));
          cp_async_commit();
        }
        cp_async_wait<1>();
      });
}

TEST_CASE("copies, legal: waited for group by group, with empty groups between") {
  legal(+[](In in, Out out) {
    const sptr<float> s = floats();
    const int t = 4 * thread_id();
    cp_async_16(s + t, in + t, true);
    cp_async_commit();
    cp_async_commit();
    cp_async_16(s + t + 256, in + t, true);
    cp_async_commit();
    cp_async_wait<2>();
    const float first = s[t + 1];
    cp_async_wait<0>();
    const float second = s[t + 257];
    if (first != second || first != static_cast<float>(t + 1)) out[-1] = first;
    block_barrier();
    out[thread_id()] = s[(t + 4) % 256];
  });
}

TEST_CASE("copies, legal: a double-buffered loop with block barriers") {
  legal(+[](In in, Out out) {
    const sptr<float> s = floats();
    const int t = 4 * thread_id();
    const auto load = [&](int round) {
      if (round < 6) cp_async_16(s + round % 2 * 256 + t, in + round * 256 + t, true);
      cp_async_commit();
    };
    load(0);
    for (int round = 0; round < 6; ++round) {
      load(round + 1);
      cp_async_wait<1>();
      block_barrier();
      const float x = s[round % 2 * 256 + 255 - t];
      if (x != static_cast<float>(round * 256 + 255 - t)) out[-1] = x;
      block_barrier();
    }
    cp_async_wait<0>();
  });
}

TEST_CASE("copies, legal: a ring of buffers ordered by mbarriers alone") {
  legal(
      +[](In in, Out out) {
        constexpr int depth = 2, rounds = 12;
        const sptr<float> s = floats();
        const sptr<uint64_t> full = barriers(), empty = full + depth;
        const int t = thread_id(), warps = static_cast<int>(blockDim.x) / 32;
        if (t == 0)
          for (int i = 0; i < depth; ++i)
            mbarrier_init(full + i, 128), mbarrier_init(empty + i, warps);
        block_barrier();
        const auto load = [&](int round) {
          if (round >= rounds) return;
          if (round >= depth) mbarrier_wait(empty + round % depth, (round / depth + 1) % 2);
          const int at = round % depth * 512 + 4 * t;
          cp_async_16(s + at, in + (round * 16 + 4 * t), true);
          cp_async_arrive(full + round % depth);
        };
        load(0);
        for (int round = 0; round < rounds; ++round) {
          load(round + 1);
          mbarrier_wait(full + round % depth, round / depth % 2);
          const float x = s[round % depth * 512 + 4 * (127 - t)];
          if (x != static_cast<float>(round * 16 + 4 * (127 - t))) out[-1] = x;
          warp_barrier();
          if (t % 32 == 0) mbarrier_arrive(empty + round % depth);
        }
      },
      {3, 128, 16384});
}

TEST_CASE("copies, legal: an mbarrier's copies may be waited for as groups, too") {
  legal(+[](In in, Out out) {
    const sptr<float> s = floats();
    if (thread_id() == 0) mbarrier_init(barriers(), 64);
    block_barrier();
    cp_async_16(s + 4 * thread_id(), in + 4 * thread_id(), true);
    cp_async_arrive(barriers());
    cp_async_commit();
    cp_async_wait<0>();
    out[thread_id()] = s[4 * thread_id()];
    block_barrier();
    out[thread_id()] = s[255 - 4 * thread_id()];
  });
}

// ---- mbarriers ----------------------------------------------------------------------------------

TEST_CASE("mbarrier: never initialized, initialized without a barrier, for 0 arrivals") {
  const Finding f = planted(
      rule::mbarrier, +[](In, Out) { HERE(mbarrier_arrive(barriers() + 1)); });
  CHECK(f.array == "mbarriers");
  CHECK(f.offset == 8);
  planted(
      rule::mbarrier, +[](In, Out) {
        const sptr<uint64_t> bar = barriers();
        if (thread_id() == 0) mbarrier_init(bar, 63);
        warp_barrier();  // enough for the first warp, not for the second
        if (thread_id() >= 32) HERE(mbarrier_arrive(bar));
        if (thread_id() < 32) mbarrier_wait(bar, 0);
      });
  planted(
      rule::mbarrier, +[](In, Out) {
        if (thread_id() == 0) HERE(mbarrier_init(barriers(), 0));
      });
}

TEST_CASE("mbarrier: too few arrivals are a deadlock, which is told") {
  const Finding f = planted(
      rule::deadlock, +[](In, Out) {
        if (thread_id() == 0) mbarrier_init(barriers(), 65);
        block_barrier();
        mbarrier_arrive(barriers());
        HERE(mbarrier_wait(barriers(), 0));
      });
  CHECK(std::string(f.what()).find("threads 0-63 wait in mbarrier_wait") != std::string::npos);
}

TEST_CASE("mbarrier, legal: phases alternate, a fresh one counts as if phase -1 had completed") {
  legal(+[](In, Out) {
    const sptr<uint64_t> bar = barriers();
    if (thread_id() == 0) mbarrier_init(bar, 64);
    block_barrier();
    mbarrier_wait(bar, 1);
    for (int phase = 0; phase < 7; ++phase) {
      mbarrier_arrive(bar);
      mbarrier_wait(bar, phase % 2);
    }
  });
}

}  // namespace
}  // namespace fa2::tests

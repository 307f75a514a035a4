// What an observer is told: every launch with its counters, and steps that add up to them.
#include "common/sim/observer.h"

#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

struct Notebook : sim::Observer {
  bool steps_wanted = true;
  std::vector<sim::WarpStep> steps;
  std::vector<sim::LaunchSummary> launches;

  bool wants_steps() const override { return steps_wanted; }
  void step(const sim::WarpStep& s) override { steps.push_back(s); }
  void launched(const sim::LaunchSummary& l) override { launches.push_back(l); }
};

/// Warp 0 alone writes statistics, all add; a copy is awaited at the second barrier.
void kernel(gptr<const float> in, gptr<float> out) {
  const sptr<float> s = floats();
  const int t = thread_id();
  reg<stat_tag> sum = 0.f;
  if (t < 32) s[t] = sum = fast_exp2(reg<stat_tag>(in[t]));
  block_barrier();
  sum += shuffle_xor(sum, 1);
  const sptr<half> tile = dyn_smem<half>(8192, 8 * 64, Use::tiles, "tile");
  cp_async_16(tile + 8 * t, gptr<const half>(reinterpret_cast<const half*>(in.get())) + 8 * t,
              true);
  cp_async_commit();
  cp_async_wait<0>();
  block_barrier();
  out[t] = float(sum) + float(s[t % 32]);
}

TEST_CASE("observer: steps of every order add up to the counters of the launch") {
  for (Config config : all_orders()) {
    if (config.os_threads != 1) continue;
    Notebook notes;
    config.observer = &notes;
    fa2_counters counters{};
    REQUIRE(!run(config, kernel, {}, &counters));
    fa2_counters sum{};
    for (const sim::WarpStep& s : notes.steps) {
#define FA2_ADD(name, meaning) sum.name += s.done.name;
      FA2_COUNTERS(FA2_ADD)
#undef FA2_ADD
      if (s.warp == 1) CHECK(s.done.exp2_stats == 0);  // warp 0's work is not put down to warp 1
    }
#define FA2_SAME(name, meaning) CHECK(sum.name == counters.name);
    FA2_COUNTERS(FA2_SAME)
#undef FA2_SAME
    REQUIRE(notes.launches.size() == 1);
    CHECK(notes.launches[0].counters.shuffles == counters.shuffles);
    CHECK(notes.launches[0].counters.blocks == 2);
    CHECK(notes.launches[0].block == Index3{64, 1, 1});
    // A warp: barrier, shuffle, barrier, exit.
    std::vector<std::string> operations;
    std::vector<bool> awaited;
    for (const sim::WarpStep& s : notes.steps)
      if (s.block == 1 && s.warp == 1) {
        operations.push_back(s.operation);
        awaited.push_back(s.awaited_copies);
      }
    CHECK(operations ==
          std::vector<std::string>{"block_barrier", "shuffle_xor", "block_barrier", "exit"});
    CHECK(awaited == std::vector<bool>{false, false, true, false});
  }
}

TEST_CASE("observer: nobody is told of steps who does not want them") {
  Notebook notes;
  notes.steps_wanted = false;
  Config config;
  config.observer = &notes;
  REQUIRE(!run(config, kernel));
  CHECK(notes.steps.empty());
  CHECK(notes.launches.size() == 1);
}

}  // namespace
}  // namespace fa2::tests

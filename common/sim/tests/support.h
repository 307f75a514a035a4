#pragma once
// Runs small kernels, legal ones and ones with a planted mistake, in every order of turns.
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "common/device/backend_sim.h"
#include "common/sim/sanitizers.h"
#include "common/sim/session.h"
#include "common/testing/catch.h"

namespace fa2::tests {

namespace rule = sim::rule;
using sim::Config;
using sim::Finding;
using sim::Index3;
using sim::Order;
using sim::Session;

// Marks the two lines of a planted mistake; __LINE__ is what the machine must report.
inline std::atomic<int> line_here{0}, line_there{0};
#define HERE(statement) (::fa2::tests::line_here = __LINE__, statement)
#define THERE(statement) (::fa2::tests::line_there = __LINE__, statement)

// Two arrays in global memory, known to the machine as "in" (read-only) and "out".
struct Memory {
  static constexpr int floats = 4096;
  std::vector<float> in = std::vector<float>(floats), out = std::vector<float>(floats);
  Memory() {
    for (int i = 0; i < floats; ++i) in[static_cast<size_t>(i)] = static_cast<float>(i);
  }
  void expose(Session& session) {
    session.expose("in", in.data(), floats * sizeof(float), false);
    session.expose("out", out.data(), floats * sizeof(float), true);
  }
};

struct Shape {
  dim3 grid = 2;
  dim3 block = 64;
  size_t shared_bytes = 16384;
};

using Kernel = void (*)(gptr<const float> in, gptr<float> out);

inline std::vector<Config> all_orders() {
  std::vector<Config> configs;
  for (int os_threads : {1, 2, 3})
    for (Order order : {Order::forward, Order::reverse, Order::random}) {
      Config config;
      config.os_threads = os_threads;
      config.order = order;
      config.seed = static_cast<uint64_t>(os_threads);
      configs.push_back(config);
    }
  return configs;
}

inline std::optional<Finding> run(Config config, Kernel kernel, Shape shape = {},
                                  fa2_counters* counters = nullptr) {
  // Blocks of these kernels store to the same elements, which ThreadSanitizer would report.
  if (FA2_FIBER_TSAN) config.os_threads = 1;
  Memory memory;
  Session session(config);
  memory.expose(session);
  try {
    launch(kernel, shape.grid, shape.block, shape.shared_bytes, nullptr, memory.in.data(),
           memory.out.data());
  } catch (const Finding& finding) {
    return finding;
  }
  if (counters != nullptr) *counters = session.counters();
  return std::nullopt;
}

/// A kernel without a mistake: nothing may be reported, in any order.
inline void legal(Kernel kernel, Shape shape = {}) {
  for (const Config& config : all_orders()) {
    const auto finding = run(config, kernel, shape);
    INFO((finding ? finding->what() : ""));
    REQUIRE(!finding);
  }
}

/// A kernel with a mistake: caught by its rule in every order, and at the marked lines. Returns
/// what was found with all turns in forward order.
inline Finding planted(const char* rule, Kernel kernel, Shape shape = {}) {
  std::optional<Finding> first;
  for (const Config& config : all_orders()) {
    line_here = line_there = 0;
    const auto finding = run(config, kernel, shape);
    REQUIRE(finding);
    INFO(finding->what());
    REQUIRE(finding->rule == rule);
    CHECK(std::string(finding->what()).rfind(rule, 0) == 0);
    CHECK(!finding->summary.empty());
    CHECK(!finding->fix.empty());
    CHECK(!finding->kernel.empty());
    // Which of two racing threads comes first depends on the order of turns.
    const int here = line_here, there = line_there;
    if (there != 0) {
      const bool as_marked = finding->line == here && finding->other_line == there;
      const bool swapped = finding->line == there && finding->other_line == here;
      CHECK((as_marked || swapped));
    } else if (here != 0) {
      CHECK(finding->line == here);
    }
    if (!first) first = finding;
  }
  return *first;
}

/// The counters of one legal kernel, which must be the same in every order.
inline fa2_counters counted(Kernel kernel, Shape shape = {}) {
  std::optional<fa2_counters> first;
  for (const Config& config : all_orders()) {
    fa2_counters counters{};
    const auto finding = run(config, kernel, shape, &counters);
    INFO((finding ? finding->what() : ""));
    REQUIRE(!finding);
    if (!first) first = counters;
#define FA2_SAME(name, meaning) CHECK(counters.name == first->name);
    FA2_COUNTERS(FA2_SAME)
#undef FA2_SAME
  }
  return *first;
}

inline int thread_id() { return static_cast<int>(threadIdx.x); }
/// An array in shared memory, unwritten.
inline sptr<float> floats(int count = 1024) {
  return dyn_smem<float>(0, count, Use::statistics, "s_smem");
}

/// The same, all of it written and behind a barrier.
inline sptr<float> written_floats() {
  const sptr<float> s = floats();
  for (int i = thread_id(); i < 1024; i += static_cast<int>(blockDim.x)) s[i] = 0.f;
  block_barrier();
  return s;
}

}  // namespace fa2::tests

// Kernels that never end, or that would end the process.
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "common/sim/sanitizers.h"
#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

using In = gptr<const float>;
using Out = gptr<float>;

// Each test runs once: waiting for nothing takes its time. The limit is on CPU time, which another
// program beside it does not lengthen.
Finding caught(Kernel kernel, Config config = {}, Shape shape = {}) {
  const std::clock_t begin = std::clock();
  const auto finding = run(config, kernel, shape);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  REQUIRE(finding);
  INFO(finding->what());
  CHECK((FA2_FIBER_TSAN || seconds < 60));
  return *finding;
}

Config impatient() {
  Config config;
  config.step_limit = 200'000;
  config.stall_seconds = 0.2;
  return config;
}

volatile int never = 0;

TEST_CASE("endless: a loop of barriers") {
  const Finding f = caught(
      +[](In, Out) {
        while (never == 0) HERE(block_barrier());
      },
      impatient());
  CHECK(f.rule == rule::endless);
  CHECK(f.line == line_here);
}

TEST_CASE("endless: a thread that polls shared memory for what no one will write") {
  const Finding f = caught(
      +[](In, Out) {
        const sptr<float> s = floats();
        s[thread_id()] = 0.f;
        while (HERE(s[thread_id()]) == 0.f) {
        }
      },
      impatient());
  CHECK(f.rule == rule::endless);
  CHECK(f.line == line_here);
}

TEST_CASE("endless: a tile loop whose index does not move, with the default limit") {
  const Finding f = caught(+[](In in, Out out) {
    float sum = 0;
    for (int j = 0; j < 4 + never; j += never) sum += in[j];
    out[0] = sum;
  });
  CHECK(f.rule == rule::endless);
}

TEST_CASE("not endless: many steps in many blocks, and a block just below its limit") {
  Config config = impatient();
  config.step_limit = 64 * 101;
  const auto finding = run(config,
                           +[](In, Out out) {
                             for (int i = 0; i < 100; ++i) out[thread_id()] = 1.f;
                           },
                           {300, 64, 0});
  CHECK(!finding);
}

#if !FA2_FIBER_TSAN  // which delays signals until the next call of a library

TEST_CASE("endless: a loop without any primitive") {
  for (int os_threads : {1, 2}) {
    Config config = impatient();
    config.os_threads = os_threads;
    const Finding f = caught(
        +[](In, Out out) {
          HERE(out[thread_id()] = 1.f);
          if (thread_id() == 33)
            while (never == 0) {
            }
        },
        config);
    CHECK(f.rule == rule::endless);
    CHECK(f.block == Index3{0, 0, 0});
    CHECK(f.thread == Index3{33, 0, 0});
    CHECK(f.line == line_here);
  }
}

TEST_CASE("endless: a loop inside of a library's function") {
  const Finding f = caught(
      +[](In, Out) {
        volatile double x = 1;
        while (never == 0) x = std::sin(x);
      },
      impatient());
  CHECK(f.rule == rule::endless);
}

TEST_CASE("not endless: a thread that computes for less than the limit") {
  Config config = impatient();
  config.stall_seconds = 5;
  const auto finding = run(
      config, +[](In, Out out) {
        volatile float x = 0;
        for (int i = 0; i < 100000; ++i) x = x + 1.f;
        out[thread_id()] = x;
      });
  CHECK(!finding);
}

#if defined(__x86_64__) || defined(__aarch64__)

int deeper(int n) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(n);
  return never == n ? 0 : deeper(n + 1) + frame[0];
}

TEST_CASE("crash: endless recursion") {
  const Finding f = caught(+[](In, Out out) {
    HERE(out[thread_id()] = 1.f);
    if (thread_id() == 9) out[thread_id()] = static_cast<float>(deeper(1));
  });
  CHECK(f.rule == rule::crash);
  CHECK(f.thread == Index3{9, 0, 0});
  CHECK(f.line == line_here);
  CHECK(f.summary.find("stack") != std::string::npos);
}

TEST_CASE("crash: a wild plain pointer") {
  const Finding f = caught(+[](In, Out) {
    volatile int* wild =
        reinterpret_cast<volatile int*>(uintptr_t{0x1000} + static_cast<uintptr_t>(never));
    *wild = 1;
  });
  CHECK(f.rule == rule::crash);
}

#if defined(__x86_64__)  // elsewhere a division by zero does not trap
__attribute__((no_sanitize("undefined"))) int divide(int a, int b) { return a / b; }

TEST_CASE("crash: an integer division by zero") {
  const Finding f =
      caught(+[](In, Out out) { out[thread_id()] = static_cast<float>(divide(7, never)); });
  CHECK(f.rule == rule::crash);
  CHECK(f.summary.find("zero") != std::string::npos);
}
#endif

TEST_CASE("after a crash the machine still works, and so do others' signal handlers") {
  struct sigaction before {};
  sigaction(SIGFPE, nullptr, &before);
  Memory memory;
  Session session;
  memory.expose(session);
  const auto go = [&](Kernel kernel) {
    launch(kernel, 4, 64, 4096, nullptr, memory.in.data(), memory.out.data());
  };
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(go(+[](In, Out out) { out[thread_id()] = static_cast<float>(deeper(1)); }),
                    Finding);
    CHECK_THROWS_AS(go(+[](In, Out out) { out[-1] = 1.f; }), Finding);
    CHECK_NOTHROW(go(+[](In, Out out) {
      const sptr<float> s = floats();
      s[thread_id()] = 5.f;
      block_barrier();
      out[thread_id()] = s[63 - thread_id()];
    }));
    CHECK(memory.out[17] == 5.f);
  }
  struct sigaction after {};
  sigaction(SIGFPE, nullptr, &after);
  CHECK(after.sa_sigaction == before.sa_sigaction);
}

#endif
#endif

TEST_CASE("crash: a kernel that throws") {
  const Finding f = caught(+[](In, Out) {
    if (thread_id() == 3) throw std::runtime_error("no such thing");
  });
  CHECK(f.rule == rule::crash);
  CHECK(f.thread == Index3{3, 0, 0});
  CHECK(f.summary.find("no such thing") != std::string::npos);
}

}  // namespace
}  // namespace fa2::tests

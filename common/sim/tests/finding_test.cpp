// How a finding reads.
#include "common/sim/tests/support.h"

namespace fa2::tests {
namespace {

TEST_CASE("a race is told with rule, kernel, block, both threads and lines, array and fix") {
  Config config;
  config.os_threads = 1;
  const auto finding = run(
      config, +[](gptr<const float>, gptr<float> out) {
        const sptr<float> s = written_floats();
        THERE(s[thread_id()] = 1.f);
        out[thread_id()] = HERE(s[thread_id() ^ 40]);
      });
  REQUIRE(finding);
  const std::string text = finding->what();
  INFO(text);
  const auto line = [](int n) { return "finding_test.cpp:" + std::to_string(n) + "\n"; };
  CHECK(text.find("shared-memory race: ") == 0);
  CHECK(text.find("\n  kernel  ") != std::string::npos);
  CHECK(text.find(", block (0, 0, 0)\n") != std::string::npos);
  CHECK(text.find("\n  here    thread (") != std::string::npos);
  CHECK(text.find("4 bytes of s_smem[") != std::string::npos);
  CHECK(text.find(line(line_here)) != std::string::npos);
  CHECK(text.find("\n  there   thread (") != std::string::npos);
  CHECK(text.find(line(line_there)) != std::string::npos);
  CHECK(text.find("\n  fix     put block_barrier()") != std::string::npos);
}

TEST_CASE("a report's optional parts are left out") {
  const Finding finding(sim::Report{.rule = "rule", .summary = "summary"});
  CHECK(std::string(finding.what()) == "rule: summary");
}

}  // namespace
}  // namespace fa2::tests

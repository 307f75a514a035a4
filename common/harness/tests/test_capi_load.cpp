// The C interface under load: threads that call different stages at once, and what many calls leave
// behind.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/harness/buffers.h"
#include "common/harness/call.h"
#include "common/harness/fa2.h"
#include "common/harness/failure.h"
#include "common/sim/sanitizers.h"
#include "common/testing/catch.h"

using namespace fa2;

namespace {

/// The machines here: the simulator, and a GPU if there is one.
std::vector<std::shared_ptr<Device>> devices() {
  std::vector<std::shared_ptr<Device>> found;
  for (const Backend backend : {Backend::sim, Backend::cuda}) {
    try {
      DeviceOptions options;
      options.backend = backend;
      found.push_back(make_device(options));
    } catch (const Failure& failure) {
      if (backend == Backend::sim || failure.status != FA2_CANNOT_RUN_HERE) throw;
    }
  }
  return found;
}

/// One stage's call with memory of its own, made as a C program makes it.
class Caller {
 public:
  Caller(Device& device, const Stage& stage, const Variant& variant, const Spec& spec)
      : workload_(spec), problem_(to_problem(spec)) {
    fa2_options_init(&options_);
    options_.stage = stage.name;
    options_.variant = variant.name;
    options_.backend = static_cast<int32_t>(device.info().backend);
    options_.os_threads = 1;
    workspace_bytes_ = plan_call(&problem_, &options_).workspace_bytes;
    buffers_ = std::make_unique<Buffers>(device, workload_, workspace_bytes_);
    buffers_->poison_outputs();
  }

  fa2_status run() {
    const Tensors x = buffers_->tensors();
    return fa2_forward(&problem_, &options_, x.Q, x.K, x.V, x.O, x.LSE, x.workspace,
                       workspace_bytes_, nullptr, &counters_);
  }

  Outputs outputs() { return buffers_->download(); }
  const fa2_counters& counters() const { return counters_; }
  const char* stage() const { return options_.stage; }

 private:
  Workload workload_;
  fa2_problem problem_;
  fa2_options options_{};
  size_t workspace_bytes_ = 0;
  std::unique_ptr<Buffers> buffers_;
  fa2_counters counters_{};
};

/// A caller for every stage and variant of the machine, each with a problem of its own.
std::vector<std::unique_ptr<Caller>> callers(Device& device, const char* problem) {
  std::vector<std::unique_ptr<Caller>> all;
  for (const Stage* stage : stages(device.info().backend))
    for (const Variant& variant : stage->variants) {
      Spec spec = parse_spec(problem);
      spec.seed = 1 + all.size();
      all.push_back(std::make_unique<Caller>(device, *stage, variant, spec));
    }
  return all;
}

bool same(const Outputs& a, const Outputs& b) {
  return std::ranges::equal(a.O.raw(), b.O.raw()) && a.damage.empty() && b.damage.empty() &&
         std::memcmp(a.LSE.data(), b.LSE.data(), a.LSE.size() * sizeof(float)) == 0;
}

size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

/// Bytes of this process in memory.
size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096;
}

void call_all_stages(Device& device, int count) {
  auto all = callers(device, "q=3 k=5");
  for (int n = 0; n < count; ++n) REQUIRE(all[n % all.size()]->run() == FA2_OK);
  for (const auto& caller : all) (void)caller->outputs();
}

/// What the GPU has free, as the sentence about too large a request says it.
std::string free_memory(Device& device) {
  try {
    device.release(device.allocate(size_t{1} << 50));
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "it has a pebibyte";
}

}  // namespace

TEST_CASE("C: threads that call different stages at once get what they get alone", "[harness]") {
  for (const auto& device : devices()) {
    INFO(device->info().name);
    const char* problem = "causal b=1 h=2/1 q=70 k=150";
    auto alone = callers(*device, problem), together = callers(*device, problem);
    for (const auto& caller : alone) REQUIRE(caller->run() == FA2_OK);
    std::vector<std::thread> threads;
    std::vector<fa2_status> statuses(together.size());
    for (size_t i = 0; i < together.size(); ++i)
      threads.emplace_back([&, i] {
        for (int n = 0; n < 3 && statuses[i] == FA2_OK; ++n) statuses[i] = together[i]->run();
      });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < together.size(); ++i) {
      INFO(together[i]->stage());
      CHECK(statuses[i] == FA2_OK);
      CHECK(same(alone[i]->outputs(), together[i]->outputs()));
      CHECK(std::memcmp(&alone[i]->counters(), &together[i]->counters(), sizeof(fa2_counters)) ==
            0);
    }
  }
}

TEST_CASE("C: a thousand calls leave nothing behind", "[harness]") {
  for (const auto& device : devices()) {
    INFO(device->info().name);
    call_all_stages(*device, 100);  // what is kept for good is there by then
    const size_t files = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
    const size_t memory = resident_bytes();
    call_all_stages(*device, 1000);
    CHECK(entries_of("/proc/self/fd") == files);
    CHECK(entries_of("/proc/self/task") == threads);
    // A sanitizer keeps freed memory for a while; it looks for leaks itself, at the end.
    if (!FA2_FIBER_ASAN && !FA2_FIBER_TSAN) CHECK(resident_bytes() < memory + (8u << 20));
  }
}

// Hidden, and a ctest test of its own that runs alone: others would use the GPU's memory as well.
TEST_CASE("a thousand calls give all memory of the GPU back", "[.][gpu-memory]") {
  for (const auto& device : devices()) {
    if (device->info().backend == Backend::sim) continue;
    call_all_stages(*device, 100);
    const std::string before = free_memory(*device);
    call_all_stages(*device, 1000);
    CHECK(free_memory(*device) == before);
  }
}

TEST_CASE("C: another version of the interface is refused, by every function", "[harness]") {
  fa2_problem problem;
  fa2_options options;
  fa2_problem_init(&problem);
  fa2_options_init(&options);
  options.stage = "2";
  problem.batch = problem.heads_q = problem.heads_kv = 1;
  problem.head_dim = 64;
  size_t bytes = 0;
  fa2_tile tile;
  const auto refused = [&] {
    return fa2_workspace_bytes(&problem, &options, &bytes) == FA2_INVALID_ARGUMENT &&
           fa2_tile_info(&problem, &options, &tile) == FA2_INVALID_ARGUMENT &&
           fa2_forward(&problem, &options, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0,
                       nullptr, nullptr) == FA2_INVALID_ARGUMENT;
  };
  REQUIRE(fa2_workspace_bytes(&problem, &options, &bytes) == FA2_OK);
  for (uint32_t* field :
       {&problem.abi_version, &problem.struct_size, &options.abi_version, &options.struct_size}) {
    ++*field;
    CHECK(refused());
    CHECK(std::string(fa2_last_error()).find("fa2.h of this library") != std::string::npos);
    --*field;
  }
}

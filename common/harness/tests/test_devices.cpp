// The machines: what they are, and what they say when they cannot.
#include <cstring>
#include <vector>

#include "common/harness/buffers.h"
#include "common/harness/call.h"
#include "common/harness/environment.h"
#include "common/harness/failure.h"
#include "common/harness/run.h"
#include "common/testing/catch.h"

using namespace fa2;

using Catch::Matchers::StartsWith;

namespace {

const DeviceOptions on_cuda = {.backend = Backend::cuda};

/// The GPU, or null with the reason as a warning.
std::unique_ptr<Device> gpu_if_any() {
  try {
    return make_device(on_cuda);
  } catch (const Failure& failure) {
    CHECK(failure.status == FA2_CANNOT_RUN_HERE);
    CHECK(std::string(failure.what()).ends_with("."));
    WARN("no GPU here: " << failure.what());
    return nullptr;
  }
}

void check_memory(Device& device) {
  std::vector<char> sent(1000), received(1000);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i);
  const DeviceMemory memory(device, 1000);
  CHECK(reinterpret_cast<uintptr_t>(memory.at(0)) % 256 == 0);
  device.upload(memory.at(0), sent.data(), 1000);
  device.fill(memory.at(10), 0x55, 5);
  std::memset(sent.data() + 10, 0x55, 5);
  device.download(received.data(), memory.at(0), 1000);
  CHECK(sent == received);
}

}  // namespace

TEST_CASE("the simulator is whatever GPU one asks for", "[harness]") {
  const auto device = make_device({.gpu = "a100"});
  CHECK(device->info().compute_capability == 80);
  CHECK(device->info().limits.sms == 108);
  CHECK(device->info().limits.shared_per_block == 163 * 1024);
  CHECK_THROWS_WITH(make_device({.gpu = "gtx"}),
                    StartsWith("gpu is \"gtx\"; the simulator knows h200, "));
  check_memory(*device);
}

TEST_CASE("the simulator tells no time", "[harness]") {
  const auto device = make_device({});
  CHECK_THROWS_WITH(device->time({}, {}),
                    "the simulator counts; its seconds say nothing about a GPU's.");
}

TEST_CASE("a GPU works or says in one sentence why not", "[harness]") {
  const auto device = gpu_if_any();
  if (!device) return;
  CHECK(device->info().compute_capability >= 80);
  CHECK(device->info().L2_bytes > 0);
  check_memory(*device);
  CHECK_THROWS_WITH(device->allocate(size_t{1} << 45),
                    StartsWith("out of GPU memory: 35,184,372,088,832 bytes"));
  check_memory(*device);  // running out of memory harms nothing
}

TEST_CASE("a GPU is timed by its own clock", "[harness]") {
  const auto device = gpu_if_any();
  if (!device) return;
  const Stage& stage = find_stage(Backend::cuda, "stage2_fa1");
  const Workload workload(parse_spec("b=2 h=8 q=256 k=256"), 1e6);
  const Timing timing = run_timed(*device, stage, stage.variants.front(), TileMode::same, workload);
  CHECK(timing.runs >= 20);
  CHECK(timing.fastest_ms > 0);
  CHECK(timing.fastest_ms <= timing.median_ms);
  CHECK(timing.median_ms <= timing.slowest_ms);
  CHECK(timing.slowest_ms < 100);
}

TEST_CASE("host memory is refused on a GPU before anything is launched", "[harness]") {
  const auto device = gpu_if_any();
  if (!device) return;
  const Workload workload(parse_spec("q=8 k=8"));
  const fa2_problem problem = to_problem(workload.spec());
  fa2_options options;
  fa2_options_init(&options);
  options.stage = "stage2_fa1";
  options.backend = FA2_BACKEND_CUDA;
  alignas(16) static uint16_t O[8 * 64];
  alignas(16) static float lse[8];
  const InputTensors& x = workload.inputs();
  const fa2_status status = fa2_forward(&problem, &options, x.Q.data(), x.K.data(), x.V.data(), O,
                                        lse, nullptr, 0, nullptr, nullptr);
  if (status == FA2_OK) return;  // a machine whose GPU reads host memory
  CHECK(std::string(fa2_last_error()) ==
        "q is not memory of a GPU; the CUDA backend needs device memory.");
}

// Hidden, and a ctest test of its own: it leaves the GPU unusable for its process.
TEST_CASE("a kernel that faults is reported, and so is what comes after", "[.][gpu-fault]") {
  const auto device = gpu_if_any();
  if (!device) return;
  const Stage& stage = find_stage(Backend::cuda, "stage2_fa1");
  const Workload workload(parse_spec("q=8 k=8"));
  Call call = plan_call(stage, stage.variants.front(), TileMode::same, workload.problem(),
                        device->info().limits);
  Buffers buffers(*device, workload, call.workspace_bytes);
  call.tensors = buffers.tensors();
  call.tensors.O = reinterpret_cast<void*>(16);  // no memory of anyone
  CHECK_THROWS_WITH(device->run(call, nullptr), StartsWith("stage2_fa1: the kernel failed: "));
  const char* later = "not run: the GPU is unusable for this process since stage2_fa1: the kernel";
  CHECK_THROWS_WITH(device->run(call, nullptr), StartsWith(later));
  CHECK_THROWS_WITH(device->allocate(8), StartsWith(later));
  CHECK_THROWS_WITH(make_device(on_cuda), StartsWith(later));
}

TEST_CASE("checks use the least alignment, timings that of an allocator", "[harness]") {
  const auto device = make_device({});
  const Workload workload(parse_spec("q=8 k=8"));
  const auto place_of = [&](const Buffers& buffers) {
    const Tensors x = buffers.tensors();
    std::vector<uintptr_t> rests;
    for (const void* pointer : {x.Q, x.K, x.V, static_cast<const void*>(x.O)})
      rests.push_back(reinterpret_cast<uintptr_t>(pointer) % 256);
    return rests;
  };
  for (const uintptr_t rest : place_of(Buffers(*device, workload, 0))) CHECK(rest % 32 == 16);
  for (const uintptr_t rest : place_of(Buffers(*device, workload, 0, Placement::aligned)))
    CHECK(rest == 0);
}

TEST_CASE("the environment says where a number comes from", "[harness]") {
  const auto device = make_device({});
  const Environment here = environment_of(*device);
  CHECK(here.gpu.starts_with("simulated "));
  CHECK(here.compute_capability == "9.0");
  CHECK(here.driver == "");
  CHECK(here.compiler != "");
}

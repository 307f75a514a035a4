// The simulator as a Device: host memory is device memory.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/harness/device.h"
#include "common/harness/failure.h"
#include "common/harness/shape.h"
#include "common/harness/text.h"
#include "common/sim/session.h"

namespace fa2 {
namespace {

const sim::GpuModel& find_model(const std::string& key) {
  if (key.empty()) return sim::gpu_models().front();
  if (const sim::GpuModel* model = sim::find_gpu(key)) return *model;
  invalid("gpu is \"" + key + "\"; the simulator knows " + sim::gpu_keys() + ".");
}

sim::Config config_for(const DeviceOptions& options, const Problem& p) {
  sim::Config config;
  config.gpu = &find_model(options.gpu);
  config.os_threads = options.os_threads;
  config.order = static_cast<sim::Order>(options.order);
  config.seed = options.seed;
  config.observer = options.observer;
  config.max_grid_y = options.max_grid_y;
  // A block may own all rows of a head; the margin is wide, since the limit only ends endless
  // loops.
  const uint64_t pairs = (static_cast<uint64_t>(p.Nq) + 64) * (static_cast<uint64_t>(p.Nk) + 128);
  config.step_limit = std::max(config.step_limit, 64 * pairs);
  return config;
}

/// Memory that kernels may touch.
struct Array {
  std::string name;
  const char *begin, *end;
  bool writable;
};

Array array_of(const char* name, const void* base, int64_t bytes, bool writable) {
  const char* begin = static_cast<const char*>(base);
  return {name, begin, begin + bytes, writable};
}

/// The arrays of a call: from the first element of each to the last that its strides reach.
std::vector<Array> arrays_of(const Call& call) {
  const Problem& p = call.problem;
  const Tensors& x = call.tensors;
  return {array_of("Q", x.Q, 2 * extent(shape_q(p), p.Q), false),
          array_of("K", x.K, 2 * extent(shape_kv(p), p.K), false),
          array_of("V", x.V, 2 * extent(shape_kv(p), p.V), false),
          array_of("O", x.O, 2 * extent(shape_q(p), p.O), true),
          array_of("LSE", x.LSE, 4 * output_rows(p), true),
          array_of("workspace", x.workspace, static_cast<int64_t>(call.workspace_bytes), true)};
}

/// Tensors that are slices of one buffer, as of a QKV projection, become one array, "Q/K/V".
std::vector<Array> merge_overlapping(std::vector<Array> arrays) {
  std::erase_if(arrays, [](const Array& a) { return a.begin == a.end; });
  std::ranges::stable_sort(arrays, {}, &Array::begin);
  std::vector<Array> merged;
  for (const Array& next : arrays) {
    if (merged.empty() || next.begin >= merged.back().end) {
      merged.push_back(next);
      continue;
    }
    Array& last = merged.back();
    last.name += "/" + next.name;
    last.end = std::max(last.end, next.end);
    last.writable |= next.writable;
  }
  return merged;
}

class SimDevice : public Device {
 public:
  explicit SimDevice(const DeviceOptions& options) : options_(options), info_(sim_info(options)) {}

  const DeviceInfo& info() const override { return info_; }

  void* allocate(size_t bytes) override {
    const size_t rounded = (std::max<size_t>(bytes, 1) + 255) / 256 * 256;
    void* memory = std::aligned_alloc(256, rounded);
    if (memory == nullptr)
      throw Failure(FA2_INTERNAL_ERROR,
                    "out of host memory: " + with_commas(bytes) + " bytes are not to be had.");
    return memory;
  }
  void release(void* memory) noexcept override { std::free(memory); }
  void upload(void* to, const void* from, size_t bytes) override { copy(to, from, bytes); }
  void download(void* to, const void* from, size_t bytes) override { copy(to, from, bytes); }

  void fill(void* to, unsigned char byte, size_t bytes) override { std::memset(to, byte, bytes); }

  void run(const Call& call, fa2_counters* counters) override {
    sim_launch(options_, call, counters);
  }

  Timing time(std::span<const Call>, const TimingOptions&) override {
    throw Failure(FA2_UNSUPPORTED, "the simulator counts; its seconds say nothing about a GPU's.");
  }

 private:
  static void copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }

  DeviceOptions options_;
  DeviceInfo info_;
};

}  // namespace

DeviceInfo sim_info(const DeviceOptions& options) {
  const sim::GpuModel& model = find_model(options.gpu);
  DeviceInfo info;
  info.backend = Backend::sim;
  info.name = std::string("simulated ") + model.name;
  info.compute_capability = model.cc;
  info.limits = {model.shared_per_block, model.sms};
  return info;
}

void sim_launch(const DeviceOptions& options, const Call& call, fa2_counters* counters) {
  if (counters != nullptr) *counters = {};
  const Problem& p = call.problem;
  if (!has_output(p)) return;
  sim::Session session(config_for(options, p));
  for (const Array& array : merge_overlapping(arrays_of(call)))
    session.expose(array.name, array.begin, static_cast<size_t>(array.end - array.begin),
                   array.writable);
  call.variant->forward(p, call.tensors, call.tile_row, nullptr);
  if (counters != nullptr) *counters = session.counters();
}

std::unique_ptr<Device> make_sim_device(const DeviceOptions& options) {
  return std::make_unique<SimDevice>(options);
}

}  // namespace fa2

#include "common/cli/compare/machine.h"

#include <algorithm>
#include <ctime>
#include <list>
#include <thread>

#include "common/cli/check/plugin.h"
#include "common/cli/compare/peaks.h"
#include "common/harness/environment.h"
#include "common/harness/failure.h"

namespace fa2::compare {
namespace {

DeviceOptions device_options(const Options& o, Backend backend) {
  DeviceOptions d;
  d.backend = backend;
  d.gpu = o.gpu;
  d.os_threads = o.threads;
  return d;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::tm utc{};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  return text;
}

/// A compiled kernel of the user as a variant beside its stage: "stage4_fa2_warps/mine".
const Stage* own_stage(Backend backend, int number, const std::string& library) {
  struct Own {
    std::string name;
    Stage stage;
  };
  static std::list<Own> all;  // entries point to them
  Own& own = all.emplace_back();
  own.name = find_stage(backend, std::to_string(number)).name + std::string("/mine");
  own.stage = {own.name.c_str(), number, load_plugin(library).variants};
  return &own.stage;
}

}  // namespace

Machine choose_machine(const Options& o) {
  if (o.backend == "cuda" && !o.gpu.empty()) {
    throw Error("--gpu " + o.gpu +
                " is for the simulator; with --backend cuda the GPU is what it is.");
  }
  if (o.backend == "cuda") return {make_device(device_options(o, Backend::cuda)), ""};
  if (o.backend == "sim" || !o.gpu.empty()) {
    return {make_device(device_options(o, Backend::sim)), ""};
  }
  std::string why = "this program was built for the simulator only.";
  if (!stages(Backend::cuda).empty()) {
    try {
      return {make_device(device_options(o, Backend::cuda)), ""};
    } catch (const Failure& failure) {
      why = failure.what();
    }
  }
  return {make_device(device_options(o, Backend::sim)), "No GPU is used: " + why};
}

const sim::GpuModel& model_of(const std::string& key) {
  if (key.empty()) return sim::gpu_models().front();
  if (const sim::GpuModel* model = sim::find_gpu(key)) return *model;
  throw Error("--gpu is \"" + key + "\"; the simulator knows " + sim::gpu_keys() + ".");
}

const char* backend_name(const Device& device) { return name_of(device.info().backend); }

Environment environment_of_run(const Device& device, const Options& o) {
  const fa2::Environment known = fa2::environment_of(device);
  const bool gpu = device.info().backend == Backend::cuda;
  Environment e;
  e.cpu = known.cpu;
  e.gpu = known.gpu;
  e.sms = device.info().limits.sms;
  e.compute_capability = known.compute_capability;
  e.driver = known.driver;
  e.cuda = known.cuda;
  e.compiler = known.compiler;
  e.commit = known.commit;
  e.date = today();
  if (gpu) {
    e.peak_tflops = datasheet_tflops(e.gpu);
    e.mma_tflops = cuda_mma_tflops();
  } else {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    e.threads = o.threads > 0 ? o.threads : cores;
  }
  return e;
}

double waves_of(uint64_t blocks, const TileUsed& tile, const std::string& gpu_key) {
  constexpr uint64_t of_the_system = 1024;  // bytes of shared memory that every block costs besides
  const sim::GpuModel& gpu = model_of(gpu_key);
  const auto by_shared = static_cast<int>(static_cast<uint64_t>(gpu.shared_per_sm) /
                                          (tile.smem_bytes + of_the_system));
  const int by_threads = gpu.max_threads_per_sm / std::max(1, 32 * tile.warps);
  const int per_sm = std::max(1, std::min({by_shared, by_threads, gpu.max_blocks_per_sm}));
  return static_cast<double>(blocks) / (static_cast<double>(per_sm) * gpu.sms);
}

std::vector<Entry> entries_of(const Options& o, Backend backend) {
  std::vector<Entry> entries;
  std::vector<int> missing = o.stages;
  const auto asked_for = [&](int number) {
    return o.stages.empty() || std::ranges::find(o.stages, number) != o.stages.end();
  };
  for (const Stage* stage : stages(backend)) {
    if (!asked_for(stage->number)) continue;
    std::erase(missing, stage->number);
    const bool beside_a_stage = std::string_view(stage->name).find('/') != std::string_view::npos;
    if (beside_a_stage && !o.variants) continue;
    for (const Variant& variant : stage->variants) entries.push_back({stage, &variant});
  }
  for (const auto& [number, library] : o.mine) {
    if (!asked_for(number)) continue;
    const Stage* own = own_stage(backend, number, library);
    const auto behind = std::ranges::find_if(
        entries, [&](const Entry& e) { return e.stage->number > own->number; });
    std::vector<Entry> rows;
    for (const Variant& variant : own->variants) rows.push_back({own, &variant});
    entries.insert(behind, rows.begin(), rows.end());
  }
  if (!missing.empty()) {
    throw Error("--stages has " + std::to_string(missing[0]) + ", which is not built in yet.");
  }
  return entries;
}

}  // namespace fa2::compare

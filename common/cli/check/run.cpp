// The part of fa2-check that runs the kernel: everything it says goes into files.
#include <filesystem>
#include <fstream>

#include "common/cli/check/cases.h"
#include "common/cli/check/plugin.h"
#include "common/harness/call.h"
#include "common/harness/failure.h"
#include "common/harness/run.h"
#include "common/sim/finding.h"
#include "common/sim/observer.h"

namespace fa2::check {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json counters_json(const fa2_counters& n) {
  Json json;
#define FA2_FIELD(name, meaning) json[#name] = n.name;
  FA2_COUNTERS(FA2_FIELD)
#undef FA2_FIELD
  return json;
}

Json finding_json(const sim::Finding& f) {
  Json json = {{"status", "finding"},  {"message", f.what()}, {"rule", f.rule},
               {"summary", f.summary}, {"file", f.file},      {"line", f.line},
               {"array", f.array},     {"fix", f.fix},        {"has_thread", f.has_thread},
               {"block", f.block},     {"thread", f.thread}};
  if (f.has_other) json["other_file"] = f.other_file, json["other_line"] = f.other_line;
  return json;
}

Json timing_json(const Timing& t, double flop) {
  return {{"median_ms", t.median_ms},
          {"fastest_ms", t.fastest_ms},
          {"slowest_ms", t.slowest_ms},
          {"tflops", flop / t.median_ms / 1e9}};
}

Json run_case(Device& device, const Stage& stage, const Case& c, size_t index,
              const std::string& folder) {
  const Workload workload(c.spec);
  const Variant& variant = find_variant(stage, c.variant);
  fa2_counters counters{};
  const Outputs outputs = run_once(device, stage, variant, c.tile_row, workload, &counters);
  write_outputs(folder, index, outputs);
  Json json = {{"status", "ran"},
               {"damage", outputs.damage},
               {"workspace_bytes", variant.workspace_bytes(workload.problem())}};
  if (device.info().backend == Backend::sim) json["counters"] = counters_json(counters);
  if (c.timed) {
    const Timing time = run_timed(device, stage, variant, TileMode::same, workload);
    json["timing"] = timing_json(time, flops(workload.problem()));
    json["gpu"] = device.info().name;
  }
  return json;
}

/// The case on a simulator of its own, which has what the case asks for.
Json run_specially(DeviceOptions options, const Stage& stage, const Case& c, size_t index,
                   const std::string& folder) {
  sim::BlockProducts products;
  options.max_grid_y = c.max_grid_y;
  if (c.blocks) options.observer = &products, options.os_threads = 1;
  Json json = run_case(*make_device(options), stage, c, index, folder);
  if (c.blocks) {
    Json& list = json["mma_of_blocks"] = Json::array();
    for (const auto& [block, mma] : products.mma) list.push_back(mma);
  }
  return json;
}

/// The same, with what the kernel or the simulator complained of.
Json try_case(Device& device, const DeviceOptions& options, const Stage& stage, const Case& c,
              size_t index, const std::string& folder) {
  try {
    const bool special = c.blocks || c.max_grid_y != options.max_grid_y;
    if (special && options.backend == Backend::sim)
      return run_specially(options, stage, c, index, folder);
    return run_case(device, stage, c, index, folder);
  } catch (const sim::Finding& finding) {
    return finding_json(finding);
  } catch (const Error& error) {
    return {{"status", "failed"}, {"message", error.what()}};
  }
}

}  // namespace

void describe(const std::string& plugin, const std::string& out) {
  const Stage& stage = load_plugin(plugin);
  Json json = {{"name", stage.name}, {"number", stage.number}, {"variants", Json::array()}};
  for (const Variant& variant : stage.variants) {
    Json rows = Json::array();
    for (const TileRow& row : variant.tiles)
      rows.push_back({{"mode", name_of(row.mode)},
                      {"d", row.d},
                      {"tile", {row.tile.Br, row.tile.Bc, row.tile.warps, row.tile.depth}},
                      {"shared_bytes", row.smem_bytes}});
    json["variants"].push_back({{"name", variant.name}, {"tiles", rows}});
  }
  std::ofstream file(out);
  if (!(file << dumped(json)).flush())
    throw Failure(FA2_INTERNAL_ERROR, out + " cannot be written.");
}

void run(const std::string& plugin, const std::string& cases_path, const std::string& folder,
         const std::string& backend, int threads) {
  const std::vector<Case> cases = read_cases(cases_path);
  std::ofstream file(folder + "/results.jsonl");
  if (!file) throw Failure(FA2_INTERNAL_ERROR, folder + " cannot be written to.");
  const Stage& stage = load_plugin(plugin);
  DeviceOptions options;
  options.backend = backend == "cuda" ? Backend::cuda : Backend::sim;
  options.os_threads = threads;
  const auto device = make_device(options);
  for (size_t i = 0; i < cases.size(); ++i) {
    // Line by line: should the process die, the lines so far tell in which case.
    file << dumped(try_case(*device, options, stage, cases[i], i, folder)) << std::flush;
  }
}

}  // namespace fa2::check

// fa2-counts: the simulator's counts as JSON, for predictions and pictures (fa2course.predict).
//
//   fa2-counts plan [options of fa2-compare]   the rows of a comparison on a GPU, with their tiles
//   fa2-counts run MODEL < jobs.json           counts, per launch, of each job; and, where a job
//                                              asks for "steps", what each warp did, in order
//
// Exit code: 0 done, 2 with one sentence on stderr. What is wrong with one job is in its result.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/cli/compare/machine.h"
#include "common/cli/compare/runner.h"
#include "common/cli/terminal.h"
#include "common/device/error.h"
#include "common/harness/failure.h"
#include "common/harness/parallel.h"
#include "common/harness/run.h"
#include "common/harness/validate.h"
#include "common/sim/observer.h"

namespace {

using namespace fa2;
using Json = nlohmann::ordered_json;

/// Counters that are not zero.
Json to_json(const fa2_counters& counters) {
  Json json = Json::object();
#define FA2_TO_JSON(name, meaning) \
  if (counters.name != 0) json[#name] = counters.name;
  FA2_COUNTERS(FA2_TO_JSON)
#undef FA2_TO_JSON
  return json;
}

// ---- plan ---------------------------------------------------------------------------------------

/// One row of the comparison: which tile it would use, or why it cannot run.
Json plan_row(const compare::Entry& entry, const compare::Shape& shape, const std::string& dtype,
              const std::string& tiles, const GpuLimits& limits) {
  Json row = {{"stage", entry.stage->name},
              {"number", entry.stage->number},
              {"variant", entry.variant->name},
              {"dtype", dtype},
              {"tile_mode", tiles},
              {"shape", compare::to_json(shape)}};
  const fa2_problem problem = to_problem(compare::spec_of(shape, dtype));
  try {
    const Call call = plan_call(*entry.stage, *entry.variant, compare::tile_mode_of(tiles),
                                validate(&problem), limits);
    row["tile_row"] = call.tile_row;
    row["tile"] = compare::to_json(compare::tile_used(entry.variant->tiles[call.tile_row]));
    row["workspace_bytes"] = call.workspace_bytes;
  } catch (const Failure& failure) {
    row["error"] = failure.what();
  }
  return row;
}

Json plan(const std::vector<std::string>& arguments) {
  const auto options = compare::parse_options(arguments);
  if (!options) return {};
  const compare::Options& o = *options;
  const sim::GpuModel& gpu = compare::model_of(o.gpu);
  Json rows = Json::array();
  for (const auto& dtype : o.dtypes)
    for (const compare::Shape& shape : compare::shapes_of(o.shapes, "cuda"))
      for (const auto& tiles : o.tile_modes)
        for (const compare::Entry& entry : compare::entries_of(o, Backend::sim))
          rows.push_back(plan_row(entry, shape, dtype, tiles, {gpu.shared_per_block, gpu.sms}));
  return {{"gpu",
           {{"key", gpu.key},
            {"name", gpu.name},
            {"cc", gpu.cc},
            {"sms", gpu.sms},
            {"shared_per_sm", gpu.shared_per_sm},
            {"max_threads_per_sm", gpu.max_threads_per_sm},
            {"max_blocks_per_sm", gpu.max_blocks_per_sm},
            {"regs_per_sm", gpu.regs_per_sm}}},
          {"out", o.out},
          {"quiet", o.quiet},
          {"rows", rows}};
}

// ---- run ----------------------------------------------------------------------------------------

/// Keeps what a job's launches did.
class Recorder : public sim::Observer {
 public:
  explicit Recorder(bool steps) : steps_wanted_(steps) {}
  bool wants_steps() const override { return steps_wanted_; }

  void step(const sim::WarpStep& s) override {
    steps_.push_back(
        {launches_.size(), s.block, s.warp, s.operation, s.awaited_copies, to_json(s.done)});
  }
  void launched(const sim::LaunchSummary& l) override {
    launches_.push_back({{"kernel", l.kernel},
                         {"blocks", l.counters.blocks},
                         {"threads", l.block[0] * l.block[1] * l.block[2]},
                         {"shared_bytes", l.shared_bytes},
                         {"counters", to_json(l.counters)}});
  }

  Json result() const {
    Json json = {{"launches", launches_}};
    if (steps_wanted_) json["steps"] = steps_;
    return json;
  }

 private:
  bool steps_wanted_;
  Json launches_ = Json::array(), steps_ = Json::array();
};

Json run_job(const Json& job, const std::string& gpu) {
  try {
    const Stage& stage = find_stage(Backend::sim, job.at("stage").get<std::string>());
    const Variant& variant = find_variant(stage, job.at("variant").get<std::string>());
    Recorder recorder(job.value("steps", false));
    DeviceOptions options;
    options.gpu = gpu;
    options.os_threads = 1;  // the jobs run side by side
    options.observer = &recorder;
    const auto device = make_device(options);
    const Workload workload(parse_spec(job.at("spec").get<std::string>()));
    run_once(*device, stage, variant, job.at("tile_row").get<int>(), workload);
    return recorder.result();
  } catch (const std::exception& error) {  // a Failure, or the simulator caught a mistake
    return {{"error", error.what()}};
  }
}

Json run(const std::string& gpu) {
  compare::model_of(gpu);  // throws for an unknown one
  const Json jobs = Json::parse(std::cin);
  std::vector<Json> results(jobs.size());
  parallel_for(static_cast<int64_t>(jobs.size()), [&](int64_t i) {
    results[static_cast<size_t>(i)] = run_job(jobs[static_cast<size_t>(i)], gpu);
  });
  return results;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::string what = arguments.empty() ? "" : arguments[0];
    Json answer;
    if (what == "plan") {
      answer = plan({arguments.begin() + 1, arguments.end()});
    } else if (what == "run" && arguments.size() == 2) {
      answer = run(arguments[1]);
    } else {
      throw Error("use: fa2-counts plan [options of fa2-compare], or fa2-counts run MODEL < jobs");
    }
    std::cout << answer.dump() << std::endl;
    cli::end_output();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 2;
}

#include "common/harness/registry.h"

#include <string>

#include "common/harness/failure.h"
#include "common/harness/stage_list.h"

namespace fa2 {

const char* name_of(Backend backend) { return backend == Backend::sim ? "sim" : "cuda"; }

std::span<const Stage* const> stages(Backend backend) {
  return backend == Backend::sim ? sim_stages() : gpu_stages();
}

const Stage& find_stage(Backend backend, std::string_view name) {
  const auto all = stages(backend);
  if (all.empty())
    throw Failure(FA2_CANNOT_RUN_HERE,
                  "this build has no stage for the " + std::string(name_of(backend)) +
                      " backend; build with the CUDA Toolkit, or use \"sim\".");
  std::string known;
  for (const Stage* stage : all) {
    if (name == stage->name || name == std::to_string(stage->number)) return *stage;
    known += (known.empty() ? "" : ", ") + std::string(stage->name);
  }
  throw Failure(FA2_INVALID_ARGUMENT,
                "there is no stage \"" + std::string(name) + "\"; known are " + known + ".");
}

const Variant& find_variant(const Stage& stage, std::string_view name) {
  if (name.empty()) return stage.variants.front();
  std::string known;
  for (const Variant& variant : stage.variants) {
    if (name == variant.name) return variant;
    known += (known.empty() ? "\"" : ", \"") + std::string(variant.name) + "\"";
  }
  throw Failure(FA2_INVALID_ARGUMENT, std::string(stage.name) + " has no variant \"" +
                                          std::string(name) + "\"; known are " + known + ".");
}

}  // namespace fa2

#include "common/testing/catch_contract.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/harness/failure.h"
#include "common/testing/catch.h"
#include "common/testing/contract.h"
#include "common/testing/fuzz.h"

namespace fa2::testing {
namespace {

/// The machines that can run this stage. A GPU is used if there is one; its absence is no failure.
std::vector<std::unique_ptr<Device>> devices_for(const char* stage) {
  std::vector<std::unique_ptr<Device>> devices;
  for (const Backend backend : {Backend::sim, Backend::cuda}) {
    try {
      DeviceOptions options;
      options.backend = backend;
      (void)find_stage(backend, stage);
      devices.push_back(make_device(options));
    } catch (const Failure& failure) {
      if (backend == Backend::sim || failure.status != FA2_CANNOT_RUN_HERE) throw;
    }
  }
  return devices;
}

std::string kernel_name(const Device& device, const Stage& stage, const Variant& variant,
                        int tile_row) {
  const TileRow& row = variant.tiles[tile_row];
  return std::string(stage.name) + " " + variant.name + " on " + device.info().name +
         ", d=" + std::to_string(row.d) + ", tile " + std::to_string(row.tile.Br) + "x" +
         std::to_string(row.tile.Bc) + ", " + std::to_string(row.tile.warps) + " warps";
}

/// Whether this is the stage's first variant with its first tile.
bool is_first(const Stage& stage, const Variant& variant, int tile_row) {
  return stage.variants.data() == &variant && tile_row == 0;
}

/// A GPU runs everything. On the simulator a stage's first kernel gets all cases, the others every
/// third, not all the same: enough to find what depends on a tile, and a few seconds each.
std::vector<ContractCase> thinned(const Device& device, const Stage& stage, const Variant& variant,
                                  int tile_row, std::vector<ContractCase> cases) {
  if (device.info().backend == Backend::cuda || is_first(stage, variant, tile_row)) return cases;
  const auto number = static_cast<size_t>(&variant - stage.variants.data());
  std::vector<ContractCase> kept;
  for (size_t i = (number + static_cast<size_t>(tile_row)) % 3; i < cases.size(); i += 3)
    kept.push_back(std::move(cases[i]));
  return kept;
}

/// Runs cases until three have failed; more would say the same.
void check_cases(Device& device, const Stage& stage, const Variant& variant, int tile_row,
                 const std::vector<ContractCase>& cases) {
  int failures = 0;
  for (const ContractCase& item : cases) {
    INFO(item.name);
    INFO(to_text(item.spec));
    try {
      const std::string message = run_case(device, stage, variant, tile_row, item.spec);
      CHECK(message == "");
      failures += message.empty() ? 0 : 1;
    } catch (const Failure& failure) {
      if (failure.status != FA2_UNSUPPORTED) throw;
      WARN("skipped: " << item.name << ": " << failure.what());  // no memory for it here
    }
    if (failures == 3) break;
  }
}

}  // namespace

void for_each_kernel(
    const char* stage_name,
    const std::function<void(Device&, const Stage&, const Variant&, int tile_row)>& check) {
  for (const auto& device : devices_for(stage_name)) {
    const Stage& stage = find_stage(device->info().backend, stage_name);
    for (const Variant& variant : stage.variants)
      for (const int row : distinct_tile_rows(variant, device->info().limits)) {
        INFO(kernel_name(*device, stage, variant, row));
        check(*device, stage, variant, row);
      }
  }
}

void check_contract(const char* stage_name) {
  for_each_kernel(
      stage_name, [](Device& device, const Stage& stage, const Variant& variant, int row) {
        const TileRow& tile = variant.tiles[row];
        check_cases(device, stage, variant, row,
                    thinned(device, stage, variant, row, contract_cases(tile.tile, tile.d)));
      });
}

void check_reported_cases(const char* stage_name) {
  for_each_kernel(stage_name,
                  [](Device& device, const Stage& stage, const Variant& variant, int row) {
                    // 65,600 blocks take a while on the simulator: once per stage must do.
                    if (device.info().backend == Backend::sim && !is_first(stage, variant, row))
                      return;
                    check_cases(device, stage, variant, row,
                                reported_cases(variant.tiles[row].d, device.info().backend));
                  });
}

void check_reproducible(const char* stage_name) {
  for_each_kernel(
      stage_name, [](Device& device, const Stage& stage, const Variant& variant, int row) {
        // Variants share their code; one of them is tried with every tile.
        if (device.info().backend == Backend::sim && row > 0 && &variant != &stage.variants.front())
          return;
        INFO("results must not depend on the batch size (flash-attention #47)");
        CHECK(check_batch_independence(device, stage, variant, row) == "");
        if (device.info().backend == Backend::sim)
          CHECK(check_determinism(stage, variant, row) == "");
      });
}

void check_random_problems(const char* stage_name, double seconds) {
  for (const auto& device : devices_for(stage_name)) {
    const Stage& stage = find_stage(device->info().backend, stage_name);
    for (const Variant& variant : stage.variants) {
      FuzzOptions options;
      options.variant = variant.name;
      options.seconds = seconds / static_cast<double>(stage.variants.size());
      if (device->info().backend == Backend::sim)
        options.seconds /= 3;  // the minute of fuzz/sim is the simulator's
      const FuzzReport report = fuzz(*device, stage, options);
      INFO(device->info().name);
      if (report.failure) FAIL_CHECK(to_text(*report.failure, stage));
      CHECK(report.run > 0);
    }
  }
}

fa2_counters count(const char* stage_name, const Spec& spec, Tile* tile, const char* variant) {
  const auto device = make_device({});
  const Stage& stage = find_stage(Backend::sim, stage_name);
  const Outcome outcome =
      run_checked(*device, stage, find_variant(stage, variant), TileMode::same, Workload(spec));
  INFO(to_text(spec));
  CHECK(outcome.verdict.message == "");
  if (tile != nullptr) *tile = outcome.tile.tile;
  return outcome.counters;
}

}  // namespace fa2::testing

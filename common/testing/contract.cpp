#include "common/testing/contract.h"

#include <algorithm>
#include <cstring>

#include "common/harness/failure.h"

namespace fa2::testing {
namespace {

/// Runs `body` and returns its complaint, or what the kernel or the simulator complained of.
template <class Body>
std::string complaint_of(Body body) {
  try {
    return body();
  } catch (const Failure& failure) {
    if (failure.status != FA2_KERNEL_FAILED) throw;
    return failure.what();
  } catch (const Error& error) {
    return error.what();
  }
}

bool same_tile(const TileRow& a, const TileRow& b) {
  return a.d == b.d && a.tile.Br == b.tile.Br && a.tile.Bc == b.tile.Bc &&
         a.tile.warps == b.tile.warps && a.tile.depth == b.tile.depth;
}

bool same_row(const Outputs& a, const Outputs& b, int64_t batch_a, int64_t h, int64_t i) {
  return std::ranges::equal(a.O.row(batch_a, h, i), b.O.row(0, h, i));
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// A shape in which every loop of a stage runs more than once and nothing is a multiple of a tile.
Spec busy_spec(int d) {
  Spec spec;
  spec.batch = 3;
  spec.heads_q = 2;
  spec.Nq = 150;
  spec.Nk = 270;
  spec.d = d;
  spec.causal = true;
  return spec;
}

}  // namespace

std::string run_case(Device& device, const Stage& stage, const Variant& variant, int tile_row,
                     const Spec& spec) {
  return complaint_of([&] {
    const Workload workload(spec);
    return run_checked(device, stage, variant, tile_row, workload).verdict.message;
  });
}

std::string check_batch_independence(Device& device, const Stage& stage, const Variant& variant,
                                     int tile_row) {
  return complaint_of([&]() -> std::string {
    Spec spec = busy_spec(variant.tiles[tile_row].d);
    const Outputs among = run_once(device, stage, variant, tile_row, Workload(spec));
    spec.batch = 1;  // the inputs of batch 0 stay the same
    const Outputs alone = run_once(device, stage, variant, tile_row, Workload(spec));
    for (int64_t h = 0; h < spec.heads_q; ++h)
      for (int64_t i = 0; i < spec.Nq; ++i)
        if (!same_row(among, alone, 0, h, i))
          return "O[batch 0, head " + std::to_string(h) + ", row " + std::to_string(i) +
                 "] depends on the batch size.";
    return "";
  });
}

std::string check_determinism(const Stage& stage, const Variant& variant, int tile_row) {
  return complaint_of([&]() -> std::string {
    const Workload workload(busy_spec(variant.tiles[tile_row].d));
    const auto run = [&](int os_threads, int order, fa2_counters* counters) {
      DeviceOptions options;
      options.os_threads = os_threads;
      options.order = order;
      options.seed = 5;
      return run_once(*make_device(options), stage, variant, tile_row, workload, counters);
    };
    fa2_counters counters{}, expected_counters{};
    const Outputs expected = run(1, FA2_ORDER_FORWARD, &expected_counters);
    for (const auto& [os_threads, order] : {std::pair<int, int>{2, FA2_ORDER_FORWARD},
                                            {3, FA2_ORDER_REVERSE},
                                            {1, FA2_ORDER_RANDOM}}) {
      const Outputs got = run(os_threads, order, &counters);
      const std::string where = " with " + std::to_string(os_threads) + " OS threads in order " +
                                std::to_string(order) + ".";
      if (!std::ranges::equal(got.O.raw(), expected.O.raw()) || !same_bits(got.LSE, expected.LSE))
        return "the result differs" + where;
      if (std::memcmp(&counters, &expected_counters, sizeof counters) != 0)
        return "the counters differ" + where;
    }
    return "";
  });
}

std::vector<int> distinct_tile_rows(const Variant& variant, const GpuLimits& gpu) {
  std::vector<int> rows;
  for (int i = 0; i < static_cast<int>(variant.tiles.size()); ++i) {
    const TileRow& row = variant.tiles[i];
    const auto repeated = [&](int other) { return same_tile(variant.tiles[other], row); };
    if (int64_t{row.smem_bytes} <= gpu.shared_per_block && std::ranges::none_of(rows, repeated))
      rows.push_back(i);
  }
  return rows;
}

}  // namespace fa2::testing

#include "common/testing/fuzz.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "common/harness/failure.h"
#include "common/harness/random.h"

namespace fa2::testing {
namespace {

/// A length from 0 up, often next to a multiple of a tile, where mistakes are.
int64_t random_length(Random& random, int64_t most) {
  switch (random.in(0, 9)) {
    case 0:
      return random.in(0, 3);
    case 1:
    case 2:
    case 3:
    case 4: {
      static constexpr int64_t tiles[] = {16, 32, 64, 128, 256};
      return std::clamp<int64_t>(random.pick(tiles) * random.in(1, 3) + random.in(-2, 2), 0, most);
    }
    default:
      return random.in(1, most);
  }
}

void draw_heads(Random& random, Spec& spec, const FuzzLimits& limits) {
  spec.heads_kv = random.in(1, limits.heads);
  spec.heads_q = spec.heads_kv * random.in(1, std::max<int64_t>(1, limits.heads / spec.heads_kv));
}

void draw_memory(Random& random, Spec& spec) {
  static constexpr Layout near[] = {Layout::bhnd, Layout::bnhd, Layout::row_gap, Layout::head_gap,
                                    Layout::packed};
  if (random.chance(40)) return;
  spec.layouts.fill(random.pick(near));
  if (random.chance(50))
    for (Layout& layout : spec.layouts) layout = random.pick(near);
}

/// Makes the problem small enough, halving its longest side.
void fit(Spec& spec, const FuzzLimits& limits) {
  const auto products = [&] {
    return static_cast<double>(spec.batch) * static_cast<double>(spec.heads_q * spec.d) *
           static_cast<double>(spec.Nq) * static_cast<double>(spec.Nk);
  };
  while (products() > limits.products) {
    if (spec.batch > 1)
      spec.batch /= 2;
    else if (spec.heads_q > spec.heads_kv)
      spec.heads_q = spec.heads_kv;
    else if (spec.heads_kv > 1)
      spec.heads_q = spec.heads_kv = 1;
    else
      (spec.Nq > spec.Nk ? spec.Nq : spec.Nk) /= 2;
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// What could be simpler about a failing problem, the largest steps first.
std::vector<Spec> simpler(const Spec& s) {
  std::vector<Spec> all;
  const auto add = [&](auto change) {
    Spec candidate = s;
    change(candidate);
    if (!(candidate == s)) all.push_back(candidate);
  };
  add([](Spec& c) { c.batch = std::min<int64_t>(c.batch, 1); });
  add([](Spec& c) { c.batch /= 2; });
  add([](Spec& c) { c.batch -= c.batch > 0; });
  add([](Spec& c) { c.heads_q = c.heads_kv = 1; });
  add([](Spec& c) { c.heads_q = c.heads_kv; });
  add([](Spec& c) { c.heads_q /= c.heads_kv, c.heads_kv = 1; });
  add([](Spec& c) { c.Nq /= 2; });
  add([](Spec& c) { c.Nk /= 2; });
  for (const int64_t step : {64, 8, 1}) {
    add([&](Spec& c) { c.Nq = std::max<int64_t>(0, c.Nq - step); });
    add([&](Spec& c) { c.Nk = std::max<int64_t>(0, c.Nk - step); });
  }
  add([](Spec& c) { c.causal = false; });
  add([](Spec& c) { c.scale = 0; });
  add([](Spec& c) { c.inputs = Inputs::normal; });
  add([](Spec& c) { c.layouts = {}; });
  for (size_t i = 0; i < s.layouts.size(); ++i) add([&](Spec& c) { c.layouts[i] = Layout::bhnd; });
  add([](Spec& c) { c.dtype = Dtype::fp16; });
  add([](Spec& c) { c.seed = 1; });
  return all;
}

/// A row of the tile table for this head dim, or -1 if the stage has none.
int random_tile_row(Random& random, const Variant& variant, const GpuLimits& gpu, int64_t d) {
  std::vector<int> rows = distinct_tile_rows(variant, gpu);
  std::erase_if(rows, [&](int row) { return variant.tiles[row].d != d; });
  return rows.empty() ? -1 : rows[random.in(0, static_cast<int64_t>(rows.size()) - 1)];
}

}  // namespace

FuzzLimits default_limits(Backend backend) {
  if (backend == Backend::sim) return {};
  return {.seqlen = 1500, .heads = 16, .batch = 5, .products = 2e8};
}

Spec random_spec(uint64_t seed, const FuzzLimits& limits) {
  Random random(seed);
  static constexpr float scales[] = {1e-4f, 0.03f, 0.3f, 1.f, 4.f};
  Spec spec;
  spec.seed = seed;
  spec.dtype = random.chance(50) ? Dtype::fp16 : Dtype::bf16;
  spec.d = random.chance(60) ? 64 : 128;
  spec.causal = random.chance(60);
  spec.batch = random.chance(3) ? 0 : random.in(1, limits.batch);
  draw_heads(random, spec, limits);
  spec.Nq = random_length(random, limits.seqlen);
  spec.Nk = random.chance(30) ? spec.Nq : random_length(random, limits.seqlen);
  if (random.chance(30)) spec.scale = random.pick(scales);
  if (random.chance(60)) spec.inputs = static_cast<Inputs>(random.in(0, inputs_count - 1));
  draw_memory(random, spec);
  fit(spec, limits);
  return spec;
}

Spec shrink(Spec spec, const std::function<bool(const Spec&)>& fails) {
  for (int tries = 0; tries < 300;) {
    bool smaller = false;
    for (const Spec& candidate : simpler(spec)) {
      ++tries;
      if (!fails(candidate)) continue;
      spec = candidate;
      smaller = true;
      break;
    }
    if (!smaller) break;
  }
  return spec;
}

FuzzResult fuzz_one(Device& device, const Stage& stage, const Variant& variant, uint64_t seed,
                    const FuzzLimits& limits) {
  FuzzResult result;
  result.seed = seed;
  result.spec = random_spec(seed, limits);
  Random random(~seed);
  result.tile_row = random_tile_row(random, variant, device.info().limits, result.spec.d);
  result.skipped = result.tile_row < 0;
  if (result.skipped) return result;
  try {
    result.message = run_case(device, stage, variant, result.tile_row, result.spec);
  } catch (const Failure& failure) {
    if (failure.status != FA2_UNSUPPORTED) throw;
    result.skipped = true;
  }
  return result;
}

FuzzFailure shrunk_failure(Device& device, const Stage& stage, const Variant& variant,
                           const FuzzResult& wrong) {
  FuzzFailure failure{wrong.seed, wrong.spec, wrong.spec, wrong.tile_row, wrong.message};
  failure.small = shrink(wrong.spec, [&](const Spec& candidate) {
    const std::string complaint = run_case(device, stage, variant, wrong.tile_row, candidate);
    // A fault can leave a GPU unusable; what then is not run says nothing about the candidate.
    if (complaint.empty() || complaint.starts_with("not run:")) return false;
    failure.message = complaint;
    return true;
  });
  return failure;
}

FuzzReport fuzz(Device& device, const Stage& stage, const FuzzOptions& options,
                const std::function<void(int64_t)>& progress) {
  const Variant& variant = find_variant(stage, options.variant);
  const FuzzLimits limits = default_limits(device.info().backend);
  const auto start = std::chrono::steady_clock::now();
  FuzzReport report;
  for (int64_t i = 0; i < options.count && seconds_since(start) < options.seconds; ++i) {
    if (progress) progress(i);
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    const FuzzResult result = fuzz_one(device, stage, variant, seed, limits);
    ++(result.skipped ? report.skipped : report.run);
    if (result.message.empty()) continue;
    report.failure = shrunk_failure(device, stage, variant, result);
    break;
  }
  return report;
}

std::string to_text(const FuzzFailure& failure, const Stage& stage) {
  return std::string(stage.name) + " is wrong, seed " + std::to_string(failure.seed) +
         ", tile row " + std::to_string(failure.tile_row) +
         "\n  found:  " + to_text(failure.found) + "\n  shrunk: " + to_text(failure.small) +
         "\n  " + failure.message;
}

}  // namespace fa2::testing

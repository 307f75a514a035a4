#include "common/cli/compare/runner.h"

#include <fstream>
#include <new>
#include <optional>

#include "common/cli/compare/requested.h"
#include "common/cli/format.h"
#include "common/harness/failure.h"
#include "common/harness/run.h"

namespace fa2::compare {
namespace {

/// Above this many multiplications the reference checks some rows of every head, not all. Seconds
/// of work on a few cores.
constexpr double reference_products = 4e9;

/// Bytes of host memory that are free, or none if the system does not tell.
std::optional<double> free_host_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    double kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return {};
}

/// Host memory is handed out before it is there; a stage that needs more would be killed.
void check_memory(const Device& device, size_t workspace_bytes) {
  if (device.info().backend != Backend::sim || workspace_bytes == 0) return;
  const auto free = free_host_memory();
  if (free && static_cast<double>(workspace_bytes) > 0.9 * *free) {
    throw Failure(FA2_UNSUPPORTED,
                  "its workspace of " + cli::mib(workspace_bytes) + " MiB does not fit into the " +
                      cli::mib(static_cast<uint64_t>(*free)) + " MiB of memory that are free.");
  }
}

void measure(Device& device, const Entry& entry, const Options& o, const Workload& workload,
             Record& r) {
  const TileMode mode = tile_mode_of(r.tile_mode);
  const Call plan =
      plan_call(*entry.stage, *entry.variant, mode, workload.problem(), device.info().limits);
  r.tile = tile_used(entry.variant->tiles[plan.tile_row]);
  check_memory(device, plan.workspace_bytes);

  r.outcome = Outcome::wrong;  // unless all goes well
  const fa2::Outcome run = run_checked(device, *entry.stage, *entry.variant, mode, workload);
  r.max_abs_err = run.verdict.max_abs_err;
  r.tolerance = run.verdict.tolerance;
  r.share_of_tolerance = run.verdict.worst_share;
  r.reason = run.verdict.message;
  if (device.info().backend == Backend::sim) {
    r.counters = run.counters;
    r.waves = waves_of(run.counters.blocks, *r.tile, o.gpu);
    r.requested_bytes =
        static_cast<double>(run.counters.global_load_bytes + run.counters.global_store_bytes);
  } else if (run.verdict.ok) {
    const Timing time = run_timed(device, *entry.stage, *entry.variant, mode, workload);
    r.time_ms = time.median_ms;
    r.requested_bytes = requested_bytes_of(r);
    r.spread = (time.slowest_ms - time.fastest_ms) / time.median_ms;
  }
  if (run.verdict.ok) r.outcome = Outcome::right;
}

/// What a failure means for the row: it cannot run here, or it is wrong.
Outcome outcome_of(const Failure& failure) {
  switch (failure.status) {
    case FA2_UNSUPPORTED:
    case FA2_CANNOT_RUN_HERE:
    case FA2_INTERNAL_ERROR:
      return Outcome::not_run;
    default:
      return Outcome::wrong;
  }
}

Record run_one(Device& device, const Entry& entry, const Options& o, const Workload& workload,
               Record r) {
  try {
    measure(device, entry, o, workload, r);
  } catch (const Failure& failure) {
    r.outcome = outcome_of(failure);
    r.reason = failure.what();
  } catch (const std::bad_alloc&) {
    r.outcome = Outcome::not_run;
    r.reason = "out of host memory";
  } catch (const Error& fault) {  // the simulator caught a mistake of the kernel
    r.outcome = Outcome::wrong;
    r.reason = fault.what();
  }
  return r;
}

/// The record of a row before it runs.
Record blank(const Device& device, const Entry& entry, const Shape& shape, const std::string& dtype,
             const std::string& tiles, const Environment& environment) {
  Record r;
  r.stage = entry.stage->name;
  r.variant = entry.variant->name;
  r.number = entry.stage->number;
  r.backend = backend_name(device);
  r.shape = shape;
  r.dtype = dtype;
  r.tile_mode = tiles;
  r.environment = environment;
  return r;
}

/// Whether a fault has left the GPU unusable for this process.
bool is_lost(Device& device) {
  try {
    device.release(device.allocate(1));
    return false;
  } catch (const Failure& failure) {
    return failure.status == FA2_KERNEL_FAILED;
  }
}

}  // namespace

TileMode tile_mode_of(const std::string& name) {
  for (TileMode mode : {TileMode::same, TileMode::same_b, TileMode::tuned}) {
    if (name == name_of(mode)) return mode;
  }
  throw Error("there are no tiles called " + name);
}

Spec spec_of(const Shape& s, const std::string& dtype) {
  Spec spec;
  spec.dtype = dtype == "bf16" ? Dtype::bf16 : Dtype::fp16;
  spec.causal = s.causal;
  spec.batch = s.batch;
  spec.heads_q = s.heads_q;
  spec.heads_kv = s.heads_kv;
  spec.Nq = s.Nq;
  spec.Nk = s.Nk;
  spec.d = s.d;
  return spec;
}

TileUsed tile_used(const TileRow& row) {
  return {row.tile.Br, row.tile.Bc, row.tile.warps, row.tile.depth,
          static_cast<uint64_t>(row.smem_bytes)};
}

Run run_all(Device& device, const Options& o, const std::vector<Shape>& shapes,
            const std::vector<Entry>& entries, const Environment& environment,
            const Listener& listener, const std::vector<Record>& done) {
  Run run;
  std::vector<Record>& all = run.records;
  const size_t count = o.dtypes.size() * shapes.size() * o.tile_modes.size() * entries.size();
  for (const auto& dtype : o.dtypes)
    for (const Shape& shape : shapes) {
      const size_t rows = o.tile_modes.size() * entries.size();
      if (all.size() + rows <= done.size()) {  // and their groups have been shown
        all.insert(all.end(), done.begin() + all.size(), done.begin() + all.size() + rows);
        continue;
      }
      std::optional<Workload> workload;
      std::string no_workload;
      try {
        workload.emplace(spec_of(shape, dtype), reference_products);
      } catch (const std::bad_alloc&) {
        no_workload = "its tensors do not fit into the host's memory";
      } catch (const Failure& failure) {
        no_workload = failure.what();
      }
      for (const auto& tiles : o.tile_modes) {
        const size_t first = all.size();
        for (const Entry& entry : entries) {
          if (all.size() < done.size()) {
            all.push_back(done[all.size()]);
            continue;
          }
          Record r = blank(device, entry, shape, dtype, tiles, environment);
          listener.step(label(r) + ", " + label(shape) + ", " + dtype + ", tiles " + tiles);
          r.reason = no_workload;
          if (workload) r = run_one(device, entry, o, *workload, std::move(r));
          all.push_back(std::move(r));
          run.device_lost = all.back().outcome == Outcome::wrong && is_lost(device);
          if (run.device_lost) break;
        }
        const bool complete = all.size() == first + entries.size();
        if (complete && all.size() > done.size())
          listener.group_is_done({all.begin() + static_cast<long>(first), all.end()});
        if (run.device_lost) {
          run.device_lost = all.size() < count;
          return run;
        }
      }
    }
  return run;
}

}  // namespace fa2::compare

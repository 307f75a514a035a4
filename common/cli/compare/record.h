#pragma once
// What one run of one stage on one problem gave: the row of every report. The format of
// compare.json is described in common/cli/README.md.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/counters.h"

namespace fa2::compare {

constexpr int format_version = 1;

/// What was run where: a number without this means nothing. Empty or 0 where it does not apply.
struct Environment {
  std::string cpu;                 // name of the host's processor
  int threads = 0;                 // of the simulator
  std::string gpu;                 // the GPU that ran, or the model whose limits the simulator took
  int sms = 0;                     // its multiprocessors
  std::string compute_capability;  // "9.0"
  double peak_tflops = 0;          // of its datasheet: dense 16-bit, fp32 accumulate
  double mma_tflops = 0;     // what mma.sync alone reached in this process; 0 on the simulator
  std::string driver, cuda;  // versions; empty on the simulator
  std::string compiler, commit, date;

  bool operator==(const Environment&) const = default;
};

struct Shape {
  int64_t batch = 1, heads_q = 1, heads_kv = 1, Nq = 0, Nk = 0, d = 64;
  bool causal = false;

  bool operator==(const Shape&) const = default;
};

struct TileUsed {
  int Br = 0, Bc = 0, warps = 0, depth = 0;
  uint64_t smem_bytes = 0;

  bool operator==(const TileUsed&) const = default;
};

/// ran: and gave the right result. wrong: a wrong result, or a mistake that the simulator caught.
/// not_run: cannot run here on this shape; the reason says why.
enum class Outcome { right, wrong, not_run };

struct Record {
  std::string stage;    // "stage6_fa2_deferred"
  std::string variant;  // "lazy"; empty for a stage with one
  int number = 0;       // 1 to 6
  std::string backend;  // "sim" or "cuda"
  Shape shape;
  std::string dtype = "fp16";                // or "bf16"
  std::string tile_mode = "same";            // "same", "same_b", "tuned"
  std::optional<TileUsed> tile;              // none for a stage that did not run
  std::optional<double> time_ms;             // median; a GPU's, never the simulator's
  std::optional<double> spread;              // of the times: (slowest - fastest) / median
  std::optional<fa2_counters> counters;      // the simulator's
  std::optional<double> waves;               // blocks / blocks that the GPU holds at a time
  std::optional<double> requested_bytes;     // of global memory, loads and stores
  std::optional<double> max_abs_err;         // of O, over all elements
  std::optional<double> tolerance;           // of the row of O that comes nearest to its own
  std::optional<double> share_of_tolerance;  // how near: at most 1 if right
  Outcome outcome = Outcome::not_run;
  std::string reason;  // why it is not right
  Environment environment;

  /// 4 B H Nq Nk d / time, halved when causal.
  std::optional<double> tflops() const;
  /// Requested bytes per time.
  std::optional<double> requested_gbps() const;
};

/// A file of results: records of one or more runs.
struct Results {
  Environment environment;  // of the run that wrote the file
  std::string command;      // its command line
  std::vector<Record> records;
};

/// "2 fa1", "6 deferred lazy": short enough for a table.
std::string label(const Record& r);
/// "B1 H2 N512 d64 causal", with what differs from the usual only: Hkv, Nq and Nk.
std::string label(const Shape& s);
/// "64x128, 4 warps", and the depth of the copy pipeline where it is not 1.
std::string label(const TileUsed& t);

/// True if both are the same experiment: all but the environment and what was measured.
bool same_experiment(const Record& a, const Record& b);

nlohmann::ordered_json to_json(const Results& r);
nlohmann::ordered_json to_json(const Shape& s);
nlohmann::ordered_json to_json(const TileUsed& t);
/// Throws fa2::Error with a sentence if the file is of another kind or version, or misses a field.
Results results_from_json(const nlohmann::ordered_json& j);
/// Reads a file; throws fa2::Error naming it.
Results read_results(const std::string& path);

}  // namespace fa2::compare

// Times that a GPU once gave, beside the simulator's counters.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "common/cli/compare/report.h"
#include "common/device/error.h"

namespace fa2::compare {
namespace {

namespace fs = std::filesystem;

bool comparable(const Record& time, const Record& r) {
  return time.time_ms && time.outcome == Outcome::right && time.backend == "cuda" &&
         time.shape.d == r.shape.d && time.shape.causal == r.shape.causal &&
         time.dtype == r.dtype && time.tile_mode == r.tile_mode;
}

/// 0 for the same sizes; each doubling of the keys, queries or heads is one more.
double distance(const Shape& a, const Shape& b) {
  const auto doublings = [](double x, double y) { return std::abs(std::log2(x / y)); };
  return doublings(static_cast<double>(a.Nq), static_cast<double>(b.Nq)) +
         doublings(static_cast<double>(a.Nk), static_cast<double>(b.Nk)) +
         doublings(static_cast<double>(a.batch * a.heads_q),
                   static_cast<double>(b.batch * b.heads_q));
}

/// The one nearest to the group's shape, of any stage.
const Record* nearest(const Group& group, const RecordedTimes& times) {
  const Record* best = nullptr;
  for (const Record& time : times) {
    if (!comparable(time, *group.front())) continue;
    const Shape& wanted = group.front()->shape;
    if (!best || distance(time.shape, wanted) < distance(best->shape, wanted)) best = &time;
  }
  return best;
}

}  // namespace

std::string recorded_folder() {
  std::error_code error;
  for (fs::path at = fs::read_symlink("/proc/self/exe", error); at.has_relative_path();
       at = at.parent_path()) {
    const fs::path folder = at.parent_path() / "notes" / "results";
    if (fs::is_directory(folder, error)) return folder.string();
  }
  return {};
}

RecordedTimes read_recorded_times(const std::string& folder, const std::string& gpu_key) {
  std::error_code none;  // a folder that cannot be read has no times
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::stable_partition(files.begin(), files.end(),
                        [&](const fs::path& file) { return file.stem() == gpu_key; });
  for (const fs::path& file : files) {
    try {
      RecordedTimes times = read_results(file.string()).records;
      std::erase_if(times, [](const Record& r) { return r.backend != "cuda" || !r.time_ms; });
      if (!times.empty()) return times;
    } catch (const Error&) {
      // Other JSON may lie there as well; it only decorates the table.
    }
  }
  return {};
}

const Record* recorded_for(const Record& r, const Group& group, const RecordedTimes& times) {
  const Record* near = nearest(group, times);
  if (!near) return nullptr;
  for (const Record& time : times) {
    if (comparable(time, r) && time.shape == near->shape && time.stage == r.stage &&
        time.variant == r.variant && time.environment.gpu == near->environment.gpu) {
      return &time;
    }
  }
  return nullptr;
}

}  // namespace fa2::compare

// One row per stage: counters on the simulator, times on a GPU.
#include <algorithm>
#include <cmath>

#include "common/cli/compare/metrics.h"
#include "common/cli/compare/report.h"

namespace fa2::compare {
namespace {

using cli::number;

/// True if the rows of the group ran with different tiles: then each says which.
bool tiles_differ(const Group& group) {
  std::string first;
  for (const Record* r : group) {
    if (!r->tile) continue;
    if (!first.empty() && first != label(*r->tile)) return true;
    first = label(*r->tile);
  }
  return false;
}

std::string tile_cell(const Record& r, const View& view) {
  if (!r.tile) return std::string(cli::minus(view.charset));
  std::string text = std::to_string(r.tile->Br) + "x" + std::to_string(r.tile->Bc) + "/" +
                     std::to_string(r.tile->warps);
  if (r.tile->depth > 1) text += "/" + std::to_string(r.tile->depth);
  return text;
}

/// How much faster than `over`; a difference within the spread of both (half of it lies on either
/// side of a median) is no gain.
std::string gain_cell(const Record& r, const Record* over, const View& view) {
  if (!r.time_ms || !over || !over->time_ms) return std::string(cli::minus(view.charset));
  const double speedup = *over->time_ms / *r.time_ms;
  const double noise = (r.spread.value_or(0) + over->spread.value_or(0)) / 2;
  if (std::abs(speedup - 1) <= noise) return number(speedup) + " no gain";
  return number(speedup) + (speedup < 1 ? " slower" : "");
}

const Record* stage_1_of(const Group& group) {
  const auto found = std::find_if(group.begin(), group.end(), [](const Record* r) {
    return r->number == 1 && r->stage.find('/') == std::string::npos;
  });
  return found == group.end() ? nullptr : *found;
}

/// A table that is filled column by column, so that head and cells stand together.
class ColumnWise {
 public:
  explicit ColumnWise(const Group& group) : group_(group) { table_.rows.resize(group.size()); }

  template <class Cell>
  void add(std::string head, Cell cell) {
    table_.heads.push_back(std::move(head));
    for (size_t i = 0; i < group_.size(); ++i) table_.rows[i].push_back(cell(*group_[i]));
  }

  cli::Table table() { return std::move(table_); }

 private:
  const Group& group_;
  cli::Table table_;
};

}  // namespace

std::string error_cell(const Record& r, const View& view) {
  if (!r.share_of_tolerance) return std::string(cli::minus(view.charset));
  return cli::percent(*r.share_of_tolerance);
}

std::string outcome_cell(const Record& r) {
  switch (r.outcome) {
    case Outcome::right:
      return "ok";
    case Outcome::wrong:
      return "WRONG";
    case Outcome::not_run:
      break;
  }
  return "not run";
}

cli::Table counter_table(const Group& group, const View& view) {
  ColumnWise columns(group);
  columns.add("stage", [](const Record& r) { return label(r); });
  columns.add("result", outcome_cell);
  columns.add("error /\ntolerance", [&](const Record& r) { return error_cell(r, view); });
  if (tiles_differ(group)) {
    columns.add("tile", [&](const Record& r) { return tile_cell(r, view); });
  }
  for (const Metric& m : metrics()) {
    if (!*m.head) continue;
    columns.add(m.head, [&](const Record& r) {
      return r.counters ? m.show(m.value(r)) : std::string(cli::minus(view.charset));
    });
  }
  const auto recorded = [&](const Record& r) {
    return view.recorded ? recorded_for(r, group, *view.recorded) : nullptr;
  };
  if (std::any_of(group.begin(), group.end(), [&](const Record* r) { return recorded(*r); })) {
    columns.add("recorded\nGPU ms", [&](const Record& r) {
      const Record* time = recorded(r);
      return time ? number(*time->time_ms) : std::string(cli::minus(view.charset));
    });
  }
  return columns.table();
}

cli::Table time_table(const Group& group, const View& view) {
  const std::string none(cli::minus(view.charset));
  const auto maybe = [&](const std::optional<double>& value) {
    return value ? number(*value) : none;
  };
  ColumnWise columns(group);
  columns.add("stage", [](const Record& r) { return label(r); });
  columns.add("result", outcome_cell);
  columns.add("error /\ntolerance", [&](const Record& r) { return error_cell(r, view); });
  if (tiles_differ(group)) {
    columns.add("tile", [&](const Record& r) { return tile_cell(r, view); });
  }
  columns.add("ms", [&](const Record& r) { return maybe(r.time_ms); });
  columns.add("spread", [&](const Record& r) { return r.spread ? cli::percent(*r.spread) : none; });
  columns.add(group.front()->shape.causal ? "TFLOP/s\n(half FLOPs)" : "TFLOP/s",
              [&](const Record& r) { return maybe(r.tflops()); });
  columns.add("over\nparent",
              [&](const Record& r) { return gain_cell(r, parent_of(r, group), view); });
  columns.add("over\nstage 1", [&](const Record& r) {
    const Record* first = stage_1_of(group);
    return gain_cell(r, first == &r ? nullptr : first, view);
  });
  columns.add("share\nof peak", [&](const Record& r) {
    const double peak = r.environment.peak_tflops;
    return r.tflops() && peak > 0 ? cli::percent(*r.tflops() / peak) : none;
  });
  columns.add("requested\nGB/s", [&](const Record& r) { return maybe(r.requested_gbps()); });
  return columns.table();
}

}  // namespace fa2::compare

#pragma once
// Runs the stages and turns what happened into records.
#include <functional>

#include "common/cli/compare/machine.h"
#include "common/cli/compare/options.h"
#include "common/cli/compare/record.h"
#include "common/harness/spec.h"

namespace fa2::compare {

/// The harness's words for those of a record.
Spec spec_of(const Shape& shape, const std::string& dtype);
TileMode tile_mode_of(const std::string& name);  // throws fa2::Error
TileUsed tile_used(const TileRow& row);

/// What the caller hears of while it runs.
struct Listener {
  std::function<void(const std::string& what)> step;                   // a row begins
  std::function<void(const std::vector<Record>& rows)> group_is_done;  // all rows of one problem
};

struct Run {
  std::vector<Record> records;
  bool device_lost = false;  // the last record's kernel took the GPU down, and rows are left to run
};

/// Every entry on every shape, dtype and tile mode. A stage that cannot run on a shape, or whose
/// kernel is at fault, is a record that says so; the rest goes on, after a fault of a GPU in a new
/// process: `done` are the records of the one before, which are taken as they are.
Run run_all(Device& device, const Options& o, const std::vector<Shape>& shapes,
            const std::vector<Entry>& entries, const Environment& environment,
            const Listener& listener, const std::vector<Record>& done = {});

}  // namespace fa2::compare

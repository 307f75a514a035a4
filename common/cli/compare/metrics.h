#pragma once
// What reports show of the counters: a few sums that a person can follow.
#include <span>
#include <string>

#include "common/cli/compare/record.h"

namespace fa2::compare {

/// One number of a record that has counters.
struct Metric {
  const char* name;  // "block barriers"
  const char* head;  // of its column; empty: only reported where it moved
  const char* unit;  // of what show() gives: " KiB"
  double (*value)(const Record& r);
  std::string (*show)(double value);
};

/// In the order of the columns.
std::span<const Metric> metrics();

}  // namespace fa2::compare

#pragma once
#include <string>

#include "common/cli/compare/record.h"

namespace fa2::compare {

/// One line per record, one column per field; empty where a field does not apply. The counters are
/// the last columns, exact.
std::string to_csv(const Results& results);

}  // namespace fa2::compare

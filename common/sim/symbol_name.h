#pragma once
#include <string>

namespace fa2::sim {

/// The readable name of the function at this address, as its source has it: without namespaces and
/// parameters; "" if the program has no symbol for it.
std::string symbol_name(const void* function);

}  // namespace fa2::sim

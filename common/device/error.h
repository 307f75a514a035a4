#pragma once
#include <stdexcept>

namespace fa2 {

/// What went wrong, in one sentence for a person.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace fa2

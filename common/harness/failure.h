#pragma once
// Errors of the harness: a sentence for a person and the status that the C interface returns.
#include <string>

#include "common/device/error.h"
#include "common/harness/fa2.h"

namespace fa2 {

struct Failure : Error {
  fa2_status status;
  Failure(fa2_status status, const std::string& sentence) : Error(sentence), status(status) {}
};

[[noreturn]] inline void invalid(const std::string& sentence) {
  throw Failure(FA2_INVALID_ARGUMENT, sentence);
}

/// Stores the sentence for fa2_last_error() of this thread.
void set_last_error(const std::string& sentence) noexcept;

/// The status of the exception being handled, whose sentence is stored. Call from a catch block.
fa2_status status_of_current_exception() noexcept;

}  // namespace fa2

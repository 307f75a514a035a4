// libFuzzer: files of results, as --against and the recorded times read them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "common/cli/compare/against.h"
#include "common/cli/compare/csv.h"
#include "common/cli/compare/record.h"
#include "common/device/error.h"

namespace {

using namespace fa2::compare;

/// What is done with a file that could be read.
void use(const Results& results) {
  const std::string text = to_json(results).dump();
  const Results again = results_from_json(nlohmann::ordered_json::parse(text));
  if (again.records.size() != results.records.size() || to_json(again).dump() != text) std::abort();
  const Comparison c = compare_with(results.records, again.records);
  (void)text_of(c, "file", results.environment);
  for (const Record& r : results.records) (void)(label(r) + label(r.shape));
  (void)to_csv(results);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const int file = memfd_create("results", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  Results results;
  try {
    results = read_results(path);
  } catch (const fa2::Error&) {  // a sentence for a person
    return 0;
  }
  use(results);
  return 0;
}

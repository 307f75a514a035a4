#include "common/harness/host_memory.h"

#include <fstream>
#include <string>

#include "common/harness/failure.h"
#include "common/harness/text.h"

namespace fa2 {

std::optional<int64_t> free_host_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    int64_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return {};
}

void require_host_memory(const char* what, int64_t bytes) {
  const std::optional<int64_t> free = free_host_memory();
  if (free && bytes > *free)
    throw Failure(FA2_UNSUPPORTED, std::string(what) + " need " + with_commas(bytes) +
                                       " bytes of host memory; " + with_commas(*free) +
                                       " are free.");
}

}  // namespace fa2

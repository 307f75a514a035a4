// libFuzzer: the command lines of the programs, one argument a line of the input.
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "common/cli/compare/options.h"
#include "common/cli/compare/shapes.h"
#include "common/cli/fuzz/options.h"
#include "common/device/error.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return std::freopen("/dev/null", "w", stdout) == nullptr;  // --help
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::vector<std::string> arguments;
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes), size));
  for (std::string line; std::getline(lines, line);)
    arguments.push_back(line.substr(0, line.find('\0')));
  try {
    if (const auto options = fa2::compare::parse_options(arguments))
      for (const char* backend : {"sim", "cuda"}) fa2::compare::shapes_of(options->shapes, backend);
  } catch (const fa2::Error&) {  // a sentence for a person; everything else is a mistake of ours
  }
  try {
    (void)fa2::fuzzing::parse_options(arguments);
  } catch (const fa2::Error&) {
  }
  return 0;
}

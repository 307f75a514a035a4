#include "common/harness/environment.h"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>

namespace fa2 {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";  // other systems, and some Arm kernels, do not say
}

/// The version of the loaded kernel driver, such as "580.159.04"; empty if it does not tell.
std::string loaded_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::smatch found;
  return std::regex_search(line, found, std::regex(R"(\s(\d+\.\d+(\.\d+)?)\s)")) ? found[1].str()
                                                                                 : std::string();
}

std::string compiler_name() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#elif defined(__GNUC__)
  return "g++ " __VERSION__;
#else
  return "";
#endif
}

std::string commit() {
  if (const char* from_launcher = std::getenv("FA2_COMMIT")) return from_launcher;
#ifdef FA2_BUILD_COMMIT
  return FA2_BUILD_COMMIT;
#else
  return "";
#endif
}

}  // namespace

Environment environment_of(const Device& device) {
  Environment out;
  const DeviceInfo& info = device.info();
  out.cpu = cpu_name();
  out.gpu = info.name;
  out.compute_capability = std::to_string(info.compute_capability / 10) + "." +
                           std::to_string(info.compute_capability % 10);
  if (info.backend == Backend::cuda) {
    out.driver = loaded_driver();
    if (out.driver.empty()) out.driver = cuda_driver_version();
    out.cuda = cuda_toolkit_version();
  }
  out.compiler = compiler_name();
  out.commit = commit();
  return out;
}

}  // namespace fa2

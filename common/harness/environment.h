#pragma once
// Where a number was measured: every record carries this.
#include <string>

#include "common/harness/device.h"

namespace fa2 {

/// "" where something is unknown or does not apply.
struct Environment {
  std::string cpu;                 // "AMD EPYC 9554"
  std::string gpu;                 // of the device, simulated or not
  std::string compute_capability;  // "9.0"
  std::string driver;              // "580.159.04"; else the newest CUDA that it runs, "13.0"
  std::string cuda;                // version of the CUDA Toolkit of this build, "13.0"
  std::string compiler;            // of the host code, "g++ 12.2.0"
  std::string commit;              // of the sources; "-dirty" appended if they were changed
};

/// The commit is what the launcher put into FA2_COMMIT, else what the build knew.
Environment environment_of(const Device& device);

/// Versions of the CUDA driver and toolkit, "" without.
std::string cuda_driver_version();
std::string cuda_toolkit_version();

}  // namespace fa2

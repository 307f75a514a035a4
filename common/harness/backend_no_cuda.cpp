// What stands for the GPU backend in a build without the CUDA Toolkit.
#include "common/harness/device.h"
#include "common/harness/environment.h"
#include "common/harness/failure.h"

namespace fa2 {
namespace {

[[noreturn]] void not_built() {
  throw Failure(
      FA2_CANNOT_RUN_HERE,
      "this build has no GPU backend, because it was made without the CUDA Toolkit (nvcc); "
      "use the simulator, or build with the preset \"cuda\".");
}

}  // namespace

DeviceInfo cuda_info() { not_built(); }
void cuda_launch(const Call&, void*) { not_built(); }
void cuda_check_pointers(const Call&) { not_built(); }
std::unique_ptr<Device> make_cuda_device() { not_built(); }
double cuda_mma_tflops() { not_built(); }

std::string cuda_driver_version() { return ""; }
std::string cuda_toolkit_version() { return ""; }

}  // namespace fa2

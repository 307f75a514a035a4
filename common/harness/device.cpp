#include "common/harness/device.h"

namespace fa2 {

std::unique_ptr<Device> make_device(const DeviceOptions& options) {
  return options.backend == Backend::sim ? make_sim_device(options) : make_cuda_device();
}

}  // namespace fa2

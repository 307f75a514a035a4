// Finding a GPU, launching on it, and its errors.
#include "common/harness/backend_cuda.h"

#include <map>
#include <mutex>

#include "common/harness/device.h"
#include "common/harness/environment.h"
#include "common/harness/shape.h"

namespace fa2 {
namespace cuda {
namespace {

std::mutex lost_mutex;
std::string lost_because;  // the first fault; empty while the GPU is usable

}  // namespace

void check_usable() {
  const std::lock_guard lock(lost_mutex);
  if (!lost_because.empty())
    throw Failure(FA2_KERNEL_FAILED,
                  "not run: the GPU is unusable for this process since " + lost_because);
}

void check(cudaError_t status, const std::string& doing) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // forget it, unless it is one of those that stay
  const std::string sentence = doing + " failed: " + cudaGetErrorString(status) + ".";
  if (cudaDeviceSynchronize() != cudaSuccess) {
    const std::lock_guard lock(lost_mutex);
    if (lost_because.empty()) lost_because = sentence;
  }
  throw Failure(FA2_KERNEL_FAILED, sentence);
}

}  // namespace cuda

namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// The thread's current GPU. Throws Failure if there is none.
int current_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) (void)cudaGetLastError();
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    throw Failure(FA2_CANNOT_RUN_HERE,
                  driver == 0 ? "no NVIDIA driver was found."
                              : "the NVIDIA driver supports CUDA " + version_text(driver) +
                                    " at most, and this build uses CUDA " +
                                    version_text(CUDART_VERSION) + "; update the driver.");
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    throw Failure(FA2_CANNOT_RUN_HERE, "no NVIDIA GPU was found.");
  if (status != cudaSuccess)
    throw Failure(FA2_CANNOT_RUN_HERE,
                  std::string("the GPU cannot be used: ") + cudaGetErrorString(status) + ".");
  int gpu = 0;
  cuda::check(cudaGetDevice(&gpu), "asking for the current GPU");
  return gpu;
}

int attribute(cudaDeviceAttr which, int gpu) {
  int value = 0;
  cuda::check(cudaDeviceGetAttribute(&value, which, gpu), "asking the GPU for its limits");
  return value;
}

DeviceInfo describe(int gpu) {
  cudaDeviceProp properties;
  cuda::check(cudaGetDeviceProperties(&properties, gpu), "asking the GPU for its name");
  DeviceInfo info;
  info.backend = Backend::cuda;
  info.name = properties.name;
  info.compute_capability = 10 * properties.major + properties.minor;
  info.limits.shared_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu);
  info.limits.sms = properties.multiProcessorCount;
  info.memory_bytes = properties.totalGlobalMem;
  info.L2_bytes = static_cast<size_t>(properties.l2CacheSize);
  return info;
}

void check_pointer(const char* name, const void* pointer, int64_t elements, int gpu) {
  if (elements == 0) return;
  cudaPointerAttributes found{};
  const cudaError_t status = cudaPointerGetAttributes(&found, pointer);
  if (status != cudaSuccess) (void)cudaGetLastError();
  if (status != cudaSuccess || found.type == cudaMemoryTypeUnregistered)
    invalid(std::string(name) + " is not memory of a GPU; the CUDA backend needs device memory.");
  if (found.type == cudaMemoryTypeDevice && found.device != gpu)
    invalid(std::string(name) + " is memory of GPU " + std::to_string(found.device) +
            "; the current GPU is " + std::to_string(gpu) + ".");
}

}  // namespace

std::string cuda_driver_version() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) (void)cudaGetLastError();
  return version == 0 ? "" : version_text(version);
}

std::string cuda_toolkit_version() { return version_text(CUDART_VERSION); }

DeviceInfo cuda_info() {
  static std::mutex mutex;
  static std::map<int, DeviceInfo> known;
  const int gpu = current_gpu();
  const std::lock_guard lock(mutex);
  const auto found = known.find(gpu);
  if (found != known.end()) return found->second;
  const DeviceInfo info = describe(gpu);
  if (info.compute_capability < 80)
    throw Failure(FA2_CANNOT_RUN_HERE, "the GPU (" + info.name + ") has compute capability " +
                                           std::to_string(info.compute_capability / 10) + "." +
                                           std::to_string(info.compute_capability % 10) +
                                           "; 8.0 or later is needed (bf16, cp.async).");
  return known[gpu] = info;
}

void cuda_check_pointers(const Call& call) {
  const int gpu = current_gpu();
  if (attribute(cudaDevAttrPageableMemoryAccess, gpu) != 0) return;  // any memory will do
  const Problem& p = call.problem;
  const Tensors& x = call.tensors;
  check_pointer("q", x.Q, shape_q(p).elements(), gpu);
  check_pointer("k", x.K, shape_kv(p).elements(), gpu);
  check_pointer("v", x.V, shape_kv(p).elements(), gpu);
  check_pointer("o", x.O, shape_q(p).elements(), gpu);
  check_pointer("lse", x.LSE, output_rows(p), gpu);
  check_pointer("workspace", x.workspace, static_cast<int64_t>(call.workspace_bytes), gpu);
}

void cuda_launch(const Call& call, void* stream) {
  if (!has_output(call.problem)) return;
  cuda::check_usable();
  try {
    call.variant->forward(call.problem, call.tensors, call.tile_row, stream);
  } catch (const Failure&) {
    throw;
  } catch (const Error& error) {
    (void)cudaGetLastError();  // reported here; the caller's next CUDA call must not see it again
    throw Failure(FA2_KERNEL_FAILED, std::string(call.stage) + ": " + error.what());
  }
}

}  // namespace fa2

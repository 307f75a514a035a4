#pragma once
// The machine that runs a stage, the simulator or a GPU, behind one interface.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/device/problem.h"
#include "common/device/stage.h"
#include "common/harness/counters.h"
#include "common/harness/registry.h"
#include "common/harness/tiles.h"

namespace fa2 {

namespace sim {
class Observer;
}

/// Which machine. The fields after `backend` concern the simulator only; see fa2_options.
struct DeviceOptions {
  Backend backend = Backend::sim;
  std::string gpu{};   // key of the simulated GPU; "": the default
  int os_threads = 0;  // 0: all cores
  int order = 0;       // FA2_ORDER_*
  uint64_t seed = 0;
  sim::Observer* observer = nullptr;  // of launches, see common/sim/observer.h
  unsigned max_grid_y = 65535;        // less: where y ends, on a small problem
};

struct DeviceInfo {
  Backend backend = Backend::sim;
  std::string name;            // "NVIDIA H200", or "simulated NVIDIA H200"
  int compute_capability = 0;  // times 10: 90 is sm_90
  GpuLimits limits{};
  size_t memory_bytes = 0;  // 0 on the simulator
  size_t L2_bytes = 0;      // 0 on the simulator
};

/// One call of a stage, ready to launch: its problem is validated and its tile chosen.
struct Call {
  const char* stage;
  const Variant* variant;
  int tile_row;
  Problem problem;
  Tensors tensors;
  size_t workspace_bytes;
};

struct TimingOptions {
  int warm_up = 10;
  int runs = 20;
};

/// Milliseconds per call.
struct Timing {
  double median_ms, fastest_ms, slowest_ms;
  int runs;           // measurements
  int calls_per_run;  // calls between two events: more than one where a call is very short
};

/// Every member function throws Failure with a sentence. Use one Device from one thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  /// Memory that kernels can use, aligned to 256 bytes; not cleared.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void upload(void* to, const void* from, size_t bytes) = 0;
  virtual void download(void* to, const void* from, size_t bytes) = 0;
  virtual void fill(void* to, unsigned char byte, size_t bytes) = 0;

  /// Launches the call and waits for its end. `counters` may be null; a GPU sets them to zero.
  virtual void run(const Call& call, fa2_counters* counters) = 0;

  /// Median over runs after a warm-up, by the device's own clock. The calls, equal but for their
  /// buffers, take turns: with enough of them no input is left in the L2 cache. Only on a GPU.
  virtual Timing time(std::span<const Call> calls, const TimingOptions& options) = 0;
};

/// Throws Failure if there is no such machine here, saying why.
std::unique_ptr<Device> make_device(const DeviceOptions& options);

/// Memory of a device, released at the end. It begins `lead` bytes after a multiple of 256.
class DeviceMemory {
 public:
  DeviceMemory(Device& device, size_t bytes, size_t lead = 0)
      : device_(&device), address_(device.allocate(lead + bytes)), bytes_(bytes), lead_(lead) {}
  ~DeviceMemory() { device_->release(address_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// The address `offset` bytes from the start.
  char* at(size_t offset) const { return static_cast<char*>(address_) + lead_ + offset; }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_;
  void* address_;
  size_t bytes_, lead_;
};

// ---- The two backends, as make_device and the C interface use them
// --------------------------------

DeviceInfo sim_info(const DeviceOptions& options);
void sim_launch(const DeviceOptions& options, const Call& call, fa2_counters* counters);
std::unique_ptr<Device> make_sim_device(const DeviceOptions& options);

DeviceInfo cuda_info();  // of the thread's current GPU
void cuda_launch(const Call& call, void* stream);
void cuda_check_pointers(const Call& call);  // refuses host memory
std::unique_ptr<Device> make_cuda_device();

/// What mma.sync (m16n8k16, fp16, fp32 accumulate, operands in registers) reaches on the current
/// GPU, in TFLOP/s; measured in about 50 ms.
double cuda_mma_tflops();

}  // namespace fa2

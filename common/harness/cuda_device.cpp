// A GPU as a Device.
#include <algorithm>
#include <vector>

#include "common/harness/backend_cuda.h"
#include "common/harness/device.h"
#include "common/harness/text.h"

namespace fa2 {
namespace {

using cuda::check;
using cuda::Event;

/// Several calls, recorded once and replayed without the host's launch costs.
class Graph {
 public:
  Graph(std::span<const Call> calls, int count, cudaStream_t stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording the calls");
    try {
      for (int i = 0; i < count; ++i) cuda_launch(calls[i % calls.size()], stream);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);
      release();
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph_), "recording the calls");
    check(cudaGraphInstantiate(&executable_, graph_, 0), "preparing the recorded calls");
  }
  ~Graph() { release(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) {
    check(cudaGraphLaunch(executable_, stream), "replaying the calls");
  }

 private:
  void release() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

class CudaDevice : public Device {
 public:
  CudaDevice() : info_(cuda_info()) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  }
  ~CudaDevice() override { cudaStreamDestroy(stream_); }

  const DeviceInfo& info() const override { return info_; }

  void* allocate(size_t bytes) override {
    cuda::check_usable();
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      size_t free = 0, total = 0;
      check(cudaMemGetInfo(&free, &total), "asking for the free memory");
      throw Failure(FA2_UNSUPPORTED, "out of GPU memory: " + with_commas(bytes) +
                                         " bytes are needed, " + with_commas(free) + " are free.");
    }
    check(status, "allocating GPU memory");
    return memory;
  }
  void release(void* memory) noexcept override { cudaFree(memory); }

  void upload(void* to, const void* from, size_t bytes) override {
    cuda::check_usable();
    check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
    check(cudaStreamSynchronize(nullptr), "copying to the GPU");
  }
  void download(void* to, const void* from, size_t bytes) override {
    cuda::check_usable();
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copying from the GPU");
  }

  void fill(void* to, unsigned char byte, size_t bytes) override {
    cuda::check_usable();
    check(cudaMemsetAsync(to, byte, bytes, stream_), "filling GPU memory");
    check(cudaStreamSynchronize(stream_), "filling GPU memory");
  }

  void run(const Call& call, fa2_counters* counters) override {
    if (counters != nullptr) *counters = {};
    cuda_launch(call, stream_);
    finish(call);
  }

  Timing time(std::span<const Call> calls, const TimingOptions& options) override {
    const int sets = static_cast<int>(calls.size());
    run(calls[0], nullptr);
    const int per_run = (calls_for_a_millisecond(calls[0]) + sets - 1) / sets * sets;
    Graph graph(calls, per_run, stream_);
    for (int done = 0; done < options.warm_up; done += per_run) graph.launch(stream_);
    // Everything is queued before the first replay ends, so no launch leaves a gap on the GPU.
    std::vector<Event> events(static_cast<size_t>(options.runs) + 1);
    events[0].record(stream_);
    for (int i = 1; i <= options.runs; ++i) {
      graph.launch(stream_);
      events[i].record(stream_);
    }
    finish(calls[0]);
    std::vector<double> ms;
    for (int i = 1; i <= options.runs; ++i)
      ms.push_back(events[i].milliseconds_since(events[i - 1]) / per_run);
    std::sort(ms.begin(), ms.end());
    const size_t half = ms.size() / 2;
    const double median = ms.size() % 2 == 1 ? ms[half] : (ms[half - 1] + ms[half]) / 2;
    return {median, ms.front(), ms.back(), options.runs, per_run};
  }

 private:
  void finish(const Call& call) {
    check(cudaStreamSynchronize(stream_), std::string(call.stage) + ": the kernel");
  }

  int calls_for_a_millisecond(const Call& call) {
    Event start, stop;
    start.record(stream_);
    for (int i = 0; i < 3; ++i) cuda_launch(call, stream_);
    stop.record(stream_);
    finish(call);
    const double ms = std::max(stop.milliseconds_since(start) / 3, 1e-3);
    return std::clamp(static_cast<int>(1 / ms) + 1, 1, 200);
  }

  DeviceInfo info_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device() {
  cuda::check_usable();  // first: after a fault even the questions about the GPU may fail
  return std::make_unique<CudaDevice>();
}

}  // namespace fa2

#pragma once
// What the two files of the GPU backend share: errors of the CUDA runtime as sentences.
#include <cuda_runtime_api.h>

#include <string>

#include "common/harness/failure.h"

namespace fa2::cuda {

/// Throws Failure if a runtime call failed: "<doing> failed: <CUDA's words>". A fault of a kernel
/// leaves the GPU unusable for this process; from then on every call says so, naming the first.
void check(cudaError_t status, const std::string& doing);

/// Throws Failure if an earlier fault left the GPU unusable.
void check_usable();

/// A point in time on the GPU.
class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "creating an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "recording an event"); }
  double milliseconds_since(const Event& earlier) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, earlier.event_, event_), "reading the time");
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace fa2::cuda

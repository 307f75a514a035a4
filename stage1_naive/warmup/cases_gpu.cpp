// The warm-ups on a GPU. A file of its own: CUDA's headers and the simulator's do not mix.
#include <cuda_runtime.h>

#include <cmath>
#include <stdexcept>

#include "stage1_naive/warmup/cases.h"

namespace fa2::warmup {
namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

/// An array in GPU memory, with a copy of `bytes` bytes from the host.
class Array {
 public:
  Array(const void* from, size_t bytes) {
    check(cudaMalloc(&address_, bytes));
    check(cudaMemcpy(address_, from, bytes, cudaMemcpyHostToDevice));
  }
  ~Array() { cudaFree(address_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  void* get() const { return address_; }

 private:
  void* address_ = nullptr;
};

}  // namespace

std::vector<float> run_on_gpu(const Case& c) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) return {};
  std::vector<float> out(c.right.size(), NAN);
  const Array in0(c.in[0].data(), c.in[0].size()), in1(c.in.back().data(), c.in.back().size());
  const Array out_gpu(out.data(), out.size() * sizeof(float));
  const void* in[] = {in0.get(), in1.get()};
  c.on_gpu(in, static_cast<float*>(out_gpu.get()));
  check(cudaMemcpy(out.data(), out_gpu.get(), out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return out;
}

}  // namespace fa2::warmup

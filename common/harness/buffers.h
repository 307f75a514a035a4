#pragma once
// The memory of one call on a device, between guards that must survive it.
#include <memory>
#include <string>
#include <vector>

#include "common/harness/device.h"
#include "common/harness/tensor.h"
#include "common/harness/workload.h"

namespace fa2 {

/// What a call has written, back on the host with everything around it.
struct Outputs {
  HostTensor O;
  std::vector<float> LSE;  // [batch][heads_q][Nq]
  std::string damage;      // where something was written out of bounds; "" if nowhere
};

/// Where a tensor's first element lies.
enum class Placement {
  least_aligned,  // 16 bytes after a multiple of 32: no better than the contract asks for
  aligned         // at a multiple of 256, as from an allocator: no row straddles two cache lines
};

class Buffers {
 public:
  /// Allocates and uploads the inputs. Throws Failure.
  Buffers(Device& device, const Workload& workload, size_t workspace_bytes,
          Placement placement = Placement::least_aligned);

  Tensors tensors() const;

  /// Fills O, LSE and the workspace with NaN and their surroundings with a pattern.
  void poison_outputs();

  Outputs download();

 private:
  std::string find_damage(const HostTensor& O, const std::vector<uint32_t>& LSE_raw);

  Device& device_;
  const Workload& workload_;
  size_t workspace_bytes_;
  DeviceMemory Q_, K_, V_, O_, LSE_, workspace_;
};

}  // namespace fa2

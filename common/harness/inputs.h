#pragma once
// Fills Q, K and V as a Spec says.
#include "common/harness/spec.h"
#include "common/harness/tensor.h"

namespace fa2 {

struct InputTensors {
  HostTensor Q, K, V;
};

/// The inputs of a problem. An element depends on the seed, its tensor and its (batch, head, row,
/// column) alone: problems of another size or layout share what they have in common.
InputTensors make_inputs(const Spec& spec, const Problem& problem);

/// Whether these inputs hold NaN or infinity.
bool has_nonfinite(Inputs inputs);

}  // namespace fa2

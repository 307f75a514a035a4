#pragma once
#include <string>

namespace fa2::compare {

/// The datasheet's TFLOP/s for dense 16-bit matrix products with fp32 accumulation (on GeForce
/// cards half of the headline, which is for fp16 accumulation). 0 for a GPU that is not in the
/// table.
double datasheet_tflops(const std::string& gpu);

}  // namespace fa2::compare

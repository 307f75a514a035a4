// Arithmetic that no optimizer may see: at compile time it would round differently than libm does.
#include <cmath>

#include "common/sim/registers.h"

namespace fa2::sim {

float exp2_flushed(float x) { return x < -126.f ? 0.f : std::exp2(x); }
float fma_rounded_once(float a, float b, float c) { return std::fma(a, b, c); }
float log2_of(float x) { return std::log2(x); }

}  // namespace fa2::sim

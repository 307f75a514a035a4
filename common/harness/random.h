#pragma once
// Random numbers by counter: the value at a position depends on the position alone, never on the
// order or number of draws, and has the same bits on every machine.
#include <cstdint>
#include <initializer_list>

namespace fa2 {

/// 64 well-mixed bits (SplitMix64, Steele et al. 2014).
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/// A number with mean 0 and variance 1, as good as normal: the sum of eight uniform ones.
inline float normal(uint64_t key) {
  int64_t sum = 0;
  for (uint64_t word : {mix(key), mix(~key)})
    for (; word != 0; word >>= 16) sum += static_cast<int64_t>(word & 0xffff);
  constexpr double mean = 8 * 65535 / 2.0, deviation = 53509.92;  // 65536 sqrt(8 / 12)
  return static_cast<float>((static_cast<double>(sum) - mean) / deviation);
}

/// A sequence of draws, where positions would be clumsy.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t next() { return mix(state_++); }
  /// Uniform in [low, high], both included.
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return in(1, 100) <= percent; }
  template <class T, int n>
  const T& pick(const T (&choices)[n]) {
    return choices[in(0, n - 1)];
  }

 private:
  uint64_t state_;
};

}  // namespace fa2

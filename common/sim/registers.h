#pragma once
// reg<Tag>: a float register whose arithmetic is counted by what it holds.
#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <type_traits>

#include "common/sim/primitives.h"

namespace fa2::sim {

struct S_tag {};     // scores and probabilities
struct O_tag {};     // the output accumulator and its partial products
struct stat_tag {};  // row statistics: m, l and the factors made from them

enum class Flop { add, mul, fma };

/// Counts one operation of the running lane; host code counts nothing.
template <class Tag, Flop flop>
inline void count() {
  if (running() == nullptr) return;
  fa2_counters& c = *running()->counters;
  if constexpr (std::is_same_v<Tag, O_tag>)
    ++(flop == Flop::add ? c.fp32_add_O : flop == Flop::mul ? c.fp32_mul_O : c.fp32_fma_O);
  else if constexpr (std::is_same_v<Tag, S_tag>)
    ++(flop == Flop::add ? c.fp32_add_S : flop == Flop::mul ? c.fp32_mul_S : c.fp32_fma_S);
  else
    ++(flop == Flop::add ? c.fp32_add_stat : flop == Flop::mul ? c.fp32_mul_stat : c.fp32_fma_stat);
}
inline void count_normalisation() {
  if (running() != nullptr) ++running()->counters->normalisations;
}

template <class Tag>
class reg {
 public:
  reg() = default;
  template <class U>
  requires(std::convertible_to<U, float>) reg(U&& value)
      : value_(static_cast<float>(std::forward<U>(value))) {}
  operator float() const { return value_; }

  // A compound assignment is work on its left side.
  template <std::convertible_to<float> U>
  reg& operator+=(U&& b) {
    count<Tag, Flop::add>();
    value_ += static_cast<float>(std::forward<U>(b));
    return *this;
  }
  template <std::convertible_to<float> U>
  reg& operator-=(U&& b) {
    count<Tag, Flop::add>();
    value_ -= static_cast<float>(std::forward<U>(b));
    return *this;
  }
  template <std::convertible_to<float> U>
  reg& operator*=(U&& b) {
    count<Tag, Flop::mul>();
    value_ *= static_cast<float>(std::forward<U>(b));
    return *this;
  }
  /// A division is a reciprocal and a multiplication.
  template <std::convertible_to<float> U>
  reg& operator/=(U&& b) {
    count<Tag, Flop::mul>();
    count_normalisation();
    value_ /= static_cast<float>(std::forward<U>(b));
    return *this;
  }
  reg operator-() const { return -value_; }  // free: part of the instruction that uses it

 private:
  float value_;
};

template <class T>
constexpr bool is_reg = false;
template <class Tag>
constexpr bool is_reg<reg<Tag>> = true;

// The tag of an operation on different ones: O over S over statistics.
template <class T>
constexpr int rank = 0;
template <>
inline constexpr int rank<reg<stat_tag>> = 1;
template <>
inline constexpr int rank<reg<S_tag>> = 2;
template <>
inline constexpr int rank<reg<O_tag>> = 3;
template <int>
struct TagOfRank;
template <>
struct TagOfRank<1> {
  using type = stat_tag;
};
template <>
struct TagOfRank<2> {
  using type = S_tag;
};
template <>
struct TagOfRank<3> {
  using type = O_tag;
};
template <class... T>
constexpr int highest_rank() {
  int highest = 0;
  ((highest = rank<std::remove_cvref_t<T>> > highest ? rank<std::remove_cvref_t<T>> : highest),
   ...);
  return highest;
}
template <class... T>
using TagOf = typename TagOfRank<highest_rank<T...>()>::type;

/// Numbers of which at least one is a counted register.
template <class... T>
concept Counted = (std::convertible_to<T, float> && ...) && (highest_rank<T...>() > 0);

template <class A, class B>
requires Counted<A, B> reg<TagOf<A, B>>
operator+(A&& a, B&& b) {
  count<TagOf<A, B>, Flop::add>();
  return static_cast<float>(std::forward<A>(a)) + static_cast<float>(std::forward<B>(b));
}
template <class A, class B>
requires Counted<A, B> reg<TagOf<A, B>>
operator-(A&& a, B&& b) {
  count<TagOf<A, B>, Flop::add>();
  return static_cast<float>(std::forward<A>(a)) - static_cast<float>(std::forward<B>(b));
}
template <class A, class B>
requires Counted<A, B> reg<TagOf<A, B>>
operator*(A&& a, B&& b) {
  count<TagOf<A, B>, Flop::mul>();
  return static_cast<float>(std::forward<A>(a)) * static_cast<float>(std::forward<B>(b));
}
template <class A, class B>
requires Counted<A, B> reg<TagOf<A, B>>
operator/(A&& a, B&& b) {
  count<TagOf<A, B>, Flop::mul>();
  count_normalisation();
  return static_cast<float>(std::forward<A>(a)) / static_cast<float>(std::forward<B>(b));
}

/// The larger one; a NaN loses, as in fmaxf. Not counted.
inline float max(float a, float b) { return a < b || std::isnan(a) ? b : a; }

/// The largest by their bits as integers: by value too if one is not negative. Not counted.
inline float max_of_bits(float a, float b, float c) {
  const auto bits = [](float x) { return std::bit_cast<int32_t>(x); };
  return std::bit_cast<float>(std::max({bits(a), bits(b), bits(c)}));
}

/// 2^x as ex2.approx.ftz has it: 0 where the result would be subnormal.
float exp2_flushed(float x);
/// a * b + c, rounded once.
float fma_rounded_once(float a, float b, float c);
float log2_of(float x);

}  // namespace fa2::sim

#pragma once
// Pointers into global and shared memory. What p[i] yields stands for the element: reading and
// writing it go through the machine, once each. `auto v = p[i]` would not read at all, so such a v
// cannot be used: its conversions want a temporary.
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "common/sim/primitives.h"

namespace fa2::sim {

template <class T>
constexpr bool is_access_size = sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0;

/// What every element can do, given load() and store().
template <class Self, class T>
class Element {
 public:
  Element() = default;
  Element(const Element&) = default;
  Element& operator=(const Element&) = delete;  // `a[i] = b[j]` reads b[j]: see the operator below

  operator T() && { return self().load(); }
  template <class U>
  requires(!std::is_same_v<U, T> && !std::is_reference_v<U> && std::is_arithmetic_v<U> &&
           requires(T value) { static_cast<U>(value); }) explicit
  operator U() && {
    return static_cast<U>(self().load());
  }

 protected:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

/// An element of shared memory.
template <class T>
class SharedElement : public Element<SharedElement<T>, T> {
 public:
  SharedElement(uint32_t address, uint32_t array, Site site)
      : address_(address), array_(array), site_(site) {}
  SharedElement(const SharedElement&) = default;
  void operator=(T value) && { store(value); }
  void operator=(SharedElement&& other) && { store(other.load()); }

 private:
  friend Element<SharedElement<T>, T>;
  T load() const {
    T value;
    std::memcpy(&value, shared_access(address_, array_, sizeof(T), false, site_), sizeof(T));
    return value;
  }
  void store(T value) const {
    std::memcpy(shared_access(address_, array_, sizeof(T), true, site_), &value, sizeof(T));
  }

  uint32_t address_, array_;
  Site site_;
};

/// A pointer into shared memory: a 32-bit address, and the array that it was made for.
template <class T>
struct sptr {
  static_assert(is_access_size<T>, "one access moves 1, 2, 4, 8 or 16 bytes");
  uint32_t address;
  uint32_t array;

  SharedElement<T> operator[](Index i) const { return {moved(i.value), array, i.site}; }
  sptr operator+(int64_t i) const { return {moved(i), array}; }
  sptr operator-(int64_t i) const { return {moved(-i), array}; }
  sptr operator^(int64_t i) const {  // flips bits of the address: for swizzles
    return {address ^ static_cast<uint32_t>(i * static_cast<int64_t>(sizeof(T))), array};
  }

 private:
  uint32_t moved(int64_t i) const {
    return address + static_cast<uint32_t>(i * static_cast<int64_t>(sizeof(T)));
  }
};

/// An element of global memory.
template <class T>
class GlobalElement : public Element<GlobalElement<T>, std::remove_const_t<T>> {
  using Value = std::remove_const_t<T>;

 public:
  GlobalElement(T* pointer, const GlobalArray* home, Site site)
      : pointer_(pointer), home_(home), site_(site) {}
  GlobalElement(const GlobalElement&) = default;
  void operator=(Value value) && requires(!std::is_const_v<T>) { store(value); }
  void operator=(GlobalElement&& other) && requires(!std::is_const_v<T>) { store(other.load()); }

 private:
  friend Element<GlobalElement<T>, Value>;
  Value load() const {
    Value value;
    std::memcpy(&value, global_access(pointer_, home_, sizeof(T), false, site_), sizeof(T));
    return value;
  }
  void store(Value value) const {
    std::memcpy(global_access(pointer_, home_, sizeof(T), true, site_), &value, sizeof(T));
  }

  T* pointer_;
  const GlobalArray* home_;
  Site site_;
};

/// A pointer into global memory. It remembers the array that it was made for, so that an index that
/// runs from K into V is a mistake too.
template <class T>
class gptr {
  static_assert(is_access_size<T>, "one access moves 1, 2, 4, 8 or 16 bytes");

 public:
  gptr() : gptr(nullptr) {}
  gptr(T* pointer) : pointer_(pointer), home_(find_global(pointer)) {}
  template <class U>
  requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>) gptr(gptr<U> other)
      : pointer_(other.get()), home_(other.home()) {}

  GlobalElement<T> operator[](Index i) const { return {pointer_ + i.value, home_, i.site}; }
  gptr operator+(int64_t i) const { return {pointer_ + i, home_}; }
  gptr operator-(int64_t i) const { return {pointer_ - i, home_}; }
  gptr& operator+=(int64_t i) { return *this = *this + i; }
  gptr& operator-=(int64_t i) { return *this = *this - i; }
  bool operator==(std::nullptr_t) const { return pointer_ == nullptr; }
  explicit operator bool() const { return pointer_ != nullptr; }

  T* get() const { return pointer_; }
  const GlobalArray* home() const { return home_; }

 private:
  gptr(T* pointer, const GlobalArray* home) : pointer_(pointer), home_(home) {}

  T* pointer_;
  const GlobalArray* home_;
};

}  // namespace fa2::sim

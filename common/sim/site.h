#pragma once
// Where in a kernel's source something happens, in 8 bytes: sites travel with every access.
#include <concepts>
#include <cstdint>

namespace fa2::sim {

/// A line of a source file. As a default argument, `Site site = Site::here()` is the caller's line.
class Site {
 public:
  constexpr Site() = default;

  // std::source_location would do, but clang 14 does not have it.
  [[gnu::always_inline]] static Site here(const char* file = __builtin_FILE(),
                                          unsigned line = __builtin_LINE()) {
    Site site;
    site.bits_ = reinterpret_cast<uintptr_t>(file) | uint64_t{line} << pointer_bits;
    return site;
  }

  explicit operator bool() const { return bits_ != 0; }
  bool operator==(const Site&) const = default;
  const char* file() const {
    constexpr uint64_t pointer = (uint64_t{1} << pointer_bits) - 1;
    return bits_ == 0 ? "?" : reinterpret_cast<const char*>(bits_ & pointer);
  }
  int line() const { return static_cast<int>(bits_ >> pointer_bits); }

 private:
  static constexpr int pointer_bits = 48;  // as many as a user's address has on x86-64 and aarch64
  uint64_t bits_ = 0;
};

/// An index that knows the line it is used on: operator[] may have no default argument, but the
/// conversion of its parameter may.
struct Index {
  int64_t value;
  Site site;

  template <std::integral I>
  [[gnu::always_inline]] Index(I i, Site where = Site::here())
      : value(static_cast<int64_t>(i)), site(where) {}
};

}  // namespace fa2::sim

#pragma once

namespace secondsight {

/// Prints where and what, then aborts. Never reachable by input: a failed CHECK is our own mistake.
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace secondsight

/// States what must hold if the program is right, in every build type.
#define CHECK(condition)              \
  (__builtin_expect(!!(condition), 1) \
       ? static_cast<void>(0)         \
       : ::secondsight::check_failed(#condition, __FILE__, __LINE__))

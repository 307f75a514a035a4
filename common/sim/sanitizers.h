#pragma once
// Whether this build runs under a sanitizer that must be told about fibers.
#if defined(__SANITIZE_ADDRESS__)
#define FA2_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FA2_FIBER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FA2_FIBER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FA2_FIBER_TSAN 1
#endif
#endif
#ifndef FA2_FIBER_ASAN
#define FA2_FIBER_ASAN 0
#endif
#ifndef FA2_FIBER_TSAN
#define FA2_FIBER_TSAN 0
#endif

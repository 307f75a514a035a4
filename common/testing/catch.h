#pragma once
// Catch2 in either version: v3, or the single header of v2 that Debian 12 has.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

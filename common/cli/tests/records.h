#pragma once
// Records for the tests of the reports.
#include <cmath>
#include <string>

#include "common/cli/compare/record.h"
#include "common/device/error.h"

namespace fa2::compare::testing {

/// True if `action` throws fa2::Error with a sentence that has these words.
template <class Action>
bool mentions(Action action, const std::string& words) {
  try {
    action();
  } catch (const Error& e) {
    return std::string(e.what()).find(words) != std::string::npos;
  }
  return false;
}

inline bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

inline Environment environment() {
  Environment e;
  e.cpu = "some CPU";
  e.threads = 2;
  e.gpu = "NVIDIA H200";
  e.sms = 132;
  e.compute_capability = "9.0";
  e.peak_tflops = 989;
  e.driver = "580.1";
  e.cuda = "13.0";
  e.compiler = "g++ 12.2";
  e.commit = "abc1234";
  e.date = "2025-01-31";
  return e;
}

inline Record record(const char* stage, int number, const char* variant = "") {
  Record r;
  r.stage = stage;
  r.number = number;
  r.variant = variant;
  r.shape = {2, 16, 16, 4096, 4096, 128, false};
  r.tile = TileUsed{64, 128, 4, 1, 99328};
  r.max_abs_err = 0.0005;
  r.tolerance = 0.001;
  r.share_of_tolerance = 0.5;
  r.outcome = Outcome::right;
  r.environment = environment();
  return r;
}

inline Record timed(const char* stage, int number, double ms, double spread = 0.01,
                    const char* variant = "") {
  Record r = record(stage, number, variant);
  r.backend = "cuda";
  r.time_ms = ms;
  r.spread = spread;
  return r;
}

inline Record counted(const char* stage, int number, const char* variant = "") {
  Record r = record(stage, number, variant);
  r.backend = "sim";
  r.shape = {1, 2, 2, 512, 512, 64, false};
  r.environment.driver = r.environment.cuda = "";
  r.counters = fa2_counters{};
  r.counters->blocks = 2;
  r.counters->mma = 4096;
  r.waves = 2.0 / 132;
  return r;
}

}  // namespace fa2::compare::testing

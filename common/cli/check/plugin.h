#pragma once
// A kernel.cu that was compiled by itself into a shared library: a student's, or a variant under
// test. The library has one symbol, fa2_plugin_stage, whatever FA2_STAGE in the file names
// (fa2course/student/compiler.py makes it so), and takes the simulator from the program.
#include <string>

#include "common/device/stage.h"

namespace fa2 {

/// Loads the library and checks what its stage says of itself. It stays loaded. Throws Failure.
const Stage& load_plugin(const std::string& path);

}  // namespace fa2

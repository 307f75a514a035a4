# libfa2course: the harness, the simulator and every stage in one shared library, so that C++, C and
# Python use the same code. The registry of stages is generated from the list in stages.cmake.
get_property(symbols GLOBAL PROPERTY FA2_SYMBOLS)
set(declarations "")
foreach(backend sim gpu)
  set(pointers_${backend} "")
  if(backend STREQUAL "gpu" AND NOT FA2_WITH_CUDA)
    continue()
  endif()
  foreach(symbol IN LISTS symbols)
    string(APPEND declarations "namespace on_${backend} { extern const Stage ${symbol}; }\n")
    string(APPEND pointers_${backend} "&on_${backend}::${symbol}, ")
  endforeach()
endforeach()
set(registry "${PROJECT_BINARY_DIR}/generated/fa2_stage_list.cpp")
file(CONFIGURE OUTPUT "${registry}" @ONLY CONTENT [[
// Made by CMake from common/cmake/stages.cmake.
#include "common/harness/stage_list.h"

#include <vector>

namespace fa2 {
@declarations@
std::span<const Stage* const> sim_stages() {
  static const std::vector<const Stage*> all = {@pointers_sim@};
  return all;
}

std::span<const Stage* const> gpu_stages() {
  static const std::vector<const Stage*> all = {@pointers_gpu@};
  return all;
}
}  // namespace fa2
]])

# All objects of the simulator and the harness, not only those that a stage refers to: programs and
# tests link this library alone.
add_library(fa2course SHARED "${registry}"
  $<TARGET_OBJECTS:fa2_sim> $<TARGET_OBJECTS:fa2_harness>)
target_link_libraries(fa2course
  PUBLIC fa2_flags
  PRIVATE $<TARGET_PROPERTY:fa2_sim,LINK_LIBRARIES> $<TARGET_PROPERTY:fa2_harness,LINK_LIBRARIES>
    Threads::Threads ${CMAKE_DL_LIBS})
foreach(symbol IN LISTS symbols)
  target_link_libraries(fa2course PRIVATE ${symbol}_sim)
  if(FA2_WITH_CUDA)
    target_link_libraries(fa2course PRIVATE ${symbol}_gpu CUDA::cudart_static)
  endif()
endforeach()

# How a stage and a test are built. See common/cmake/stages.cmake for the list of stages.

# Catch2 takes longer to parse than most tests: once for all of them. (ccache would keep nothing
# that is compiled with such a header, and is the better of the two.)
if(NOT FA2_CCACHE)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/catch_header.cpp" CONTENT "int main() {}\n")
  add_executable(fa2_catch_header "${PROJECT_BINARY_DIR}/generated/catch_header.cpp")
  target_link_libraries(fa2_catch_header PRIVATE fa2_flags fa2_quick_build fa2_catch)
  target_precompile_headers(fa2_catch_header PRIVATE
    "${PROJECT_SOURCE_DIR}/common/testing/catch.h")
endif()

# fa2_add_test(<name> SOURCES <file.cpp>... [LIBRARIES <target>...] [TIMEOUT <seconds>] [COST <n>])
# A Catch2 executable <name>; every test case becomes a ctest test "<name>/<test case>" (no ';' in
# their names: CMake splits there). It links the whole course (fa2course) unless LIBRARIES names what
# it needs. ctest starts those of the highest COST first (where it does not yet know better).
function(fa2_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;COST" "SOURCES;LIBRARIES")
  if(NOT arg_LIBRARIES)
    set(arg_LIBRARIES fa2course)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE fa2_flags fa2_quick_build ${arg_LIBRARIES} fa2_catch)
  if(TARGET fa2_catch_header)
    target_precompile_headers(${name} REUSE_FROM fa2_catch_header)
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}/" DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${arg_TIMEOUT} COST ${arg_COST} LABELS ${name})
endfunction()

# fa2_add_kernels(<symbol> <file.cu> [OBJECTS <variable>])
# Compiles one .cu file once per backend. Targets <symbol>_sim and, with CUDA, <symbol>_gpu.
function(fa2_add_kernels symbol file)
  # The simulator compiles the same file as C++. It is included by a generated one-line .cpp, because
  # CMake keeps one language per source file and directory, and nvcc needs this one as CUDA.
  file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  set(wrapper "${CMAKE_CURRENT_BINARY_DIR}/${symbol}_sim.cpp")
  file(CONFIGURE OUTPUT "${wrapper}" @ONLY
    CONTENT "// Made by CMake: @path@ as C++, for the simulator.\n#include \"@path@\"\n")
  add_library(${symbol}_sim OBJECT "${wrapper}")
  target_link_libraries(${symbol}_sim PRIVATE fa2_flags fa2_sim)
  # Built a third faster than with -O2; stages 4 and 6 ran 3% and 9% longer.
  target_compile_options(${symbol}_sim PRIVATE $<$<CONFIG:Release>:-O1>)
  if(FA2_WITH_CUDA)
    add_library(${symbol}_gpu OBJECT ${file})
    target_link_libraries(${symbol}_gpu PRIVATE fa2_flags)
  endif()
  set_property(GLOBAL APPEND PROPERTY FA2_SYMBOLS ${symbol})
endfunction()

# fa2_add_stage(<folder> [VARIANTS <file.cu>...])
# Called from the folder's CMakeLists.txt. kernel.cu must define FA2_STAGE(<folder>), a variant file
# x.cu FA2_STAGE(<folder>_x). `cmake --build --preset sim --target <folder>` builds the stage with its
# test, `ctest --preset sim -R <folder>` runs it.
function(fa2_add_stage folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "VARIANTS")
  fa2_add_kernels(${folder} kernel.cu)
  foreach(file IN LISTS arg_VARIANTS)
    cmake_path(GET file STEM name)
    fa2_add_kernels(${folder}_${name} ${file})
  endforeach()
  string(REGEX MATCH "[0-9]+" number ${folder})  # the last stage has the longest test
  fa2_add_test(${folder}_test SOURCES test.cpp LIBRARIES fa2_testing COST ${number})
  add_custom_target(${folder} DEPENDS ${folder}_test)
endfunction()

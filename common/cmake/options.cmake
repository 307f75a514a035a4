# Options of the build and the flags that every target shares.
set(FA2_CUDA "AUTO" CACHE STRING "Build the GPU backend: ON, OFF, or AUTO (when nvcc is found)")
set_property(CACHE FA2_CUDA PROPERTY STRINGS AUTO ON OFF)
set(FA2_CUDA_ARCHITECTURES "" CACHE STRING
  "GPU architectures to compile for, e.g. 80;90 (empty: those of the GPUs here, else 80;90)")
option(FA2_WERROR "Treat warnings as errors" OFF)
set(FA2_SANITIZE "" CACHE STRING "Sanitizers for host code, e.g. address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)  # the build folder may be moved
set(CMAKE_CXX_FLAGS_RELEASE "-O2")    # asserts stay on: they are cheap here
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")

find_program(FA2_CCACHE ccache)
mark_as_advanced(FA2_CCACHE)
if(FA2_CCACHE)
  foreach(lang CXX CUDA)
    if(NOT CMAKE_${lang}_COMPILER_LAUNCHER)
      set(CMAKE_${lang}_COMPILER_LAUNCHER "${FA2_CCACHE}")
    endif()
  endforeach()
endif()

# ---- C++ -----------------------------------------------------------------------------------------

include(CheckCXXCompilerFlag)
# -ffp-contract=off: the simulator's results must not depend on the optimizer fusing a*b+c.
# -fno-gnu-unique: static locals of templates would otherwise be shared by all libraries of a
# process that have the same names (two builds of the course loaded into one Python, say).
check_cxx_compiler_flag(-fno-gnu-unique FA2_HAS_NO_GNU_UNIQUE)
add_library(fa2_flags INTERFACE)
target_include_directories(fa2_flags INTERFACE "${PROJECT_SOURCE_DIR}")
set(host_flags $<$<BOOL:${FA2_HAS_NO_GNU_UNIQUE}>:-fno-gnu-unique>)
target_compile_options(fa2_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-ffp-contract=off;${host_flags}>"
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${FA2_WERROR}>>:-Werror>)
if(FA2_SANITIZE)
  target_compile_options(fa2_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${FA2_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all;-g1>")
  target_link_options(fa2_flags INTERFACE -fsanitize=${FA2_SANITIZE})
endif()

# For tests and the front ends of programs: their time goes into the simulator and the kernels. Not
# optimized they build in half the time.
add_library(fa2_quick_build INTERFACE)
target_compile_options(fa2_quick_build INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O0>)

# ---- CUDA ----------------------------------------------------------------------------------------

if(FA2_CUDA STREQUAL "AUTO")
  include(CheckLanguage)
  check_language(CUDA)
  set(FA2_WITH_CUDA ${CMAKE_CUDA_COMPILER})
else()
  set(FA2_WITH_CUDA ${FA2_CUDA})
endif()

if(FA2_WITH_CUDA)
  set(FA2_WITH_CUDA ON)
  if(NOT FA2_CUDA_ARCHITECTURES)
    set(found "")
    find_program(FA2_NVIDIA_SMI nvidia-smi)
    mark_as_advanced(FA2_NVIDIA_SMI)
    if(FA2_NVIDIA_SMI)
      execute_process(
        COMMAND "${FA2_NVIDIA_SMI}" --query-gpu=compute_cap --format=csv,noheader
        OUTPUT_VARIABLE found RESULT_VARIABLE status ERROR_QUIET TIMEOUT 20)
      if(status EQUAL 0)
        string(REGEX MATCHALL "[0-9]+\\.[0-9]" found "${found}")
        string(REPLACE "." "" found "${found}")
        list(REMOVE_DUPLICATES found)
        list(FILTER found EXCLUDE REGEX "^([1-7].)$")  # older than sm_80: no bf16, no cp.async
      else()
        set(found "")
      endif()
    endif()
    if(NOT found)
      set(found 80 90)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${found})
  else()
    set(CMAKE_CUDA_ARCHITECTURES ${FA2_CUDA_ARCHITECTURES})
  endif()
  enable_language(CUDA)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
    message(FATAL_ERROR
      "The GPU backend needs the CUDA Toolkit 12.0 or later; ${CMAKE_CUDA_COMPILER} is "
      "${CMAKE_CUDA_COMPILER_VERSION}. Install a newer toolkit, or build the simulator alone: "
      "cmake --preset sim")
  endif()
  find_package(CUDAToolkit REQUIRED)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know that nvcc has C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  target_compile_options(fa2_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;-Xcompiler=-Wall,-Wextra>"
    "$<$<COMPILE_LANGUAGE:CUDA>:$<$<BOOL:${FA2_HAS_NO_GNU_UNIQUE}>:-Xcompiler=-fno-gnu-unique>>"
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${FA2_WERROR}>>:SHELL:-Werror all-warnings>")
  target_compile_definitions(fa2_flags INTERFACE FA2_WITH_CUDA=1)
  message(STATUS "GPU backend: CUDA ${CMAKE_CUDA_COMPILER_VERSION} for sm_${CMAKE_CUDA_ARCHITECTURES}")
else()
  set(FA2_WITH_CUDA OFF)
  message(STATUS "GPU backend: not built (FA2_CUDA=${FA2_CUDA}); the simulator needs none")
endif()

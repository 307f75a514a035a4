# What the course uses: found on the system, else fetched at a pinned commit or hash.
# After this file: Boost::context, CLI11::CLI11, nlohmann_json::nlohmann_json, and fa2_catch, which is
# Catch2 (v3, or v2 as in Debian 12) with a main(); include "common/testing/catch.h".
include(FetchContent)
set(FETCHCONTENT_QUIET ON)
if(POLICY CMP0135)
  cmake_policy(SET CMP0135 NEW)  # unpacked files carry the time of unpacking
endif()
option(FA2_FETCH "Fetch missing dependencies from the network" ON)

# fa2_fetch(<name> <Debian package> <FetchContent_Declare arguments...>)
macro(fa2_fetch name package)
  if(NOT FA2_FETCH AND NOT FETCHCONTENT_FULLY_DISCONNECTED)
    message(FATAL_ERROR "${name} was not found, and FA2_FETCH=OFF forbids to fetch it.\n"
      "Install it (Debian, Ubuntu): apt-get install ${package}")
  endif()
  # A closed network is told at once: CMake's own download tries again for minutes.
  string(TOUPPER ${name} upper)
  string(TOLOWER ${name} lower)
  if(NOT FETCHCONTENT_SOURCE_DIR_${upper} AND NOT FETCHCONTENT_FULLY_DISCONNECTED
      AND NOT EXISTS "${FETCHCONTENT_BASE_DIR}/${lower}-build")
    file(DOWNLOAD https://github.com/robots.txt "${PROJECT_BINARY_DIR}/network_probe"
      STATUS probe TIMEOUT 20)
    list(GET probe 0 probe_status)
    if(NOT probe_status EQUAL 0)
      message(FATAL_ERROR "${name} is not installed, and github.com cannot be reached to fetch it "
        "(${probe}).\nInstall it (Debian, Ubuntu): apt-get install ${package}")
    endif()
  endif()
  message(STATUS "${name}: not installed; fetching a pinned version")
  FetchContent_Declare(${name} ${ARGN})
  FetchContent_MakeAvailable(${name})
endmacro()

# ---- Boost.Context: the fibers of the simulator ----
find_package(Boost 1.74 CONFIG QUIET COMPONENTS context)
if(NOT TARGET Boost::context)
  set(BOOST_ENABLE_CMAKE ON)
  set(BOOST_INCLUDE_LIBRARIES context)
  fa2_fetch(Boost libboost-context-dev
    URL https://github.com/boostorg/boost/releases/download/boost-1.84.0/boost-1.84.0.tar.xz
    URL_HASH SHA256=2e64e5d79a738d0fa6fb546c6e5c2bd28f88d268a2a080546f74e5ff98f29d0e)
endif()

# ---- CLI11: command lines ----
find_package(CLI11 2.1 CONFIG QUIET)
if(NOT TARGET CLI11::CLI11)
  fa2_fetch(CLI11 libcli11-dev
    GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git
    GIT_TAG 6c7b07a878ad834957b98d0f9ce1dbe0cb204fc9)  # v2.4.2
endif()

# ---- nlohmann_json: result files ----
find_package(nlohmann_json 3.10 CONFIG QUIET)
if(NOT TARGET nlohmann_json::nlohmann_json)
  fa2_fetch(nlohmann_json nlohmann-json3-dev
    URL https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
    URL_HASH SHA256=d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d)
endif()

# ---- Catch2: tests ----
find_package(Catch2 3 CONFIG QUIET)
if(NOT Catch2_FOUND)
  find_package(Catch2 2.13 CONFIG QUIET)
endif()
if(NOT TARGET Catch2::Catch2)
  fa2_fetch(Catch2 catch2
    GIT_REPOSITORY https://github.com/catchorg/Catch2.git
    GIT_TAG fa43b77429ba76c462b1898d6cd2f2d7a9416b14)  # v3.7.1
  list(APPEND CMAKE_MODULE_PATH "${catch2_SOURCE_DIR}/extras")
endif()
include(Catch)  # catch_discover_tests()
if(TARGET Catch2::Catch2WithMain)
  add_library(fa2_catch INTERFACE)
  target_link_libraries(fa2_catch INTERFACE Catch2::Catch2WithMain)
else()
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/generated/catch_main.cpp"
    CONTENT "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n")
  add_library(fa2_catch STATIC "${PROJECT_BINARY_DIR}/generated/catch_main.cpp")
  target_link_libraries(fa2_catch PUBLIC Catch2::Catch2)
endif()

find_package(Threads REQUIRED)

// fa2-check: runs and judges one kernel that was compiled by itself. ./fa2 check and grade call it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>

#include "common/cli/check/cases.h"
#include "common/device/error.h"

int main(int argc, char** argv) {
  std::string plugin, cases, folder, out, backend = "sim";
  int threads = 0;
  CLI::App app("Runs and judges one kernel; ./fa2 check is its front.", "fa2-check");
  app.require_subcommand(1);
  CLI::App* describe = app.add_subcommand("describe", "Writes the kernel's tile table to OUT");
  describe->add_option("PLUGIN", plugin)->required();
  describe->add_option("OUT", out)->required();
  CLI::App* run = app.add_subcommand("run", "Runs the cases and writes what came out to FOLDER");
  run->add_option("PLUGIN", plugin)->required();
  run->add_option("CASES", cases)->required();
  run->add_option("FOLDER", folder)->required();
  run->add_option("--backend", backend)->check(CLI::IsMember({"sim", "cuda"}));
  run->add_option("--threads", threads, "Of the simulator (default: all cores)");
  CLI::App* judge = app.add_subcommand("judge", "Judges what run wrote; never loads the kernel");
  judge->add_option("CASES", cases)->required();
  judge->add_option("FOLDER", folder)->required();
  CLI11_PARSE(app, argc, argv);
  try {
    if (*describe) fa2::check::describe(plugin, out);
    if (*run) fa2::check::run(plugin, cases, folder, backend, threads);
    if (*judge) std::cout << fa2::check::judge_all(cases, folder).dump() << "\n";
    if (!std::cout.flush()) throw fa2::Error("The output could not be written. Is the disk full?");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

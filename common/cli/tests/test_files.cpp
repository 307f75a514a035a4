#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/cli/compare/report.h"
#include "common/cli/output_files.h"
#include "common/cli/tests/records.h"
#include "common/testing/catch.h"

namespace {

namespace fs = std::filesystem;
using namespace fa2::cli;
using fa2::compare::testing::mentions;

/// A folder that is gone at the end.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("fa2_cli_test." + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

size_t files_in(const fs::path& path) {
  return std::distance(fs::directory_iterator(path), fs::directory_iterator());
}

TEST_CASE("files are written under their names and nothing else remains") {
  Folder folder;
  write_files(folder.path, {{"a.json", "one"}, {"b.csv", "two"}});
  CHECK(content_of(folder.path / "a.json") == "one");
  CHECK(content_of(folder.path / "b.csv") == "two");
  CHECK(files_in(folder.path) == 2);
}

TEST_CASE("if one file fails, no file changes and nothing half-written remains") {
  Folder folder;
  write_files(folder.path, {{"a.json", "old"}});
  CHECK(mentions(
      [&] {
        write_files(folder.path, {{"a.json", "new"}, {"no/such/folder", "x"}});
      },
      "Cannot write"));
  CHECK(content_of(folder.path / "a.json") == "old");
  CHECK(files_in(folder.path) == 1);
}

TEST_CASE("a full disk is one sentence") {
  if (!fs::exists("/dev/full")) return;
  // A temporary name that leads to a disk without room.
  Folder folder;
  const fs::path name = folder.path / (".a.json." + std::to_string(getpid()) + ".tmp");
  fs::create_symlink("/dev/full", name);
  CHECK(mentions([&] { write_files(folder.path, {{"a.json", "new"}}); }, "No space left"));
  CHECK_FALSE(fs::exists(folder.path / "a.json"));
}

TEST_CASE("a folder is made, and one that cannot be is one sentence") {
  Folder folder;
  prepare_folder((folder.path / "deep/er").string());
  CHECK(fs::is_directory(folder.path / "deep/er"));
  CHECK(files_in(folder.path / "deep/er") == 0);
  write_files(folder.path, {{"file", ""}});
  CHECK(mentions([&] { prepare_folder((folder.path / "file/below").string()); }, "Cannot write"));
}

/// The JSON of one record.
std::string results_of(const fa2::compare::Record& record) {
  fa2::compare::Results results;
  results.records = {record};
  return to_json(results).dump();
}

TEST_CASE("recorded times: the GPU's own file, else the first that has times") {
  using namespace fa2::compare;
  Folder folder;
  const std::string path = folder.path.string();
  CHECK(read_recorded_times(path, "h200").empty());
  CHECK(read_recorded_times(path + "/missing", "h200").empty());
  write_files(path, {{"a.json", "{ this is no JSON"},
                     {"b.json", results_of(testing::counted("stage2_fa1", 2))},
                     {"c.json", results_of(testing::timed("stage2_fa1", 2, 1.0))},
                     {"h200.json", results_of(testing::timed("stage2_fa1", 2, 2.0))}});
  REQUIRE(read_recorded_times(path, "l4").size() == 1);
  CHECK(read_recorded_times(path, "l4")[0].time_ms == 1.0);
  CHECK(read_recorded_times(path, "h200")[0].time_ms == 2.0);
}

}  // namespace

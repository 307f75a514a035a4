#pragma once
// Result files that are written whole or not at all.
#include <string>
#include <vector>

namespace fa2::cli {

struct OutputFile {
  std::string name, content;
};

/// Makes the folder and tries to write into it, so that a long run does not fail at its end. Throws
/// fa2::Error with a sentence.
void prepare_folder(const std::string& folder);

/// Writes all files under temporary names first and renames them only when all are complete. Throws
/// fa2::Error with a sentence; then no file has changed.
void write_files(const std::string& folder, const std::vector<OutputFile>& files);

}  // namespace fa2::cli

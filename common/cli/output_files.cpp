#include "common/cli/output_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "common/device/error.h"

namespace fa2::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error("Cannot write " + path + ": " + std::strerror(error) +
              ". Choose another folder with --out DIR, or make room there.");
}

/// A file that is removed again unless keep() was called.
class TemporaryFile {
 public:
  TemporaryFile(const fs::path& folder, const std::string& name)
      : target_(folder / name),
        path_(folder / ("." + name + "." + std::to_string(getpid()) + ".tmp")) {
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_ < 0) fail(target_, errno);
  }
  TemporaryFile(TemporaryFile&& other) noexcept
      : target_(std::move(other.target_)), path_(std::move(other.path_)), file_(other.file_) {
    other.path_.clear();
    other.file_ = -1;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (file_ >= 0) close(file_);
    if (!path_.empty()) unlink(path_.c_str());
  }

  void write(const std::string& content) {
    for (size_t at = 0; at < content.size();) {
      const ssize_t written = ::write(file_, content.data() + at, content.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(target_, errno);
      at += static_cast<size_t>(written);
    }
    // Some file systems tell of a full disk only here.
    if (fsync(file_) != 0 && errno != EINVAL) fail(target_, errno);
    const int file = file_;
    file_ = -1;
    if (close(file) != 0) fail(target_, errno);
  }

  void keep() {
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, errno);
    path_.clear();
  }

 private:
  fs::path target_, path_;
  int file_ = -1;
};

}  // namespace

void prepare_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, error.value());
  TemporaryFile(folder, "compare").write("can this folder be written to?\n");
}

void write_files(const std::string& folder, const std::vector<OutputFile>& files) {
  std::vector<TemporaryFile> written;
  for (const auto& file : files) {
    written.emplace_back(folder, file.name);
    written.back().write(file.content);
  }
  for (auto& file : written) file.keep();
}

}  // namespace fa2::cli

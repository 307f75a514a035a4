#include "common/cli/check/cases.h"

#include <filesystem>
#include <fstream>

#include "common/harness/failure.h"

namespace fa2::check {
namespace {

std::string outputs_path(const std::string& folder, size_t index) {
  return folder + "/" + std::to_string(index) + ".out";
}

}  // namespace

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded()) invalid(path + " is not there, or is no JSON.");
  std::vector<Case> cases;
  for (const auto& item : json.at("cases")) {
    Case c;
    c.spec = parse_spec(item.at("spec").get<std::string>());
    c.variant = item.value("variant", "");
    c.tile_row = item.at("tile_row").get<int>();
    const auto tile = item.at("tile").get<std::array<int, 4>>();
    c.tile = {tile[0], tile[1], tile[2], tile[3]};
    c.only_LSE = item.value("only_LSE", false);
    c.timed = item.value("timed", false);
    c.blocks = item.value("blocks", false);
    c.max_grid_y = item.value("max_grid_y", c.max_grid_y);
    cases.push_back(c);
  }
  return cases;
}

void write_outputs(const std::string& folder, size_t index, const Outputs& outputs) {
  std::ofstream file(outputs_path(folder, index), std::ios::binary);
  for_each_row(outputs.O.shape(), [&](int64_t b, int64_t h, int64_t i) {
    const auto row = outputs.O.row(b, h, i);
    file.write(reinterpret_cast<const char*>(row.data()),
               static_cast<std::streamsize>(row.size_bytes()));
  });
  file.write(reinterpret_cast<const char*>(outputs.LSE.data()),
             static_cast<std::streamsize>(outputs.LSE.size() * sizeof(float)));
  if (!file.flush()) throw Failure(FA2_INTERNAL_ERROR, "the outputs cannot be written.");
}

Outputs read_outputs(const std::string& folder, size_t index, const Problem& p) {
  const std::string path = outputs_path(folder, index);
  const Shape shape = shape_q(p);
  Outputs outputs{HostTensor(shape, p.O), std::vector<float>(output_rows(p)), ""};
  std::error_code error;
  const uint64_t bytes = 2 * shape.elements() + outputs.LSE.size() * sizeof(float);
  if (!std::filesystem::is_regular_file(path, error) ||
      std::filesystem::file_size(path, error) != bytes)
    invalid("the kernel's outputs were not written.");
  std::ifstream file(path, std::ios::binary);
  for_each_row(shape, [&](int64_t b, int64_t h, int64_t i) {
    const auto row = outputs.O.row(b, h, i);
    file.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(row.size_bytes()));
  });
  file.read(reinterpret_cast<char*>(outputs.LSE.data()),
            static_cast<std::streamsize>(outputs.LSE.size() * sizeof(float)));
  if (!file) invalid("the kernel's outputs cannot be read.");
  return outputs;
}

}  // namespace fa2::check

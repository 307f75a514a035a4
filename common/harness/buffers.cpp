#include "common/harness/buffers.h"

#include <algorithm>
#include <bit>

#include "common/harness/text.h"

namespace fa2 {
namespace {

constexpr size_t guard_bytes = 2 * HostTensor::guard;
constexpr size_t LSE_guard = guard_bytes / sizeof(float);
constexpr size_t workspace_guard = 256;
static_assert(guard_bytes % 32 == 16 && workspace_guard % 256 == 0);

/// What brings the element behind the guard to its place.
constexpr size_t lead(Placement placement) {
  return placement == Placement::aligned ? 256 - guard_bytes % 256 : 0;
}
constexpr unsigned char workspace_pattern = 0xab;

/// Copies a tensor with its gaps and guards; of a sparse one only guards and rows.
template <class Copy>
void copy_tensor(const HostTensor& x, Copy copy) {
  if (!x.sparse()) return copy(size_t{0}, x.raw_bytes());
  copy(size_t{0}, guard_bytes);
  copy(x.raw_bytes() - guard_bytes, guard_bytes);
  for_each_row(x.shape(), [&](int64_t b, int64_t h, int64_t i) {
    const size_t offset = 2 * static_cast<size_t>(HostTensor::guard + x.offset(b, h, i));
    copy(offset, 2 * static_cast<size_t>(x.shape().d));
  });
}

void upload(Device& device, const DeviceMemory& memory, const HostTensor& x) {
  const char* raw = reinterpret_cast<const char*>(x.raw().data());
  copy_tensor(x, [&](size_t offset, size_t bytes) {
    device.upload(memory.at(offset), raw + offset, bytes);
  });
}

void download(Device& device, const DeviceMemory& memory, HostTensor& x) {
  char* raw = reinterpret_cast<char*>(x.raw().data());
  copy_tensor(x, [&](size_t offset, size_t bytes) {
    device.download(raw + offset, memory.at(offset), bytes);
  });
}

/// Where O was written outside its rows, or "".
std::string damage_around(const HostTensor& O) {
  const auto raw = O.raw();
  const auto changed = [](uint16_t word) { return word != poison; };
  const auto first = std::ranges::find_if(raw.first(HostTensor::guard), changed);
  if (first != raw.begin() + HostTensor::guard) return "before the start of O";
  const auto last = raw.last(HostTensor::guard);
  if (std::ranges::find_if(last, changed) != last.end()) return "behind the end of O";
  if (O.sparse() || extent(O.shape(), O.strides()) == O.shape().elements()) return "";
  std::vector<bool> in_row(static_cast<size_t>(extent(O.shape(), O.strides())));
  for_each_row(O.shape(), [&](int64_t b, int64_t h, int64_t i) {
    std::fill_n(in_row.begin() + O.offset(b, h, i), O.shape().d, true);
  });
  for (size_t n = 0; n < in_row.size(); ++n)
    if (!in_row[n] && changed(O.data()[n]))
      return "between the rows of O, at element " + with_commas(static_cast<int64_t>(n));
  return "";
}

}  // namespace

Buffers::Buffers(Device& device, const Workload& workload, size_t workspace_bytes,
                 Placement placement)
    : device_(device),
      workload_(workload),
      workspace_bytes_(workspace_bytes),
      Q_(device, workload.inputs().Q.raw_bytes(), lead(placement)),
      K_(device, workload.inputs().K.raw_bytes(), lead(placement)),
      V_(device, workload.inputs().V.raw_bytes(), lead(placement)),
      O_(device, 2 * extent(shape_q(workload.problem()), workload.problem().O) + 2 * guard_bytes,
         lead(placement)),
      LSE_(device, sizeof(float) * output_rows(workload.problem()) + 2 * guard_bytes,
           lead(placement)),
      workspace_(device, workspace_bytes + 2 * workspace_guard) {
  upload(device, Q_, workload.inputs().Q);
  upload(device, K_, workload.inputs().K);
  upload(device, V_, workload.inputs().V);
}

Tensors Buffers::tensors() const {
  return {Q_.at(guard_bytes),
          K_.at(guard_bytes),
          V_.at(guard_bytes),
          O_.at(guard_bytes),
          reinterpret_cast<float*>(LSE_.at(guard_bytes)),
          workspace_bytes_ == 0 ? nullptr : workspace_.at(workspace_guard)};
}

void Buffers::poison_outputs() {
  const Problem& p = workload_.problem();
  upload(device_, O_, HostTensor(shape_q(p), p.O));
  const std::vector<uint32_t> LSE(LSE_.bytes() / sizeof(uint32_t), poison_fp32);
  device_.upload(LSE_.at(0), LSE.data(), LSE_.bytes());
  device_.fill(workspace_.at(0), workspace_pattern, workspace_guard);
  device_.fill(workspace_.at(workspace_guard), 0xff, workspace_bytes_);
  device_.fill(workspace_.at(workspace_guard + workspace_bytes_), workspace_pattern,
               workspace_guard);
}

Outputs Buffers::download() {
  const Problem& p = workload_.problem();
  Outputs out{HostTensor(shape_q(p), p.O), {}, ""};
  fa2::download(device_, O_, out.O);
  std::vector<uint32_t> LSE_raw(LSE_.bytes() / sizeof(uint32_t));
  device_.download(LSE_raw.data(), LSE_.at(0), LSE_.bytes());
  for (size_t n = LSE_guard; n < LSE_raw.size() - LSE_guard; ++n)
    out.LSE.push_back(std::bit_cast<float>(LSE_raw[n]));
  out.damage = find_damage(out.O, LSE_raw);
  return out;
}

std::string Buffers::find_damage(const HostTensor& O, const std::vector<uint32_t>& LSE_raw) {
  for (size_t n = 0; n < LSE_guard; ++n) {
    if (LSE_raw[n] != poison_fp32) return "before the start of LSE";
    if (LSE_raw[LSE_raw.size() - 1 - n] != poison_fp32) return "behind the end of LSE";
  }
  std::vector<unsigned char> guards(2 * workspace_guard);
  device_.download(guards.data(), workspace_.at(0), workspace_guard);
  device_.download(guards.data() + workspace_guard,
                   workspace_.at(workspace_guard + workspace_bytes_), workspace_guard);
  const auto changed =
      std::ranges::find_if(guards, [](unsigned char byte) { return byte != workspace_pattern; });
  if (changed != guards.end())
    return changed - guards.begin() < static_cast<std::ptrdiff_t>(workspace_guard)
               ? "before the start of the workspace"
               : "behind the end of the workspace";
  return damage_around(O);
}

}  // namespace fa2

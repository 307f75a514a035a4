#include "common/sim/banks.h"

#include <algorithm>
#include <cstring>

#include "common/sim/lane.h"

namespace fa2::sim {
namespace {

constexpr int banks = 32;

// Passes for one group of lanes: the largest number of different words that one bank must deliver.
uint32_t group_passes(const uint32_t* addresses, int count, int words) {
  uint32_t word_in[banks][warp_size];
  uint8_t different[banks] = {};
  uint8_t most = 0;
  for (int i = 0; i < count; ++i)
    for (int w = 0; w < words; ++w) {
      const uint32_t word = addresses[i] / 4 + static_cast<uint32_t>(w), bank = word % banks;
      uint8_t& n = different[bank];
      if (std::find(word_in[bank], word_in[bank] + n, word) != word_in[bank] + n) continue;
      word_in[bank][n++] = word;
      most = std::max(most, n);
    }
  return most;
}

// Orders the lines of source where a warp has diverged: as a GPU would, the earlier line first.
bool earlier(Site a, Site b) {
  if (a.line() != b.line()) return a.line() < b.line();
  return a.file() != b.file() && std::strcmp(a.file(), b.file()) < 0;
}

bool same_instruction(const LogEntry& a, const LogEntry& b) {
  return a.site == b.site && a.bytes == b.bytes && a.kind == b.kind && a.use == b.use;
}

// One row of the zipped logs: an instruction of the warp.
class Row {
 public:
  Row(const LogEntry& first, BankCounts& counts) : first_(first), counts_(counts) {}
  void add(uint32_t address, int lane) {
    addresses_[size_] = address;
    lanes_[size_++] = static_cast<uint8_t>(lane);
  }
  void count() const {
    if (first_.kind == LogKind::mbarrier_wait) {
      ++counts_.mbarrier_waits;
      return;
    }
    const Wavefronts w = count_request({addresses_, size_}, {lanes_, size_}, first_.bytes);
    counts_.taken[first_.use] += w.taken;
    counts_.ideal[first_.use] += w.ideal;
  }

 private:
  const LogEntry& first_;
  BankCounts& counts_;
  uint32_t addresses_[warp_size];
  uint8_t lanes_[warp_size];
  size_t size_ = 0;
};

// Counts rows until all logs have ended, or, with `until_full_ends`, the first full one.
void zip(Warp& warp, BankCounts& counts, bool until_full_ends) {
  size_t taken[warp_size] = {};
  const auto entries = [&](int i) -> auto& { return warp.lanes[i].log.entries; };
  for (;;) {
    const LogEntry* first = nullptr;
    for (int i = 0; i < warp.size; ++i) {
      if (taken[i] == entries(i).size()) {
        if (until_full_ends && (warp.full >> i & 1) != 0) goto done;
        continue;
      }
      const LogEntry& entry = entries(i)[taken[i]];
      if (first == nullptr || earlier(entry.site, first->site)) first = &entry;
    }
    if (first == nullptr) break;
    Row row(*first, counts);
    for (int i = 0; i < warp.size; ++i)
      if (taken[i] < entries(i).size() && same_instruction(entries(i)[taken[i]], *first))
        row.add(entries(i)[taken[i]++].address, i);
    row.count();
  }
done:
  for (int i = 0; i < warp.size; ++i) {
    AccessLog& log = warp.lanes[i].log;
    log.entries.erase(log.entries.begin(), log.entries.begin() + static_cast<long>(taken[i]));
    log.limit = AccessLog::capacity;
  }
}

}  // namespace

Wavefronts count_request(std::span<const uint32_t> addresses, std::span<const uint8_t> lanes,
                         int bytes) {
  const auto equals_first = [&](uint32_t address) { return address == addresses[0]; };
  if (std::all_of(addresses.begin(), addresses.end(), equals_first)) return {1, 1};  // broadcast
  const int group = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8, words = std::max(1, bytes / 4);
  Wavefronts sum;
  for (size_t begin = 0; begin < addresses.size();) {
    size_t end = begin;
    while (end < addresses.size() && lanes[end] / group == lanes[begin] / group) ++end;
    sum.taken += group_passes(&addresses[begin], static_cast<int>(end - begin), words);
    ++sum.ideal;
    begin = end;
  }
  return sum;
}

uint32_t count_matrix_rows(const uint32_t (&rows)[8]) {
  // Rows are 16-byte aligned: four banks each, so the 32 banks are eight places.
  uint32_t seen = 0;
  for (uint32_t row : rows) seen |= 1u << (row / 16 % 8);
  return seen == 0xff ? 1 : group_passes(rows, 8, 4);
}

void zip_logs(Warp& warp, BankCounts& counts) {
  // Almost always all lanes have done the same.
  const size_t size = warp.lanes[0].log.entries.size();
  bool same = true;
  size_t any = 0;
  for (int i = 0; i < warp.size; ++i) {
    any |= warp.lanes[i].log.entries.size();
    same &= warp.lanes[i].log.entries.size() == size;
  }
  if (any == 0) return;
  for (size_t k = 0; same && k < size; ++k)
    for (int i = 1; same && i < warp.size; ++i)
      same = same_instruction(warp.lanes[i].log.entries[k], warp.lanes[0].log.entries[k]);
  if (!same) return zip(warp, counts, false);
  for (size_t k = 0; k < size; ++k) {
    Row row(warp.lanes[0].log.entries[k], counts);
    for (int i = 0; i < warp.size; ++i) row.add(warp.lanes[i].log.entries[k].address, i);
    row.count();
  }
  for (int i = 0; i < warp.size; ++i) {
    warp.lanes[i].log.entries.clear();
    warp.lanes[i].log.limit = AccessLog::capacity;
  }
}

void zip_full_logs(Warp& warp, BankCounts& counts) { zip(warp, counts, true); }

}  // namespace fa2::sim

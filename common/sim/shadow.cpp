#include "common/sim/shadow.h"

#include <bit>

#include "common/sim/lane.h"

namespace fa2::sim {

void Shadow::begin_launch(uint32_t shared_bytes) {
  // Another kernel splits its granules elsewhere; within a launch all blocks split the same ones.
  granules_.assign((shared_bytes + 15) / 16, {});
  parts_.clear();
}

void Shadow::begin_block() {
  // Cells need no clearing: whatever is older than the block's first clock counts as never
  // happened.
  nodes_.assign(1, {});
  free_node_ = 0;
}

// The cells of an access, split as finely as it needs.
inline Shadow::Cells Shadow::cells(uint32_t address, uint32_t bytes) {
  Granule& granule = granules_[address / 16];
  const uint32_t shift = static_cast<uint32_t>(std::countr_zero(bytes));
  if (shift < granule.cell_shift) [[unlikely]]
    split(granule, shift);
  if (granule.cell_shift == 4) return {&granule.cell, &granule.cell + 1};
  Cell* first = parts_.data() + granule.parts + (address % 16 >> granule.cell_shift);
  return {first, first + (bytes >> granule.cell_shift)};
}

void Shadow::split(Granule& granule, uint32_t shift) {
  const uint32_t count = 16u >> shift, repeat = 1u << (granule.cell_shift - shift);
  const uint32_t begin = static_cast<uint32_t>(parts_.size());
  parts_.resize(begin + count);
  for (uint32_t i = 0; i < count; ++i) {
    const Cell& old = granule.cell_shift == 4 ? granule.cell : parts_[granule.parts + i / repeat];
    Cell& cell = parts_[begin + i];
    cell = old;
    copy_readers(cell, old);
  }
  granule.parts = begin;
  granule.cell_shift = shift;
}

uint32_t Shadow::new_node() {
  if (free_node_ != 0) {
    const uint32_t node = free_node_;
    free_node_ = nodes_[node].next;
    return node;
  }
  nodes_.emplace_back();
  return static_cast<uint32_t>(nodes_.size() - 1);
}

void Shadow::drop_readers(Cell& cell) {
  // Nodes of an earlier block are gone already.
  if (cell.readers.lanes != 0 && cell.readers.clock >= clocks_.block_start()) {
    for (uint32_t node = cell.readers.next; node != 0;) {
      const uint32_t next = nodes_[node].next;
      nodes_[node].next = free_node_;
      free_node_ = node;
      node = next;
    }
  }
  cell.readers.lanes = cell.readers.next = 0;
}

void Shadow::copy_readers(Cell& to, const Cell& from) {
  to.readers.next = 0;
  if (from.readers.lanes == 0 || from.readers.clock < clocks_.block_start()) {
    to.readers.lanes = 0;
    return;
  }
  for (uint32_t node = from.readers.next; node != 0; node = nodes_[node].next) {
    const uint32_t copy = new_node();
    nodes_[copy] = nodes_[node];
    nodes_[copy].next = to.readers.next;
    to.readers.next = copy;
  }
}

// Remembers a read. Earlier reads that are ordered before this one can be forgotten: whoever comes
// after this one comes after them.
void Shadow::add_reader(Cell& cell, const Lane& lane, Site site) {
  Readers& head = cell.readers;
  const uint32_t clock = lane.warp->clock, bit = 1u << lane.index;
  const uint32_t warp = static_cast<uint32_t>(lane.warp->index);
  if (head.lanes == 0 || head.clock < clocks_.barrier()) {
    drop_readers(cell);
    head = {site, clock, bit, warp, 0};
    return;
  }
  if (head.clock == clock && head.warp == warp && head.next == 0) {
    head.lanes |= bit, head.site = site;
    return;
  }
  // Several warps, or several moments: the list, with the newest in front.
  Readers added{site, clock, bit, warp, 0};
  const auto keep = [&](Readers& old) {  // is `old` still needed beside `added`?
    if (old.clock < clocks_.barrier()) return false;
    if (old.warp != warp) return true;
    if (old.clock == clock) {
      added.lanes |= old.lanes;
      return false;
    }
    old.lanes &= ~bit;
    for (uint32_t rest = old.lanes; rest != 0; rest &= rest - 1) {
      const uint32_t thread = warp * warp_size + static_cast<uint32_t>(std::countr_zero(rest));
      if (!clocks_.before(thread, old.clock, lane)) return true;
    }
    return false;
  };
  uint32_t* link = &head.next;
  while (*link != 0) {
    const uint32_t node = *link;
    if (keep(nodes_[node])) {
      link = &nodes_[node].next;
    } else {
      *link = nodes_[node].next;
      nodes_[node].next = free_node_;
      free_node_ = node;
    }
  }
  if (keep(head)) {
    const uint32_t node = new_node();
    nodes_[node] = head;
    added.next = node;
  } else {
    added.next = head.next;
  }
  head = added;
}

Conflict Shadow::read(uint32_t address, uint32_t bytes, const Lane& lane, Site site) {
  for (auto [cell, end] = cells(address, bytes); cell != end; ++cell) {
    const bool written = cell->write_clock >= clocks_.block_start();
    if (!written) return {Conflict::unwritten, 0, {}};
    if (cell->in_flight) return {Conflict::in_flight, cell->writer, cell->write_site};
    if (!clocks_.before(cell->writer, cell->write_clock, lane))
      return {Conflict::read_after_write, cell->writer, cell->write_site};
    add_reader(*cell, lane, site);
  }
  return {};
}

// Must a write to this cell not happen now?
Conflict Shadow::check_write(Cell& cell, const Lane& lane) {
  if (cell.write_clock >= clocks_.block_start()) {
    if (cell.in_flight) return {Conflict::in_flight, cell.writer, cell.write_site};
    if (!clocks_.before(cell.writer, cell.write_clock, lane))
      return {Conflict::write_after_write, cell.writer, cell.write_site};
  }
  if (cell.readers.lanes == 0 || cell.readers.clock < clocks_.barrier()) return {};
  for (const Readers* readers = &cell.readers;; readers = &nodes_[readers->next]) {
    for (uint32_t rest = readers->lanes; rest != 0; rest &= rest - 1) {
      const uint32_t thread =
          readers->warp * warp_size + static_cast<uint32_t>(std::countr_zero(rest));
      if (!clocks_.before(thread, readers->clock, lane))
        return {Conflict::write_after_read, thread, readers->site};
    }
    if (readers->next == 0) return {};
  }
}

Conflict Shadow::write(uint32_t address, uint32_t bytes, const Lane& lane, Site site) {
  for (auto [cell, end] = cells(address, bytes); cell != end; ++cell) {
    if (Conflict conflict = check_write(*cell, lane)) return conflict;
    drop_readers(*cell);
    cell->write_site = site;
    cell->write_clock = lane.warp->clock;
    cell->writer = static_cast<uint32_t>(lane.id);
    cell->in_flight = false;
  }
  return {};
}

Conflict Shadow::begin_copy(uint32_t address, const Lane& lane, Site site) {
  const Conflict conflict = write(address, 16, lane, site);
  if (!conflict)
    for (auto [cell, end] = cells(address, 16); cell != end; ++cell) cell->in_flight = true;
  return conflict;
}

void Shadow::land_copy(uint32_t address, uint32_t writer, uint32_t clock) {
  for (auto [cell, end] = cells(address, 16); cell != end; ++cell) {
    cell->in_flight = false;
    cell->writer = writer;
    cell->write_clock = clock;
  }
}

}  // namespace fa2::sim

#pragma once
// What the machine remembers about each piece of shared memory: who wrote it last, who has read it
// since, and whether a cp.async is on its way to it.
#include <cstdint>
#include <vector>

#include "common/sim/clocks.h"
#include "common/sim/site.h"

namespace fa2::sim {

struct Lane;

/// Reads by lanes of one warp at one moment of its clock.
struct Readers {
  Site site;  // of the last one
  uint32_t clock = 0;
  uint32_t lanes = 0;  // 0: none
  uint32_t warp = 0;
  uint32_t next = 0;  // further readers, in the pool; 0: none
};

/// The history of 1, 2, 4, 8 or 16 bytes.
struct Cell {
  Site write_site;
  uint32_t write_clock = 0;  // below the block's first clock: not written in this block
  uint32_t writer = 0;  // a thread, or `threads + t`: thread t's copies that an mbarrier announced
  Readers readers;
  bool in_flight = false;  // by a cp.async of `writer` from `write_site`
};

/// What was wrong with an access.
struct Conflict {
  enum Kind { none, unwritten, in_flight, read_after_write, write_after_read, write_after_write };
  Kind kind = none;
  uint32_t other = 0;  // the other thread, as Cell::writer
  Site other_site;

  explicit operator bool() const { return kind != none; }
};

/// The histories of a block's shared memory. Accesses are aligned and of 1 to 16 bytes, a power of
/// two. A granule of 16 bytes has one cell until somebody touches less than the whole of it.
class Shadow {
 public:
  explicit Shadow(Clocks& clocks) : clocks_(clocks) {}

  void begin_launch(uint32_t shared_bytes);
  void begin_block();

  Conflict read(uint32_t address, uint32_t bytes, const Lane& lane, Site site);
  Conflict write(uint32_t address, uint32_t bytes, const Lane& lane, Site site);
  /// A cp.async of 16 bytes begins: a write that nobody may look at before it has landed.
  Conflict begin_copy(uint32_t address, const Lane& lane, Site site);
  /// It has landed, as a write of `writer` at `clock`.
  void land_copy(uint32_t address, uint32_t writer, uint32_t clock);

 private:
  struct Granule {
    Cell cell;
    uint32_t parts = 0;       // where its smaller cells begin; used if shift < 4
    uint32_t cell_shift = 4;  // log2 of the bytes of a cell
  };
  struct Cells {
    Cell* begin;
    Cell* end;
  };

  Cells cells(uint32_t address, uint32_t bytes);
  void split(Granule& granule, uint32_t shift);
  Conflict check_write(Cell& cell, const Lane& lane);
  void add_reader(Cell& cell, const Lane& lane, Site site);
  void drop_readers(Cell& cell);
  void copy_readers(Cell& to, const Cell& from);
  uint32_t new_node();

  Clocks& clocks_;
  std::vector<Granule> granules_;
  std::vector<Cell> parts_;
  std::vector<Readers> nodes_;  // [0] is not used
  uint32_t free_node_ = 0;
};

}  // namespace fa2::sim

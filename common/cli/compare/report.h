#pragma once
// Results as people read them: on a terminal and as Markdown.
#include <string>
#include <vector>

#include "common/cli/compare/groups.h"
#include "common/cli/compare/record.h"
#include "common/cli/format.h"
#include "common/cli/text_table.h"

namespace fa2::compare {

/// Times that a GPU once gave, shown beside the simulator's counters.
using RecordedTimes = std::vector<Record>;

struct View {
  int width = 100;  // columns of the terminal
  cli::Charset charset = cli::Charset::ascii;
  const RecordedTimes* recorded = nullptr;  // or none
};

/// What one stage's change moved, against its parent.
struct Change {
  std::string title;      // "4 warps over 3 seqpar"
  cli::Table moved;       // counter, before, after, factor
  std::string unchanged;  // one line: what did not move
};

/// The report of one group.
struct Section {
  std::string title;               // shape, dtype, tile
  cli::Table table;                // a row per stage
  std::vector<std::string> notes;  // what did not run or is wrong, and what a column means
  std::vector<Change> changes;
};

Section section_of(const Group& group, const View& view);

/// The tables of the two backends: counters or times.
cli::Table counter_table(const Group& group, const View& view);
cli::Table time_table(const Group& group, const View& view);

/// What each stage of a group moved, where there are counters.
std::vector<Change> changes_of(const Group& group, const View& view);

/// The cells that both tables end with: the error as a share of the tolerance, and the outcome.
std::string error_cell(const Record& r, const View& view);
std::string outcome_cell(const Record& r);

/// What stands above the tables: what ran where.
std::string environment_line(const Environment& e, const std::string& backend);
/// One group on a terminal.
std::string group_text(const Group& group, const View& view);
/// Everything as Markdown.
std::string markdown_report(const Results& results, const View& view);

/// notes/results of the repository that the running program was built in; empty if there is none.
std::string recorded_folder();

/// The times in a folder of result files: those of the GPU with this key if it has a file of its
/// own (h200.json), else of the first file that has any. None without such files.
RecordedTimes read_recorded_times(const std::string& folder, const std::string& gpu_key);

/// The recorded time of a stage for the shape nearest to the group's; nullptr if there is none. All
/// stages of a group get the same shape.
const Record* recorded_for(const Record& r, const Group& group, const RecordedTimes& times);

}  // namespace fa2::compare

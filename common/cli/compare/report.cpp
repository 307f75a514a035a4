#include "common/cli/compare/report.h"

#include <algorithm>

namespace fa2::compare {
namespace {

/// "B1 H2 N512 d64 causal, fp16, tiles same (64x128, 4 warps)".
std::string title_of(const Group& group) {
  const Record& front = *group.front();
  std::string title = label(front.shape) + ", " + front.dtype + ", tiles " + front.tile_mode;
  std::vector<std::string> tiles;
  for (const Record* r : group) {
    if (r->tile && std::find(tiles.begin(), tiles.end(), label(*r->tile)) == tiles.end()) {
      tiles.push_back(label(*r->tile));
    }
  }
  if (tiles.size() == 1) title += " (" + tiles[0] + ")";
  return title;
}

void note_failures(const Group& group, std::vector<std::string>& notes) {
  for (const Record* r : group) {
    if (r->outcome == Outcome::right) continue;
    const char* what = r->outcome == Outcome::wrong ? " is WRONG: " : " did not run: ";
    notes.push_back(label(*r) + what + r->reason);
  }
}

void note_recorded(const Group& group, const View& view, std::vector<std::string>& notes) {
  if (!view.recorded) return;
  for (const Record* r : group) {
    const Record* time = recorded_for(*r, group, *view.recorded);
    if (!time) continue;
    const bool same = time->shape == r->shape;
    notes.push_back("recorded GPU ms: measured earlier on " + time->environment.gpu + " with " +
                    label(time->shape) + (same ? "" : " (the nearest shape recorded)") +
                    ", driver " + time->environment.driver + ", CUDA " + time->environment.cuda +
                    ", commit " + time->environment.commit + ".");
    return;
  }
}

void note_times(const Group& group, std::vector<std::string>& notes) {
  const Record& front = *group.front();
  if (front.backend != "cuda") return;
  notes.push_back(front.shape.causal
                      ? "TFLOP/s: causal, so FLOPs are counted as half of 4 B H Nq Nk d."
                      : "TFLOP/s: FLOPs are 4 B H Nq Nk d.");
  if (const double peak = front.environment.peak_tflops; peak > 0) {
    notes.push_back("share of peak: of the datasheet's " + cli::number(peak) +
                    " TFLOP/s (dense, 16 bits, fp32 accumulate).");
  }
  if (const double ceiling = front.environment.mma_tflops; ceiling > 0) {
    double best = 0;
    for (const Record* r : group) best = std::max(best, r->tflops().value_or(0));
    notes.push_back("mma.sync alone reaches " + cli::number(ceiling) +
                    " TFLOP/s here; the fastest row has " + cli::percent(best / ceiling) +
                    " of it.");
  }
  notes.push_back("no gain: the difference lies within the spread of the two.");
}

void note_parents(const Group& group, std::vector<std::string>& notes) {
  for (const Record* r : group) {
    const Record* parent = parent_of(*r, group);
    if (has_measurement(*r) && parent && !is_direct_parent(*r, *parent)) {
      notes.push_back(label(*r) + " is held against " + label(*parent) +
                      ": the stages between them were not measured here.");
    }
  }
}

/// "blocks 2 -> 16 (x8), block barriers 720 -> 704 (/1.02)".
std::string moved_text(const Change& change, const View& view) {
  std::string text;
  for (const auto& row : change.moved.rows) {
    text += (text.empty() ? "" : ", ") + row[0] + " " + row[1] + " " +
            std::string(cli::arrow(view.charset)) + " " + row[2] + " (" + row[3] + ")";
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

Section section_of(const Group& group, const View& view) {
  Section s;
  s.title = title_of(group);
  const bool times = group.front()->backend == "cuda";
  s.table = times ? time_table(group, view) : counter_table(group, view);
  note_failures(group, s.notes);
  note_parents(group, s.notes);
  note_recorded(group, view, s.notes);
  note_times(group, s.notes);
  s.changes = changes_of(group, view);
  return s;
}

std::string environment_line(const Environment& e, const std::string& backend) {
  std::string line;
  if (backend == "cuda") {
    line = "On " + e.gpu + " (" + std::to_string(e.sms) + " SMs), driver " + e.driver + ", CUDA " +
           e.cuda;
  } else {
    line = "On a " + e.gpu + " (" + std::to_string(e.sms) + " SMs): counters, no times";
  }
  return line + "; " + e.compiler + ", " + (e.commit.empty() ? "" : "commit " + e.commit + ", ") +
         e.date;
}

std::string group_text(const Group& group, const View& view) {
  const Section s = section_of(group, view);
  std::string out = cli::wrap(s.title, view.width) + "\n\n" + s.table.text(view.width);
  for (const auto& note : s.notes) out += "\n" + cli::wrap(note, view.width, 2) + "\n";
  if (!s.changes.empty()) {
    out += "\nWhat each change moved, from its parent\n";
  }
  for (const auto& change : s.changes) {
    out += "\n" + change.title + "\n";
    out += cli::wrap("  moved: " + moved_text(change, view), view.width, 9) + "\n";
    out += cli::wrap("  same:  " + change.unchanged, view.width, 9) + "\n";
  }
  return out + "\n";
}

std::string markdown_report(const Results& results, const View& view) {
  std::string out = "# Comparison of the stages\n\n";
  const std::string backend = results.records.empty() ? "sim" : results.records.front().backend;
  out +=
      environment_line(results.environment, backend) + ".\n\nCommand: `" + results.command + "`\n";
  for (const Group& group : groups_of(results.records)) {
    const Section s = section_of(group, view);
    out += "\n## " + s.title + "\n\n" + s.table.markdown();
    if (!s.notes.empty()) out += "\n";
    for (const auto& note : s.notes) out += "- " + cli::wrap(note, 1 << 20, 2) + "\n";
    if (!s.changes.empty()) out += "\n### What each change moved\n";
    for (const auto& change : s.changes) {
      out += "\n#### " + change.title + "\n\n" + change.moved.markdown();
      out += "\nNot moved: " + change.unchanged + "\n";
    }
  }
  return out;
}

}  // namespace fa2::compare

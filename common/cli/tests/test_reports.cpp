#include <algorithm>
#include <sstream>

#include "common/cli/compare/against.h"
#include "common/cli/compare/report.h"
#include "common/cli/tests/records.h"
#include "common/testing/catch.h"

namespace {

using namespace fa2;
using namespace fa2::compare;
using namespace fa2::compare::testing;

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

std::vector<Record> all_timed() {
  return {timed("stage1_naive", 1, 8),
          timed("stage2_fa1", 2, 4),
          timed("stage3_fa2_seqpar", 3, 4.02),
          timed("stage4_fa2_warps", 4, 5),
          timed("stage6_fa2_deferred", 6, 2, 0.01, "paper"),
          timed("stage6_fa2_deferred", 6, 1.6, 0.01, "lazy"),
          timed("stage6_fa2_deferred/threshold", 6, 3)};
}

TEST_CASE("parents: the stage before, the first variant, the stage beside") {
  const auto records = all_timed();
  const Group group = groups_of(records)[0];
  REQUIRE(group.size() == 7);
  CHECK(parent_of(records[0], group) == nullptr);
  CHECK(parent_of(records[1], group) == &records[0]);
  CHECK(parent_of(records[4], group) == &records[3]);  // 5 is missing
  CHECK_FALSE(is_direct_parent(records[4], records[3]));
  CHECK(parent_of(records[5], group) == &records[4]);
  CHECK(parent_of(records[6], group) == &records[4]);
}

TEST_CASE("parents: one's own kernel is held against the variant of its name") {
  auto records = all_timed();
  const auto own = [](const char* variant) {
    return timed("stage6_fa2_deferred/mine", 6, 2, 0.01, variant);
  };
  records.insert(records.end(), {own("paper"), own("lazy"), own("")});
  const Group group = groups_of(records)[0];
  CHECK(parent_of(records[7], group) == &records[4]);
  CHECK(parent_of(records[8], group) == &records[5]);
  CHECK(parent_of(records[9], group) == &records[4]);  // no such name: the first
}

TEST_CASE("a parent that was not measured is passed over") {
  auto records = all_timed();
  records[2].time_ms.reset();
  const Group group = groups_of(records)[0];
  CHECK(parent_of(records[3], group) == &records[1]);
}

TEST_CASE("groups: one per shape, dtype, tiles and backend") {
  auto records = all_timed();
  records[1].shape.causal = true;
  records[2].dtype = "bf16";
  records[3].tile_mode = "tuned";
  CHECK(groups_of(records).size() == 4);
}

TEST_CASE("a GPU's table: speedups, no gain within the spread, slower") {
  const auto records = all_timed();
  const Group group = groups_of(records)[0];
  const cli::Table t = time_table(group, {});
  const auto column = [&](const std::string& head) {
    return std::find(t.heads.begin(), t.heads.end(), head) - t.heads.begin();
  };
  CHECK(t.rows[0][column("over\nparent")] == "-");
  CHECK(t.rows[1][column("over\nparent")] == "2.00");
  CHECK(t.rows[2][column("over\nparent")] == "0.995 no gain");
  CHECK(t.rows[3][column("over\nparent")] == "0.804 slower");
  CHECK(t.rows[5][column("over\nstage 1")] == "5.00");
  CHECK(t.rows[0][column("ms")] == "8.00");
  CHECK(t.rows[0][column("error /\ntolerance")] == "50.0%");
  const double share = *records[0].tflops() / 989;
  CHECK(t.rows[0][column("share\nof peak")] == cli::percent(share));
}

TEST_CASE("causal tables say that FLOPs are halved") {
  auto records = all_timed();
  for (Record& r : records) r.shape.causal = true;
  const std::string text = group_text(groups_of(records)[0], {});
  CHECK(has(text, "(half FLOPs)"));
  CHECK(has(text, "counted as half"));
}

std::vector<Record> two_counted() {
  std::vector<Record> records = {counted("stage3_fa2_seqpar", 3), counted("stage4_fa2_warps", 4)};
  records[0].counters->shared_store_bytes_partial_o = 4096;
  records[0].counters->block_barriers = 300;
  records[1].counters->block_barriers = 100;
  return records;
}

TEST_CASE("what a change moved and what it did not") {
  const auto records = two_counted();
  const auto changes = changes_of(groups_of(records)[0], {});
  REQUIRE(changes.size() == 1);
  const Change& c = changes[0];
  CHECK(c.title == "4 warps over 3 seqpar");
  REQUIRE(c.moved.rows.size() == 2);
  using Row = std::vector<std::string>;
  CHECK(c.moved.rows[0] == Row{"partial O bytes", "4.00 KiB", "0 KiB", "gone"});
  CHECK(c.moved.rows[1] == Row{"block barriers", "300", "100", "/3"});
  CHECK(c.unchanged == "blocks, waves, shared memory per block, mma");
}

TEST_CASE("another tile is said, since it moves counters too") {
  auto records = two_counted();
  records[1].tile->Br = 128;
  CHECK(has(changes_of(groups_of(records)[0], {})[0].title, "another tile"));
  const cli::Table t = counter_table(groups_of(records)[0], {});
  CHECK(std::find(t.heads.begin(), t.heads.end(), "tile") != t.heads.end());
}

TEST_CASE("the simulator's report has no seconds") {
  const auto records = two_counted();
  const std::string text = group_text(groups_of(records)[0], {});
  CHECK_FALSE(has(text, " ms"));
  CHECK_FALSE(has(text, "TFLOP"));
}

TEST_CASE("what did not run or is wrong is a row and a note, and the rest stands") {
  auto records = two_counted();
  records[0].counters.reset();
  records[0].outcome = Outcome::not_run;
  records[0].reason = "the workspace does not fit";
  records[1].outcome = Outcome::wrong;
  records[1].reason = "row 3 is NaN";
  const std::string text = group_text(groups_of(records)[0], {});
  CHECK(has(text, "not run"));
  CHECK(has(text, "3 seqpar did not run: the workspace does not fit"));
  CHECK(has(text, "4 warps is WRONG: row 3 is NaN"));
  CHECK(has(text, "4096"));
}

TEST_CASE("a terminal gets what moved in a line, before and after") {
  const auto records = two_counted();
  const std::string text = group_text(groups_of(records)[0], {.charset = cli::Charset::utf8});
  CHECK(has(text, "4 warps over 3 seqpar\n"));
  CHECK(has(text, "  moved: partial O bytes 4.00 KiB → 0 KiB (gone), block"));
  CHECK(has(text, "300 → 100 (÷3)"));
  CHECK(has(text, "  same:  blocks, waves, shared memory per block, mma"));
}

TEST_CASE("reports fit 60 columns, in ASCII where the locale is") {
  auto records = two_counted();
  records.push_back(counted("stage6_fa2_deferred", 6, "lazy"));
  records[2].outcome = Outcome::wrong;
  records[2].reason = "a long sentence about what is wrong with this kernel, longer than one line";
  std::istringstream lines(group_text(groups_of(records)[0], {.width = 60}));
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(cli::display_width(line) <= 60);
    CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= 32 && c < 127; }));
  }
}

TEST_CASE("recorded times stand beside the counters, labeled, for the nearest shape") {
  const auto records = two_counted();
  std::vector<Record> times = {timed("stage4_fa2_warps", 4, 9.0), timed("stage4_fa2_warps", 4, 1.5),
                               timed("stage3_fa2_seqpar", 3, 2.5)};
  for (Record& t : times) t.shape.d = 64;
  times[1].shape.Nq = times[1].shape.Nk = 1024;
  times[2].shape.Nq = times[2].shape.Nk = 1024;
  const View view{.recorded = &times};
  const Group group = groups_of(records)[0];
  REQUIRE(recorded_for(records[1], group, times) == &times[1]);
  CHECK(recorded_for(records[0], group, times) == &times[2]);
  const std::string text = group_text(group, view);
  CHECK(has(text, "recorded"));
  CHECK(has(text, "measured earlier on NVIDIA H200"));
  CHECK(has(text, "B2 H16 N1024 d64 full"));
  times[0].shape.d = times[1].shape.d = times[2].shape.d = 128;
  CHECK(recorded_for(records[1], group, times) == nullptr);
  CHECK_FALSE(has(group_text(group, view), "recorded"));
}

TEST_CASE("Markdown has the tables, the notes and the changes") {
  Results results;
  results.environment = environment();
  results.command = "fa2 compare --stages 3,4";
  results.records = two_counted();
  results.records[1].outcome = Outcome::wrong;
  results.records[1].reason = "row 3 is NaN";
  const std::string text = markdown_report(results, {});
  CHECK(has(text, "## B1 H2 N512 d64 full, fp16, tiles same (64x128, 4 warps)"));
  CHECK(has(text, "| 3 seqpar | ok |"));
  CHECK(has(text, "row 3 is NaN"));
  CHECK(has(text, "| block barriers | 300 | 100 | /3 |"));
  CHECK(has(text, "abc1234"));
}

TEST_CASE("against: agreeing, drifted and unrecorded rows") {
  const auto then = all_timed();
  auto now = then;
  now[1].time_ms = 4.1;  // 2.5%: within the 5% that a GPU varies by
  CHECK(compare_with(now, then).drifted.empty());
  CHECK(exit_code_of(compare_with(now, then)) == 0);
  now[1].time_ms = 4.4;
  now[3].time_ms = 4.0;
  now[4].shape.Nq = 77;
  const Comparison c = compare_with(now, then);
  REQUIRE(c.drifted.size() == 2);
  CHECK(has(c.drifted[0], "2 fa1"));
  CHECK(has(c.drifted[0], "10.0% slower"));
  CHECK(has(c.drifted[1], "20.0% faster"));
  CHECK(c.unchanged == 4);
  CHECK(c.unrecorded == 1);
  CHECK(exit_code_of(c) == 1);
}

TEST_CASE("against: spreads widen what is allowed") {
  auto then = all_timed();
  auto now = then;
  now[1].time_ms = 4.4;
  now[1].spread = then[1].spread = 0.11;
  CHECK(compare_with(now, then).drifted.empty());
}

TEST_CASE("against: a row that became wrong drifted") {
  const auto then = all_timed();
  auto now = then;
  now[0].outcome = Outcome::wrong;
  now[0].reason = "NaN";
  CHECK(has(compare_with(now, then).drifted.at(0), "right then, wrong (NaN) now"));
}

TEST_CASE("against: any counter that differs drifted") {
  const auto then = two_counted();
  auto now = then;
  CHECK(exit_code_of(compare_with(now, then)) == 0);
  now[0].counters->votes = 1;
  CHECK(has(compare_with(now, then).drifted.at(0), "votes 0 then, 1 now"));
}

TEST_CASE("against: no record for this GPU") {
  const auto then = all_timed();
  auto now = then;
  for (Record& r : now) r.environment.gpu = "NVIDIA L4";
  const Comparison c = compare_with(now, then);
  CHECK(exit_code_of(c) == 2);
  CHECK(has(text_of(c, "h200.json", now[0].environment), "no record for NVIDIA L4"));
  const Comparison simulated = compare_with(two_counted(), then);
  CHECK(exit_code_of(simulated) == 2);
  CHECK(has(text_of(simulated, "h200.json", two_counted()[0].environment), "the simulator"));
}

}  // namespace

// The part of fa2-check that judges: it never loads the kernel, and reads only what it wrote.
#include "common/harness/judge.h"

#include <set>

#include "common/cli/check/cases.h"
#include "common/harness/failure.h"
#include "common/harness/float16.h"
#include "common/harness/tiles.h"

namespace fa2::check {
namespace {

using Json = nlohmann::ordered_json;

/// Above this many multiplications the reference has some rows of every head, not all.
constexpr double reference_products = 4e9;

/// The numbers that the closed forms of the counters are made of.
Json sizes_json(const Problem& p, const Tile& t) {
  const int64_t heads = int64_t{p.batch} * p.heads_q;
  return {{"T", visited_tiles(p, t.Br, t.Bc)},
          {"q_tiles", heads * ((p.Nq + t.Br - 1) / t.Br)},
          {"heads", heads},
          {"Nq", p.Nq},
          {"d", p.d},
          {"Br", t.Br},
          {"Bc", t.Bc},
          {"warps", t.warps}};
}

/// Puts the truth in place of O, so that only LSE can be wrong.
void excuse_O(Outputs& outputs, const Workload& workload) {
  const Reference& reference = workload.reference();
  for (size_t n = 0; n < reference.rows.size(); ++n) {
    const RowIndex& at = reference.rows[n];
    const auto row = outputs.O.row(at.b, at.h, at.i);
    for (size_t c = 0; c < row.size(); ++c)
      row[c] = encode(workload.problem().dtype, static_cast<float>(reference.O_row(n)[c]));
  }
}

/// Which elements of O are wrong: the first, and how they lie in the tiles.
Json wrong_elements(const Workload& workload, const Outputs& outputs, const Tile& tile) {
  const Reference& reference = workload.reference();
  Json first;
  int64_t wrong = 0, all = 0;
  std::set<int> rows_in_tile, columns;
  for (size_t n = 0; n < reference.rows.size(); ++n) {
    const RowIndex& at = reference.rows[n];
    const auto row = outputs.O.row(at.b, at.h, at.i);
    for (int c = 0; c < workload.problem().d; ++c) {
      ++all;
      const Element element = judge_O(workload, n, c, row[c], tile);
      if (element == Element::right || element == Element::excused) continue;
      if (wrong++ == 0) first = {{"batch", at.b}, {"head", at.h}, {"row", at.i}, {"column", c}};
      rows_in_tile.insert(at.i % tile.Br);
      columns.insert(c);
    }
  }
  if (wrong == 0) return nullptr;
  return {{"first", first},
          {"wrong", wrong},
          {"elements", all},
          {"rows_in_tile", rows_in_tile},
          {"columns", columns}};
}

Json judge_case(const Case& c, size_t index, const std::string& folder) {
  const Workload workload(c.spec, reference_products);
  Outputs outputs = read_outputs(folder, index, workload.problem());
  if (c.only_LSE) excuse_O(outputs, workload);
  const Verdict verdict = judge(workload, outputs, c.tile);
  Json json = {{"ok", verdict.ok},
               {"message", verdict.message},
               {"max_abs_err", verdict.max_abs_err},
               {"share_of_tolerance", verdict.worst_share},
               {"sizes", sizes_json(workload.problem(), c.tile)}};
  if (!verdict.ok && !c.only_LSE) json["where"] = wrong_elements(workload, outputs, c.tile);
  return json;
}

}  // namespace

Json judge_all(const std::string& cases_path, const std::string& folder) {
  const std::vector<Case> cases = read_cases(cases_path);
  Json verdicts = Json::array();
  for (size_t i = 0; i < cases.size(); ++i) {
    try {
      verdicts.push_back(judge_case(cases[i], i, folder));
    } catch (const Failure& failure) {
      verdicts.push_back({{"ok", false}, {"message", failure.what()}});
    }
  }
  return verdicts;
}

}  // namespace fa2::check

// The part of fa2-check that judges: it never loads the kernel, and reads only what it wrote.
#include "common/harness/judge.h"

#include <cmath>
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

/// The number c for which c `expected` is nearest to `got`, over the columns that `belongs` picks,
/// and whether it is near enough: then got is expected, times c.
struct Multiple {
  double factor;
  bool fits;
};
template <class Belongs>
Multiple multiple_of(const double* expected, const std::vector<double>& got, Belongs belongs) {
  double products = 0, squares = 0, got_squares = 0, residue = 0;
  for (size_t c = 0; c < got.size(); ++c) {
    if (!belongs(c)) continue;
    products += got[c] * expected[c];
    squares += expected[c] * expected[c];
    got_squares += got[c] * got[c];
  }
  const double factor = products / squares;
  for (size_t c = 0; c < got.size(); ++c) {
    if (belongs(c)) residue += std::pow(got[c] - factor * expected[c], 2);
  }
  return {factor, std::isfinite(factor) && factor != 0 && residue <= 1e-3 * got_squares};
}

bool near(double a, double b) { return std::fabs(a - b) <= 0.03 * std::fabs(b); }

/// How the wrong rows are wrong, in what tells one mistake of the softmax from another: is O wrong,
/// is LSE, is a row of O the right one times a number, and is l, which LSE gives away, off by that
/// number too. A lane of a quad holds the columns c with c % 8 / 2 equal to its number.
Json pattern_of(const Workload& workload, const Outputs& outputs, const Tile& tile) {
  const Reference& reference = workload.reference();
  const Problem& p = workload.problem();
  int64_t O_wrong = 0, LSE_wrong = 0, rows = 0;
  bool row_multiples = true, lane_multiples = true, lanes_sum_to_1 = true;
  bool l_fits_rows = true, l_fits_lanes = true;
  double smallest_l = INFINITY, largest_l = 0, smallest = INFINITY, largest = 0;
  for (size_t n = 0; n < reference.rows.size(); ++n) {
    const RowIndex& at = reference.rows[n];
    const auto bits = outputs.O.row(at.b, at.h, at.i);
    bool wrong = false;
    std::vector<double> got;
    for (int c = 0; c < p.d; ++c) {
      const Element element = judge_O(workload, n, c, bits[c], tile);
      wrong |= element != Element::right && element != Element::excused;
      got.push_back(decode(p.dtype, bits[c]));
    }
    if (!std::isfinite(reference.LSE[n])) continue;
    ++rows;
    const double LSE = outputs.LSE[(static_cast<size_t>(at.b) * p.heads_q + at.h) * p.Nq + at.i];
    const double l = std::exp(LSE - reference.LSE[n]);  // over the right one, if m is right
    if (!(std::fabs(LSE - reference.LSE[n]) <= reference.LSE_tolerance[n])) {
      ++LSE_wrong;
      smallest_l = std::min(smallest_l, l), largest_l = std::max(largest_l, l);
    }
    if (!wrong) continue;
    ++O_wrong;
    const double* expected = reference.O_row(n);
    const Multiple whole = multiple_of(expected, got, [](size_t) { return true; });
    row_multiples &= whole.fits;
    smallest = std::min(smallest, whole.factor), largest = std::max(largest, whole.factor);
    double parts = 0;
    bool some_lane_fits = false;
    for (size_t lane = 0; lane < 4; ++lane) {
      const Multiple m = multiple_of(expected, got, [&](size_t c) { return c % 8 / 2 == lane; });
      lane_multiples &= m.fits;
      parts += 1 / m.factor;
      some_lane_fits |= near(m.factor * l, 1);
    }
    lanes_sum_to_1 &= near(parts, 1);
    l_fits_rows &= near(whole.factor * l, 1);
    l_fits_lanes &= some_lane_fits;
  }
  Json json = {{"rows", rows}, {"O_wrong", O_wrong}, {"LSE_wrong", LSE_wrong}};
  if (LSE_wrong > 0 && std::isfinite(largest_l)) json["l"] = {smallest_l, largest_l};
  if (O_wrong > 0 && (row_multiples || (lane_multiples && lanes_sum_to_1))) {
    json["multiple"] = row_multiples ? "row" : "lane";
    json["factors"] = {smallest, largest};
    json["l_fits"] = row_multiples ? l_fits_rows : l_fits_lanes;
  }
  return json;
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
  if (!verdict.ok && !c.only_LSE) {
    json["where"] = wrong_elements(workload, outputs, c.tile);
    json["pattern"] = pattern_of(workload, outputs, c.tile);
  }
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

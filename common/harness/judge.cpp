#include "common/harness/judge.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/harness/float16.h"
#include "common/harness/text.h"

namespace fa2 {
namespace {

std::string place(const RowIndex& at) {
  return "[batch " + std::to_string(at.b) + ", head " + std::to_string(at.h) + ", row " +
         std::to_string(at.i);
}

/// Goes through the rows of one result and keeps the first complaint.
class Judge {
 public:
  Judge(const Workload& workload, const Outputs& outputs, const Tile& tile)
      : workload_(workload), p_(workload.problem()), outputs_(outputs), tile_(tile) {}

  Verdict verdict() {
    if (!outputs_.damage.empty()) complain("memory was changed " + outputs_.damage + ".");
    if (has_output(p_)) {
      const Reference& reference = workload_.reference();
      for (size_t n = 0; n < reference.rows.size(); ++n) check_row(reference, n);
      if (!reference.all_rows) check_unsampled_rows();
    }
    return verdict_;
  }

 private:
  void complain(const std::string& sentence) {
    if (verdict_.ok) verdict_.message = sentence;
    verdict_.ok = false;
  }

  float LSE_at(const RowIndex& at) const {
    return outputs_.LSE[(static_cast<size_t>(at.b) * p_.heads_q + at.h) * p_.Nq + at.i];
  }

  void check_row(const Reference& reference, size_t n) {
    const RowIndex& at = reference.rows[n];
    const auto row = outputs_.O.row(at.b, at.h, at.i);
    for (int c = 0; c < p_.d; ++c) check_O(reference, n, c, row[c]);
    check_LSE(at, LSE_at(at), reference.LSE[n], reference.LSE_tolerance[n]);
  }

  void check_O(const Reference& reference, size_t n, int c, uint16_t bits) {
    const RowIndex& at = reference.rows[n];
    const double got = decode(p_.dtype, bits), expected = reference.O_row(n)[c];
    const double allowed = reference.O_tolerance[n];
    switch (judge_O(workload_, n, c, bits, tile_)) {
      case Element::right:
        return note_error(std::fabs(got - expected), allowed);
      case Element::excused:
        return;
      case Element::unwritten:
        return complain_O(at, c, "was never written");
      case Element::finite:
        return complain_O(at, c,
                          "is " + short_number(got) + ", expected NaN: its inputs are not finite");
      case Element::apart:
        note_error(std::fabs(got - expected), allowed);
        complain_O(at, c,
                   "is " + short_number(got, 6) + ", expected " + short_number(expected, 6) +
                       " within " + short_number(allowed, 3));
    }
  }

  void note_error(double error, double allowed) {
    verdict_.max_abs_err = std::isnan(error) ? error : std::max(verdict_.max_abs_err, error);
    const double share = error == 0 ? 0 : error / allowed;
    if (verdict_.tolerance > 0 && !(share > verdict_.worst_share)) return;
    verdict_.worst_share = share;
    verdict_.tolerance = allowed;
  }

  void complain_O(const RowIndex& at, int c, const std::string& what) {
    if (!verdict_.ok) return;
    complain("O" + place(at) + ", column " + std::to_string(c) + "] " + what + ".");
  }

  void check_LSE(const RowIndex& at, float got, double expected, double allowed) {
    std::string what;
    if (std::bit_cast<uint32_t>(got) == poison_fp32) {
      what = "was never written";
    } else if (std::isnan(expected)) {
      if (!std::isfinite(got)) return;
      what = "is " + short_number(got) + ", expected NaN: its inputs are not finite";
    } else if (std::isinf(expected)) {
      if (got == expected) return;
      what = "is " + short_number(got) + ", expected -inf: the row has no weight";
    } else {
      const double error = std::fabs(got - expected);
      verdict_.max_lse_err = std::isnan(error) ? error : std::max(verdict_.max_lse_err, error);
      if (error <= allowed) return;
      what = "is " + short_number(got, 7) + ", expected " + short_number(expected, 7) + " within " +
             short_number(allowed, 3);
    }
    if (verdict_.ok) complain("LSE" + place(at) + "] " + what + ".");
  }

  /// Rows without a reference must at least be written, and finite where all inputs are.
  void check_unsampled_rows() {
    const bool finite = !has_nonfinite(workload_.spec().inputs);
    for_each_row(outputs_.O.shape(), [&](int64_t b, int64_t h, int64_t i) {
      const auto row = outputs_.O.row(b, h, i);
      const RowIndex at = {static_cast<int>(b), static_cast<int>(h), static_cast<int>(i)};
      for (int c = 0; c < p_.d; ++c) {
        if (row[c] == poison) complain_O(at, c, "was never written");
        if (finite && !std::isfinite(decode(p_.dtype, row[c]))) complain_O(at, c, "is not finite");
      }
    });
  }

  const Workload& workload_;
  const Problem& p_;
  const Outputs& outputs_;
  Tile tile_;
  Verdict verdict_;
};

}  // namespace

Element judge_O(const Workload& workload, size_t n, int c, uint16_t bits, const Tile& tile) {
  const Reference& reference = workload.reference();
  const double got = decode(workload.problem().dtype, bits), expected = reference.O_row(n)[c];
  if (bits == poison) return Element::unwritten;
  if (!std::isfinite(expected)) return std::isfinite(got) ? Element::finite : Element::excused;
  if (!std::isfinite(got) && workload.V_may_reach(reference.rows[n], c, tile))
    return Element::excused;
  return std::fabs(got - expected) <= reference.O_tolerance[n] ? Element::right : Element::apart;
}

Verdict judge(const Workload& workload, const Outputs& outputs, const Tile& tile) {
  return Judge(workload, outputs, tile).verdict();
}

}  // namespace fa2

#include "common/harness/workload.h"

#include <algorithm>
#include <cmath>

#include "common/harness/float16.h"
#include "common/harness/host_memory.h"
#include "common/harness/tiles.h"
#include "common/harness/validate.h"

namespace fa2 {
namespace {

/// The problem, if its inputs and outputs and their copies on a simulated device fit in memory.
Problem validated(const Spec& spec) {
  const fa2_problem given = to_problem(spec);
  const Problem p = validate(&given);
  require_host_memory("the tensors of this problem",
                      12 * shape_q(p).elements() + 8 * shape_kv(p).elements());
  return p;
}

/// The first key with a NaN or infinity in each column of V.
std::vector<int> find_bad_keys(const Problem& p, const HostTensor& V) {
  std::vector<int> first(static_cast<size_t>(p.batch) * p.heads_kv * p.d, p.Nk);
  for_each_row(V.shape(), [&](int64_t b, int64_t h, int64_t j) {
    const auto row = V.row(b, h, j);
    for (int c = 0; c < p.d; ++c) {
      int& known = first[(b * p.heads_kv + h) * p.d + c];
      if (!std::isfinite(decode(p.dtype, row[c]))) known = std::min(known, static_cast<int>(j));
    }
  });
  return first;
}

}  // namespace

Workload::Workload(const Spec& spec, double max_products)
    : spec_(spec),
      problem_(validated(spec)),
      inputs_(make_inputs(spec, problem_)),
      max_products_(max_products) {
  if (has_nonfinite(spec.inputs)) first_bad_key_ = find_bad_keys(problem_, inputs_.V);
}

const Reference& Workload::reference() const {
  std::call_once(once_,
                 [&] { reference_ = make_reference(spec_, problem_, inputs_, max_products_); });
  return reference_;
}

bool Workload::V_may_reach(const RowIndex& at, int column, const Tile& tile) const {
  if (first_bad_key_.empty()) return false;
  const Problem& p = problem_;
  const size_t h_kv = static_cast<size_t>(at.h) / (p.heads_q / p.heads_kv);
  const int key = first_bad_key_[(static_cast<size_t>(at.b) * p.heads_kv + h_kv) * p.d + column];
  const int last_row = std::min((at.i / tile.Br + 1) * tile.Br, p.Nq) - 1;
  return key < p.Nk && key / tile.Bc * tile.Bc < fa2::visible_keys(p, last_row);
}

}  // namespace fa2

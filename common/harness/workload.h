#pragma once
// A problem with its inputs and the reference that every stage's result is held against.
#include <mutex>
#include <vector>

#include "common/harness/inputs.h"
#include "common/harness/reference.h"

namespace fa2 {

class Workload {
 public:
  /// Validates the problem and makes its inputs. Throws Failure. `max_products` limits the work of
  /// the reference, see make_reference.
  explicit Workload(const Spec& spec, double max_products = 1e18);

  const Spec& spec() const { return spec_; }
  const Problem& problem() const { return problem_; }
  const InputTensors& inputs() const { return inputs_; }

  /// Computed at the first call.
  const Reference& reference() const;

  /// Whether the contract lets a NaN or infinity of V show in this element: some key of a tile that
  /// the row's q tile visits holds one in this column.
  bool V_may_reach(const RowIndex& at, int column, const Tile& tile) const;

 private:
  Spec spec_;
  Problem problem_;
  InputTensors inputs_;
  std::vector<int> first_bad_key_;  // [batch][heads_kv][d], Nk where there is none; empty: nowhere
  double max_products_;
  mutable std::once_flag once_;
  mutable Reference reference_;
};

}  // namespace fa2

// The lists of problems.
#include "common/testing/contract.h"

namespace fa2::testing {
namespace {

/// Collects cases, alternating what a case leaves open.
class CaseList {
 public:
  explicit CaseList(int d) : d_(d) {}

  void add(const std::string& topic, Spec spec) {
    spec.d = d_;
    spec.seed = 1000 + cases_.size();
    cases_.push_back({topic + ": " + to_text(spec), spec});
  }

  /// Once full and once causal, with either element type in turn.
  void add_both_masks(const std::string& topic, Spec spec) {
    for (const bool causal : {false, true}) {
      spec.causal = causal;
      spec.dtype = cases_.size() % 4 < 2 ? Dtype::fp16 : Dtype::bf16;
      add(topic, spec);
    }
  }

  std::vector<ContractCase> take() { return std::move(cases_); }

 private:
  int d_;
  std::vector<ContractCase> cases_;
};

Spec shape(int64_t batch, int64_t heads_q, int64_t heads_kv, int64_t Nq, int64_t Nk) {
  Spec spec;
  spec.batch = batch;
  spec.heads_q = heads_q;
  spec.heads_kv = heads_kv;
  spec.Nq = Nq;
  spec.Nk = Nk;
  return spec;
}

Spec with(Spec spec, Inputs inputs) {
  spec.inputs = inputs;
  return spec;
}

Spec with(Spec spec, std::array<Layout, 4> layouts) {
  spec.layouts = layouts;
  return spec;
}

void add_shapes(CaseList& list, const Tile& t) {
  const int64_t shapes[][2] = {
      {1, 1},           {1, t.Bc + 1},        {t.Br - 1, t.Bc - 1},        {t.Br, t.Bc},
      {t.Br + 1, 2},    {17, 2 * t.Bc + 3},   {2 * t.Br + 3, t.Bc + 1},    {3 * t.Br + 1, 17},
      {t.Br + 5, t.Br}, {t.Br, 2 * t.Bc - 1}, {2 * t.Br - 1, t.Br + t.Bc},
  };
  for (const auto& [Nq, Nk] : shapes) {
    for (const Dtype dtype : {Dtype::fp16, Dtype::bf16})
      for (const bool causal : {false, true}) {
        Spec spec = shape(1, 1, 1, Nq, Nk);
        spec.dtype = dtype;
        spec.causal = causal;
        list.add("shape", spec);
      }
  }
}

void add_empty(CaseList& list, const Tile& t) {
  list.add_both_masks("no queries", shape(2, 2, 1, 0, 5));
  list.add_both_masks("no keys", shape(2, 2, 1, t.Br + 1, 0));
  list.add_both_masks("no batch", shape(0, 2, 1, 8, 8));
  list.add_both_masks("nothing at all", shape(0, 1, 1, 0, 0));
}

void add_heads_and_strides(CaseList& list, const Tile& t) {
  for (const auto& [heads_q, heads_kv] : {std::pair{4, 1}, {6, 3}, {3, 3}, {5, 1}})
    list.add_both_masks("heads", shape(2, heads_q, heads_kv, 21, 37));
  for (const Layout layout : {Layout::bnhd, Layout::row_gap, Layout::head_gap, Layout::packed}) {
    Spec spec = shape(2, 2, 1, t.Br + 3, 19);
    spec.layouts.fill(layout);
    list.add_both_masks("strides", spec);
  }
  Spec mixed = shape(3, 2, 1, 9, t.Bc + 3);
  mixed.layouts = {Layout::packed, Layout::row_gap, Layout::bnhd, Layout::head_gap};
  list.add_both_masks("strides", mixed);
}

void add_scales(CaseList& list) {
  for (const float scale : {1e-6f, 0.02f, 0.5f, 2.f}) {
    Spec spec = shape(1, 2, 1, 33, 70);
    spec.scale = scale;
    list.add_both_masks("scale", spec);
  }
}

void add_inputs(CaseList& list, const Tile& t) {
  for (int i = 0; i < inputs_count; ++i) {
    const Inputs inputs = static_cast<Inputs>(i);
    // Where one head holds NaN, the other must not notice, nor, under a mask, the rows before it.
    const int64_t N = t.Br + t.Bc + 11;
    const Spec spec =
        has_nonfinite(inputs) ? shape(1, 2, 2, N, N) : shape(1, 2, 1, t.Br + 9, 2 * t.Bc + 11);
    list.add_both_masks("inputs", with(spec, inputs));
  }
  // Rows that the mask leaves without a key, in tiles that V's NaN reaches and in tiles it does
  // not.
  for (const Inputs inputs : {Inputs::nan_V, Inputs::inf_V, Inputs::nan_K, Inputs::inf_K}) {
    Spec spec = shape(1, 2, 2, 3 * t.Br + 9, t.Br + 11);
    spec.inputs = inputs;
    list.add_both_masks("inputs", spec);
  }
}

/// Reported cases carry their own shape, mask and name.
class ReportedList {
 public:
  explicit ReportedList(int d) : d_(d) {}
  void add(const std::string& name, Spec spec, bool causal = true) {
    spec.d = d_;
    spec.causal = causal;
    spec.seed = 77 + cases_.size();
    cases_.push_back({name, spec});
  }
  std::vector<ContractCase> take() { return std::move(cases_); }

 private:
  int d_;
  std::vector<ContractCase> cases_;
};

}  // namespace

std::vector<ContractCase> contract_cases(const Tile& tile, int d) {
  CaseList list(d);
  add_shapes(list, tile);
  add_empty(list, tile);
  add_heads_and_strides(list, tile);
  add_scales(list);
  add_inputs(list, tile);
  return list.take();
}

std::vector<ContractCase> reported_cases(int d, Backend backend) {
  constexpr Layout near = Layout::bhnd, far_b = Layout::far_batch, far_r = Layout::far_row;
  constexpr std::array<Layout, 4> padded = {Layout::head_gap, Layout::head_gap, Layout::head_gap,
                                            Layout::head_gap};
  ReportedList list(d);
  list.add("grid limit: batch x heads above 65,535 (flash-attention #1786)",
           shape(32800, 2, 1, 1, backend == Backend::sim ? 0 : 1), false);
  list.add("32-bit offsets overflow between batches of Q and V (flash-attention #2214, #767)",
           with(shape(2, 1, 1, 40, 70), {far_b, near, far_b, near}));
  list.add("32-bit offsets overflow between batches of K and O (flash-attention #2214, #767)",
           with(shape(2, 1, 1, 40, 70), {near, far_b, near, far_b}));
  list.add("32-bit offsets overflow between rows of Q and V (flash-attention #2214, #767)",
           with(shape(1, 1, 1, 70, 70), {far_r, near, far_r, near}));
  list.add("32-bit offsets overflow between rows of K and O (flash-attention #2214, #767)",
           with(shape(1, 1, 1, 70, 70), {near, far_r, near, far_r}));
  list.add("causal is bottom-right aligned, Nq < Nk (flash-attention #402, #282, #517)",
           shape(1, 2, 1, 50, 333));
  list.add("causal is bottom-right aligned, Nq > Nk (flash-attention #402, #282, #517)",
           shape(1, 2, 1, 200, 75));
  list.add("q=2048 k=1024 causal: the upper half sees nothing (flash-attention #1778)",
           shape(1, 1, 1, 2048, 1024));
  list.add(
      "fully masked rows: O = 0, LSE = -inf (flash-attention #443, mlx #2608, rten #1321, "
      "ik_llama.cpp #2344)",
      shape(2, 2, 1, 150, 3));
  list.add("every score negative: a maximum stuck at 0 loses the row (flash-attention #2082)",
           with(shape(1, 2, 1, 150, 140), Inputs::negative));
  list.add("first keys very negative, the rest not (flash-attention #2082)",
           with(shape(1, 2, 1, 20, 300), Inputs::negative_start), false);
  list.add("NaN of an earlier head in shared memory beyond Nk (flash-attention #1395)",
           with(shape(3, 1, 1, 70, 37), Inputs::nan_first_head), false);
  list.add("NaN in the padding behind K and V (flash-attention #2374, #1745)",
           with(shape(2, 2, 2, 70, 137), padded), false);
  list.add("zero-length K and V (flash-attention #1537, #1155)", shape(2, 2, 1, 70, 0));
  list.add("zero-length Q (flash-attention #1537, #1155)", shape(2, 2, 1, 0, 70));
  list.add("transposed inputs (flash-attention #2670)",
           with(shape(2, 3, 3, 70, 140), {Layout::bnhd, Layout::bnhd, Layout::bnhd, Layout::bnhd}));
  list.add("ragged lengths (66RING #12, tspeterkim #2, ThunderKittens #80, #111, LeetCUDA #294)",
           shape(1, 2, 1, 77, 201));
  return list.take();
}

}  // namespace fa2::testing

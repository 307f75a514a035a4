#include "common/cli/compare/record.h"

#include <algorithm>

namespace fa2::compare {

std::optional<double> Record::tflops() const {
  if (!time_ms || *time_ms <= 0) return {};
  double flops = 4;
  for (int64_t extent : {shape.batch, shape.heads_q, shape.Nq, shape.Nk, shape.d}) {
    flops *= static_cast<double>(extent);
  }
  if (shape.causal) flops /= 2;
  return flops / (*time_ms * 1e-3) / 1e12;
}

std::optional<double> Record::requested_gbps() const {
  if (!time_ms || *time_ms <= 0 || !requested_bytes) return {};
  return *requested_bytes / (*time_ms * 1e-3) / 1e9;
}

std::string label(const Record& r) {
  // "stage3_fa2_seqpar" -> "seqpar", "stage2_fa1/kv_outer" -> "fa1/kv_outer".
  std::string name = r.stage;
  if (const size_t at = name.find('_'); name.starts_with("stage") && at != name.npos) {
    name.erase(0, at + 1);
  }
  if (name.starts_with("fa2_")) name.erase(0, 4);
  std::string text = std::to_string(r.number) + " " + name;
  if (!r.variant.empty()) text += " " + r.variant;
  return text;
}

std::string label(const Shape& s) {
  std::string text = "B" + std::to_string(s.batch) + " H" + std::to_string(s.heads_q);
  if (s.heads_kv != s.heads_q) text += " Hkv" + std::to_string(s.heads_kv);
  if (s.Nq == s.Nk) {
    text += " N" + std::to_string(s.Nq);
  } else {
    text += " Nq" + std::to_string(s.Nq) + " Nk" + std::to_string(s.Nk);
  }
  return text + " d" + std::to_string(s.d) + (s.causal ? " causal" : " full");
}

std::string label(const TileUsed& t) {
  std::string text =
      std::to_string(t.Br) + "x" + std::to_string(t.Bc) + ", " + std::to_string(t.warps) + " warps";
  if (t.depth > 1) text += ", depth " + std::to_string(t.depth);
  return text;
}

bool same_experiment(const Record& a, const Record& b) {
  return a.stage == b.stage && a.variant == b.variant && a.backend == b.backend &&
         a.shape == b.shape && a.dtype == b.dtype && a.tile_mode == b.tile_mode;
}

}  // namespace fa2::compare

#include "common/cli/compare/requested.h"

#include <algorithm>

namespace fa2::compare {

std::optional<double> requested_bytes_of(const Record& r) {
  if (r.number < 2 || r.stage.find('/') != std::string::npos || !r.tile) return {};
  const Shape& s = r.shape;
  const int64_t Br = r.tile->Br, Bc = r.tile->Bc;
  int64_t keys = 0;  // rows of K that the q tiles of one head load; as many of V
  for (int64_t first = 0; first < s.Nq; first += Br) {
    const int64_t last = std::min(first + Br, s.Nq) - 1;
    const int64_t seen = s.causal ? std::clamp<int64_t>(last + 1 + s.Nk - s.Nq, 0, s.Nk) : s.Nk;
    keys += std::min((seen + Bc - 1) / Bc * Bc, s.Nk);  // whole tiles
  }
  const int64_t row_bytes = 2 * s.d;
  const int64_t per_head = s.Nq * (2 * row_bytes + 4) + 2 * keys * row_bytes;  // Q, O, LSE; K, V
  return static_cast<double>(s.batch * s.heads_q * per_head);
}

}  // namespace fa2::compare

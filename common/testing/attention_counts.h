#pragma once
// The counts that stages share on the same tile, and the sizes their closed forms are made of.
#include "common/harness/counters.h"
#include "common/harness/tiles.h"
#include "common/testing/catch.h"
#include "common/testing/catch_contract.h"

namespace fa2::testing {

inline constexpr const char* count_cases[] = {"h=2 q=256 k=256", "causal h=2 q=256 k=256",
                                              "d=128 q=128 k=384", "causal b=2 h=4/2 q=128 k=256"};

struct Counted {
  fa2_counters n;
  uint64_t Br, Bc, warps, d;
  uint64_t heads;    // batch * heads_q
  uint64_t q_tiles;  // query tiles of all heads
  uint64_t T;        // pairs of query tile and key tile visited
  uint64_t Nq, Nk;
  uint64_t visible;  // pairs of query and key, of all heads, that the mask leaves
};

inline Counted count_case(const char* stage, const char* text, const char* variant = "") {
  const Spec spec = parse_spec(text);
  Tile tile{};
  Counted c{};
  c.n = count(stage, spec, &tile, variant);
  Problem p{};
  p.batch = static_cast<int>(spec.batch);
  p.heads_q = static_cast<int>(spec.heads_q);
  p.Nq = static_cast<int>(spec.Nq);
  p.Nk = static_cast<int>(spec.Nk);
  p.causal = spec.causal;
  c.Br = tile.Br, c.Bc = tile.Bc, c.warps = tile.warps, c.d = spec.d;
  c.Nq = spec.Nq, c.Nk = spec.Nk;
  c.heads = spec.batch * spec.heads_q;
  c.q_tiles = c.heads * ((spec.Nq + tile.Br - 1) / tile.Br);
  c.T = visited_tiles(p, tile.Br, tile.Bc);
  for (int64_t i = 0; i < spec.Nq; ++i) c.visible += c.heads * visible_keys(p, i);
  return c;
}

/// What no change from stage 2 to stage 6 may move.
inline void check_common_counts(const Counted& c) {
  CHECK(c.n.mma == c.T * 4 * c.Br * c.Bc * c.d / 4096);
  CHECK(c.n.exp2_p == c.T * c.Br * c.Bc);
  // Q once, K and V once per visit; O and LSE once.
  CHECK(c.n.global_load_bytes == 2 * c.heads * c.Nq * c.d + c.T * 2 * 2 * c.Bc * c.d);
  CHECK(c.n.global_store_bytes == c.heads * c.Nq * (2 * c.d + 4));
  CHECK(c.n.shared_wavefronts_tiles == c.n.shared_wavefronts_ideal_tiles);
}

/// What stages 2 and 3 have in common: warps split K and V, the statistics go through shared memory.
inline void check_split_k_counts(const Counted& c) {
  CHECK(c.n.exp2_stats == c.T * c.Br);
  CHECK(c.n.normalisations == c.T * c.Br);
  CHECK(c.n.shuffles == 0);
  CHECK(c.n.warp_syncs == 0);
  // Every warp gives the partial P V of the other warps' rows away, once per visited tile.
  CHECK(c.n.shared_store_bytes_partial_o == c.T * (c.warps - 1) * c.Br * c.d * 4);
  CHECK(c.n.shared_load_bytes_partial_o == c.n.shared_store_bytes_partial_o);
  CHECK(c.n.shared_wavefronts_partial_o == c.n.shared_wavefronts_ideal_partial_o);
}

}  // namespace fa2::testing

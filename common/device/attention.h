#pragma once
// What attention adds to tiles: which rows of memory a block works on, which keys a row may see.
#include "common/device/tile.h"

namespace fa2::inline FA2_BACKEND {

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// The factor that turns Q K^T into base-2 exponents: scale * log2(e). exp(x) = exp2(x log2(e)),
/// and exp2 is one instruction.
__device__ __forceinline__ float log2_scale(const Problem& p) { return p.scale * 1.44269504f; }

/// How many keys query row i sees, from key 0 on. Causal is aligned at the bottom right: the last
/// query sees the last key.
__device__ __forceinline__ int visible_keys(const Problem& p, int i) {
  const int keys = p.causal ? i + 1 + (p.Nk - p.Nq) : p.Nk;
  return keys < 0 ? 0 : (keys < p.Nk ? keys : p.Nk);
}

/// The tiles of K and V that the query rows [first, first + Br) visit.
struct KeyTiles {
  int count;       // tiles 0 ... count - 1 hold a key that some row sees
  int first_mask;  // from this tile on some key is hidden from some row
};
__device__ __forceinline__ KeyTiles key_tiles(const Problem& p, int first, int Br, int Bc) {
  const int last = first + Br < p.Nq ? first + Br - 1 : p.Nq - 1;
  return {ceil_div(visible_keys(p, last), Bc), visible_keys(p, first) / Bc};
}

/// The q tile of this block; one behind the last row where grid_of() has rounded up. The last tile
/// comes first: under a causal mask it sees the most keys, and heavy blocks should start first.
__device__ __forceinline__ int query_tile() {
  return static_cast<int>((gridDim.z - blockIdx.z) * gridDim.y - 1 - blockIdx.y);
}

/// One (batch, query head): where its rows begin.
template <class T>
struct Head {
  gptr<const T> Q, K, V;
  gptr<T> O;
  gptr<float> LSE;

  __device__ __forceinline__ Head(const Problem& p, const Tensors& x, int bh)
      : Q(static_cast<const T*>(x.Q)),
        K(static_cast<const T*>(x.K)),
        V(static_cast<const T*>(x.V)),
        O(static_cast<T*>(x.O)),
        LSE(x.LSE) {
    const int b = bh / p.heads_q, h = bh % p.heads_q, h_kv = h / (p.heads_q / p.heads_kv);
    Q = Q + (b * p.Q.batch + h * p.Q.head);
    K = K + (b * p.K.batch + h_kv * p.K.head);
    V = V + (b * p.V.batch + h_kv * p.V.head);
    O = O + (b * p.O.batch + h * p.O.head);
    LSE = LSE + static_cast<int64_t>(bh) * p.Nq;
  }
};

/// Hides the keys that a row may not see: S = -inf there, so P = 0. `first_row` and `first_key` say
/// where in the problem S begins.
template <int M16, int N8>
__device__ __forceinline__ void mask(Fragment<S_tag, M16, N8>& S, const Problem& p, int first_row,
                                     int first_key) {
  const int diagonal = p.causal ? p.Nk - p.Nq : p.Nk;  // row i sees the keys j <= i + diagonal
  const int lane = recomputed(threadIdx.x) % 32;       // few tiles need it: not worth a register
  UNROLL for (int r = 0; r < S.rows; ++r) UNROLL for (int c = 0; c < S.cols; ++c) {
    const int i = first_row + row_of(r, lane), j = first_key + col_of(c, lane);
    if (j >= p.Nk || j > i + diagonal) S(r, c) = -INFINITY;
  }
}

/// m as a finite subtrahend: a row that has seen no key yet has m = -inf, and -inf - -inf is NaN.
template <class R>
__device__ __forceinline__ R finite(R m) {
  return m == -INFINITY ? R(0.f) : m;
}

/// LSE, the natural logarithm of the row's sum, from m (in log2 units) and l; -inf for an empty
/// row.
template <class R>
__device__ __forceinline__ R natural_log_sum(R m, R l) {
  return (m + log2(l)) * 0.693147181f;
}

/// The largest of this lane's elements of row r of S.
template <int M16, int N8>
__device__ __forceinline__ reg<stat_tag> lane_max(Fragment<S_tag, M16, N8>& S, int r) {
  reg<stat_tag> largest = S(r, 0);
  UNROLL for (int c = 1; c < S.cols; ++c) largest = max(largest, S(r, c));
  return largest;
}

/// The largest of this lane's elements of row r of S and of 0: an upper bound of lane_max in half
/// the instructions.
template <int M16, int N8>
__device__ __forceinline__ reg<stat_tag> lane_bound(Fragment<S_tag, M16, N8>& S, int r) {
  reg<stat_tag> bound = 0.f;
  UNROLL for (int c = 0; c < S.cols; c += 2) bound = max_from_0(bound, S(r, c), S(r, c + 1));
  return bound;
}

/// P = exp2(scale S - m) in place of this lane's elements of row r of S, m in log2 units. Returns
/// `sum` plus their sum.
template <int M16, int N8>
__device__ __forceinline__ reg<stat_tag> exponentiate(Fragment<S_tag, M16, N8>& S, int r,
                                                      float scale, reg<stat_tag> m,
                                                      reg<stat_tag> sum = 0.f) {
  const reg<stat_tag> m_row = finite(m);
  UNROLL for (int c = 0; c < S.cols; ++c) {
    S(r, c) = fast_exp2(fma(S(r, c), scale, -m_row));
    sum += S(r, c);
  }
  return sum;
}

/// The largest of, and the sum over, the four lanes of a quad, which together hold a row.
template <class R>
__device__ __forceinline__ R quad_max(R x) {
  x = max(x, shuffle_xor(x, 1));
  return max(x, shuffle_xor(x, 2));
}
template <class R>
__device__ __forceinline__ R quad_sum(R x) {
  x += shuffle_xor(x, 1);
  return x + shuffle_xor(x, 2);
}

/// Writes LSE of query row i, if there is one, from its m and l.
template <class T>
__device__ __forceinline__ void store_LSE(const Problem& p, const Head<T>& head, int i,
                                          reg<stat_tag> m, reg<stat_tag> l) {
  if (i < p.Nq) head.LSE[i] = natural_log_sum(m, l);
}

/// The same for this lane's rows, which a quad holds four times.
template <class T, class R, int rows>
__device__ __forceinline__ void store_LSE(const Problem& p, const Head<T>& head, int first_row,
                                          const R (&m)[rows], const R (&l)[rows]) {
  UNROLL for (int r = 0; r < rows; ++r) if (lane_id() % 4 == 0)
      store_LSE(p, head, first_row + row_of(r), m[r], l[r]);
}

/// Writes the rows below Nq of a fragment whose row 0 is query row `first_row`, from column
/// `first_col` on. `times(r)` is the factor of row r.
template <class T, int M16, int N8, class Factor>
__device__ __forceinline__ void store_O(Fragment<O_tag, M16, N8>& O, const Problem& p,
                                        const Head<T>& head, int first_row, int first_col,
                                        Factor times) {
  UNROLL for (int r = 0; r < O.rows; ++r) {
    const int i = first_row + row_of(r);
    const auto factor = times(r);
    if (i < p.Nq) {
      gptr<T> row = head.O + (i * p.O.row + first_col);
      UNROLL for (int c = 0; c < O.cols; c += 2)
          store2(row + col_of(c), pack2<T>(O(r, c) * factor, O(r, c + 1) * factor));
    }
  }
}

}  // namespace fa2::inline FA2_BACKEND

"""FlashAttention-2 forward in plain Triton: the peer that a Triton user would write.

One program per query tile and head. O stays un-normalized until the end; masked tiles are a loop of
their own. `triton.autotune` picks the tile for each head dim, mask and class of size.
"""

import math

import torch
import triton
import triton.language as tl

TILES = [(128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3), (64, 128, 4, 2)]
CONFIGS = [
    triton.Config({"Br": Br, "Bc": Bc}, num_warps=warps, num_stages=stages)
    for Br, Bc, warps, stages in TILES
]


@triton.jit
def online_softmax(S, m, l, O, V, masked: tl.constexpr):
    """One tile of S into the running maximum, sum and output. m is in log2 units."""
    m_new = tl.maximum(m, tl.max(S, 1))
    if masked:  # a row may have seen no key yet
        m_safe = tl.where(m_new == float("-inf"), 0.0, m_new)
    else:
        m_safe = m_new
    P = tl.math.exp2(S - m_safe[:, None])
    alpha = tl.math.exp2(m - m_safe)
    O = tl.dot(P.to(V.dtype), V, O * alpha[:, None])
    return m_new, l * alpha + tl.sum(P, 1), O


@triton.autotune(CONFIGS, key=["d", "causal", "large"])
@triton.jit
def forward(
    Q, K, V, O_out, LSE,
    scale,  # times log2(e)
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    heads, group, Nq, Nk, large,
    d: tl.constexpr, causal: tl.constexpr, Br: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    b = (tl.program_id(1) // heads).to(tl.int64)
    h = (tl.program_id(1) % heads).to(tl.int64)
    rows, keys, columns = i * Br + tl.arange(0, Br), tl.arange(0, Bc), tl.arange(0, d)
    K += b * k_batch + h // group * k_head
    V += b * v_batch + h // group * v_head
    Q_tile = tl.load(
        Q + b * q_batch + h * q_head + rows.to(tl.int64)[:, None] * q_row + columns[None, :],
        mask=rows[:, None] < Nq,
        other=0.0,
    )
    m = tl.full((Br,), float("-inf"), tl.float32)
    l = tl.zeros((Br,), tl.float32)
    O = tl.zeros((Br, d), tl.float32)

    unmasked, seen = Nk // Bc * Bc, Nk  # keys of whole visible tiles; of all visible tiles
    if causal:
        unmasked = tl.minimum(unmasked, tl.maximum(i * Br + Nk - Nq + 1, 0) // Bc * Bc)
        seen = tl.minimum(Nk, tl.maximum((i + 1) * Br + Nk - Nq, 0))
    for j in range(0, unmasked, Bc):
        at = (j + keys).to(tl.int64)[:, None]
        S = tl.dot(Q_tile, tl.trans(tl.load(K + at * k_row + columns[None, :]))) * scale
        m, l, O = online_softmax(S, m, l, O, tl.load(V + at * v_row + columns[None, :]), False)
    for j in range(unmasked, seen, Bc):
        at = (j + keys).to(tl.int64)[:, None]
        there = at < Nk
        K_tile = tl.load(K + at * k_row + columns[None, :], mask=there, other=0.0)
        V_tile = tl.load(V + at * v_row + columns[None, :], mask=there, other=0.0)
        visible = (j + keys)[None, :] < Nk
        if causal:
            visible &= (j + keys)[None, :] <= rows[:, None] + Nk - Nq
        S = tl.where(visible, tl.dot(Q_tile, tl.trans(K_tile)) * scale, float("-inf"))
        m, l, O = online_softmax(S, m, l, O, V_tile, True)

    O = O / tl.where(l > 0, l, 1.0)[:, None]
    tl.store(
        O_out + b * o_batch + h * o_head + rows.to(tl.int64)[:, None] * o_row + columns[None, :],
        O.to(O_out.dtype.element_ty),
        mask=rows[:, None] < Nq,
    )
    lse = tl.program_id(1).to(tl.int64) * Nq + rows
    tl.store(LSE + lse, (m + tl.math.log2(l)) / 1.4426950408889634, mask=rows < Nq)


def attention(q, k, v, causal: bool = False):
    """q, k, v: [batch, heads, rows, head_dim], head_dim contiguous. Returns O."""
    batch, heads, Nq, d = q.shape
    o = torch.empty_like(q)
    lse = torch.empty((batch, heads, Nq), dtype=torch.float32, device=q.device)
    grid = lambda config: (triton.cdiv(Nq, config["Br"]), batch * heads)  # noqa: E731
    forward[grid](
        q, k, v, o, lse, math.log2(math.e) / math.sqrt(d),
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *o.stride()[:3],
        heads, heads // k.shape[1], Nq, k.shape[2], Nq > 1024, d=d, causal=causal,
    )  # fmt: skip
    return o


def rows_per_tile() -> tuple[int, int]:
    """Br and Bc of the last call's tile."""
    return forward.best_config.kwargs["Br"], forward.best_config.kwargs["Bc"]

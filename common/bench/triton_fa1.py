"""A reference in the style of FlashAttention-1, in Triton: what FA2's changes 1 and 4 are over.

One program per head and batch, as in FA1's paper: the query tiles are a loop inside it, so B*H
programs are all there are. O is rescaled and divided by the row sum in every tile. (How Triton
splits a tile among warps and keeps the statistics is its own affair: changes 2 and 3 cannot be
undone here. Stage 2 does that.)
"""

import math

import torch
import triton
import triton.language as tl

TILES = [(128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 3)]
CONFIGS = [
    triton.Config({"Br": Br, "Bc": Bc}, num_warps=warps, num_stages=stages)
    for Br, Bc, warps, stages in TILES
]


@triton.autotune(CONFIGS, key=["d", "causal", "large"])
@triton.jit
def forward(
    Q, K, V, O_out,
    scale,  # times log2(e)
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    heads, group, Nq, Nk, large,
    d: tl.constexpr, causal: tl.constexpr, Br: tl.constexpr, Bc: tl.constexpr,
):  # fmt: skip
    b = (tl.program_id(0) // heads).to(tl.int64)
    h = (tl.program_id(0) % heads).to(tl.int64)
    keys, columns = tl.arange(0, Bc), tl.arange(0, d)
    Q += b * q_batch + h * q_head
    K += b * k_batch + h // group * k_head
    V += b * v_batch + h // group * v_head
    O_out += b * o_batch + h * o_head
    for i in range(0, tl.cdiv(Nq, Br)):
        rows = i * Br + tl.arange(0, Br)
        Q_tile = tl.load(
            Q + rows.to(tl.int64)[:, None] * q_row + columns[None, :],
            mask=rows[:, None] < Nq,
            other=0.0,
        )
        m = tl.full((Br,), float("-inf"), tl.float32)
        l = tl.zeros((Br,), tl.float32)
        O = tl.zeros((Br, d), tl.float32)
        seen = Nk
        if causal:
            seen = tl.minimum(Nk, tl.maximum((i + 1) * Br + Nk - Nq, 0))
        for j in range(0, seen, Bc):
            at = (j + keys).to(tl.int64)[:, None]
            K_tile = tl.load(K + at * k_row + columns[None, :], mask=at < Nk, other=0.0)
            V_tile = tl.load(V + at * v_row + columns[None, :], mask=at < Nk, other=0.0)
            visible = (j + keys)[None, :] < Nk
            if causal:
                visible &= (j + keys)[None, :] <= rows[:, None] + Nk - Nq
            S = tl.where(visible, tl.dot(Q_tile, tl.trans(K_tile)) * scale, float("-inf"))
            m_new = tl.maximum(m, tl.max(S, 1))
            m_safe = tl.where(m_new == float("-inf"), 0.0, m_new)
            P = tl.math.exp2(S - m_safe[:, None])
            alpha_l = tl.math.exp2(m - m_safe) * l
            l = alpha_l + tl.sum(P, 1)
            divisor = tl.where(l > 0, l, 1.0)
            O = O * (alpha_l / divisor)[:, None]  # and so O is normalized after every tile
            O += tl.dot(P.to(V_tile.dtype), V_tile) / divisor[:, None]
            m = m_new
        tl.store(
            O_out + rows.to(tl.int64)[:, None] * o_row + columns[None, :],
            O.to(O_out.dtype.element_ty),
            mask=rows[:, None] < Nq,
        )


def attention(q, k, v, causal: bool = False):
    """q, k, v: [batch, heads, rows, head_dim], head_dim contiguous. Returns O."""
    batch, heads, Nq, d = q.shape
    o = torch.empty_like(q)
    forward[(batch * heads,)](
        q, k, v, o, math.log2(math.e) / math.sqrt(d),
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *o.stride()[:3],
        heads, heads // k.shape[1], Nq, k.shape[2], Nq > 1024, d=d, causal=causal,
    )  # fmt: skip
    return o


def rows_per_tile() -> tuple[int, int]:
    """Br and Bc of the last call's tile."""
    return forward.best_config.kwargs["Br"], forward.best_config.kwargs["Bc"]

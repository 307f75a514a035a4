"""fa2course.attention on the simulator: random problems against NumPy in float64, sentences."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from fa2course import attention, library

ml_dtypes = pytest.importorskip("ml_dtypes")
pytestmark = pytest.mark.usefixtures("built")
DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def random(rng, shape, dtype="float16"):
    return rng.standard_normal(shape).astype(DTYPES[dtype])


def reference(q, k, v, causal, scale=None):
    """O and LSE in float64, with a mask of its own."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    S = np.einsum("bhid,bhjd->bhij", q, k) * (scale or q.shape[-1] ** -0.5)
    if causal:
        Nq, Nk = S.shape[-2:]
        S = np.where(np.arange(Nk)[None] > np.arange(Nq)[:, None] + Nk - Nq, -np.inf, S)
    m = S.max(-1, keepdims=True, initial=-np.inf)
    P = np.exp(S - np.where(np.isfinite(m), m, 0))
    l = P.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return P / np.where(l > 0, l, 1) @ v, (np.where(np.isfinite(m), m, 0) + np.log(l))[..., 0]


def assert_close(got, lse, q, k, v, causal, scale=None):
    O, LSE = reference(q, k, v, causal, scale)
    unit = float(ml_dtypes.finfo(q.dtype).eps)
    error = np.abs(got.astype(np.float64) - O)
    # P and O are rounded to 16 bits: half a unit each, of values up to the largest |v| seen.
    assert not (
        error > unit * (np.abs(O) + 0.5 * np.abs(v.astype(np.float64)).max(initial=0))
    ).any()
    assert np.isfinite(got.astype(np.float64)).all()
    hidden = np.isneginf(LSE)
    assert (lse[hidden] == -np.inf).all() and (got[hidden] == 0).all()
    np.testing.assert_allclose(lse[~hidden], LSE[~hidden], atol=1e-3)


@pytest.mark.parametrize("stage", range(1, 7))
def test_random_problems(stage):
    rng = np.random.default_rng(stage)
    for dtype in DTYPES:
        heads_kv = int(rng.integers(1, 3))
        Nq, Nk = (int(n) for n in rng.integers(1, 150, 2))
        d, causal, scale = (
            int(rng.choice([64, 128])),
            bool(rng.integers(2)),
            rng.choice([None, 0.3]),
        )
        q = random(rng, (1, 2 * heads_kv, Nq, d), dtype)
        k, v = (random(rng, (1, heads_kv, Nk, d), dtype) for _ in "kv")
        o, lse = attention(q, k, v, stage=stage, causal=causal, scale=scale, return_lse=True)
        assert o.dtype == q.dtype and lse.dtype == np.float32
        assert_close(o, lse, q, k, v, causal, scale)


def test_a_wrong_answer_would_be_seen():
    rng = np.random.default_rng(0)
    q, k, v = (random(rng, (1, 1, 40, 64)) for _ in "qkv")
    o, lse = attention(q, k, v, return_lse=True)
    with pytest.raises(AssertionError):
        assert_close(o, lse, q, k, v, causal=True)
    with pytest.raises(AssertionError):
        assert_close(np.where(np.arange(64) == 7, np.nan, o), lse, q, k, v, causal=False)


def test_layout_bnhd_and_a_packed_projection():
    """q, k and v as the three parts of one projection: strided views, no copy."""
    rng = np.random.default_rng(1)
    qkv = random(rng, (2, 70, 3, 2, 64))
    q, k, v = (qkv[:, :, i] for i in range(3))
    o, lse = attention(q, k, v, layout="bnhd", causal=True, return_lse=True)
    assert o.shape == q.shape and lse.shape == (2, 2, 70)
    assert_close(o.swapaxes(1, 2), lse, *(x.swapaxes(1, 2) for x in (q, k, v)), causal=True)


def test_axes_of_length_one_and_repeated_slices():
    """NumPy gives an axis of length 1 any stride; an expanded axis has stride 0."""
    rng = np.random.default_rng(2)
    q = random(rng, (1, 2, 20, 64))
    k, v = (np.broadcast_to(random(rng, (1, 1, 30, 64)), (1, 2, 30, 64)) for _ in "kv")
    assert_close(*attention(q, k, v, return_lse=True), q, k, v, causal=False)
    row = np.broadcast_to(random(rng, (1, 1, 1, 64)), (1, 1, 30, 64))  # every key the same
    assert_close(*attention(q[:, :1], row, row, return_lse=True), q[:, :1], row, row, causal=False)


@pytest.mark.parametrize(
    "shape_q, shape_k",
    [((1, 1, 3, 64), (1, 1, 0, 64)), ((0, 1, 3, 64),) * 2, ((1, 1, 0, 64), (1, 1, 5, 64))],
)
def test_empty(shape_q, shape_k):
    q, k = np.ones(shape_q, np.float16), np.ones(shape_k, np.float16)
    o, lse = attention(q, k, k, return_lse=True)
    assert (o == 0).all() and o.shape == shape_q and (lse == -np.inf).all()


def test_counters():
    q = random(np.random.default_rng(3), (1, 2, 256, 64))
    counted, by_variant = {"old": 1}, {}
    attention(q, q, q, stage=5, tiles="same", counters=counted)
    attention(q, q, q, stage=6, tiles="same", variant="lazy", counters=by_variant)
    assert "old" not in counted
    assert counted["mma"] == by_variant["mma"] == 2 * 4 * 2 * 4 * 64 * 128 * 64 // 4096
    assert 0 < by_variant["fp32_mul_O"] < counted["fp32_mul_O"]


x = np.ones((1, 2, 16, 64), np.float16)
SENTENCES = [
    (dict(q=x.astype(np.float32)), "q is float32; accepted are float16, bfloat16"),
    (dict(k=x.astype(ml_dtypes.bfloat16)), "q, k and v are float16, bfloat16, float16"),
    (dict(q=[1]), "q is a list; a NumPy array or a PyTorch tensor is needed"),
    (dict(q=x[0]), "q has 3 dimensions, 2x16x64; 4 are needed, bhnd"),
    (dict(v=x[:, :, :8]), "k is 1x2x16x64 and v is 1x2x8x64; they must have the same shape"),
    (dict(q=np.ones((2, 2, 16, 64), np.float16)), "batch size must be the same"),
    (dict(q=np.ones((1, 2, 16, 128), np.float16)), "head dimension must be the same"),
    (dict(q=np.ones((1, 3, 16, 64), np.float16)), "heads_q is 3"),
    (dict.fromkeys("qkv", np.ones((1, 2, 16, 32), np.float16)), "head_dim is 32"),
    (dict(q=np.ones((1, 2, 64, 16), np.float16).swapaxes(2, 3)), "q has stride 16 in head_dim"),
    (dict(q=np.ones((1, 2, 16, 65), np.float16)[..., :64]), "q_strides"),
    (dict(q=np.ones((1, 2, 32, 64), np.float16)[:, :, ::-2]), "q_strides"),
    (dict(q=np.frombuffer(bytes(2 * x.size + 2), np.float16)[1:].reshape(x.shape)), "q "),
    (dict(layout="bhdn"), 'layout is "bhdn"; accepted are bhnd, bnhd'),
    (dict(tiles="best"), 'tiles is "best"; accepted are same, same_b, tuned'),
    (dict(scale=0.0), "scale is 0; it must be positive"),
    (dict(scale=float("nan")), "scale is nan"),
    (dict(stage=9), 'there is no stage "9"'),
    (dict(stage=None), "stage is None"),
    (dict(variant="eager"), "eager"),
]


@pytest.mark.parametrize("arguments, sentence", SENTENCES)
def test_bad_arguments_get_a_sentence(arguments, sentence):
    with pytest.raises(library.InvalidArgument) as caught:
        attention(**(dict(q=x, k=x, v=x) | arguments))
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_one_row_repeated_everywhere_is_refused():
    one = np.broadcast_to(np.ones(64, np.float16), (2, 2, 16, 64))
    with pytest.raises(library.InvalidArgument, match="all its strides are 0"):
        attention(one, one, one)


def test_libraries_that_cannot_be_loaded(tmp_path, monkeypatch):
    wrong = tmp_path / "libfa2course.so"
    for prepare, sentence in (
        (lambda: None, "is not built.*is not there"),
        (lambda: wrong.write_bytes(b"no library"), "cannot be loaded.*Build it again"),
        (lambda: shutil.copy(np._core._multiarray_umath.__file__, wrong), "cannot be loaded"),
    ):
        prepare()
        monkeypatch.setenv("FA2_LIBRARY", str(wrong))
        library.load.cache_clear()
        with pytest.raises(library.CannotRunHere, match=sentence):
            attention(x, x, x)


def test_loads_where_static_TLS_is_used_up(tmp_path):
    """As in a process that has PyTorch loaded: what a library keeps per thread must not need room in
    the block that is laid out at the start."""
    source = tmp_path / "greedy.c"
    source.write_text('__attribute__((tls_model("initial-exec"))) __thread char taken[32];\n'
                      "char *f(void) { return taken; }\n")
    greedy = tmp_path / "greedy.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", greedy, source], check=True)
    for n in range(300):
        shutil.copy(greedy, tmp_path / f"greedy{n}.so")
    script = """
import ctypes, sys
from fa2course import library
for n in range(300):
    try:
        ctypes.CDLL(f"{sys.argv[1]}/greedy{n}.so")
    except OSError as error:
        assert "static TLS" in str(error), error
        break
else:
    sys.exit("the block was never full")
library.load()
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr

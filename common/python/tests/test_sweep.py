"""The sweep's file, its CSV and pictures, and the reading of profiles; no GPU."""

import csv
import importlib
import json
import re
import resource
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BENCH = ROOT / "common" / "bench"
sys.path.insert(0, str(BENCH))
sweep_file = importlib.import_module("sweep_file")
ABOUT = "# fa2 sweep: NVIDIA H200 | driver 580.1 | CUDA 13.0 | commit abc\n# median of 20 runs\n"


def row(backend, seqlen=1024, ms=1.0, causal=False, tiles="-", batch=2, note="ran", d=64):
    if backend.startswith("stage") and tiles == "-":
        tiles = "tuned"
    return sweep_file.Row(seqlen, d, causal, batch, 16, "fp16", tiles, backend, ms, 0.02, None,
                          None if ms is None else 0.25, 1e-4, note)  # fmt: skip


def small_sweep() -> list:
    rows = []
    for N in (512, 1024):
        for causal in (False, True):
            rows += [row("sdpa_math", N, N / 100, causal), row("sdpa_flash", N, N / 1000, causal),
                     row("stage6", N, N / 1500, causal)]  # fmt: skip
    rows += [row("sdpa_math", 16384, None, note="out of memory"), row("sdpa_flash", 16384, 9.0)]
    for batch in (1, 4):
        rows += [row(f"stage{n}", 2048, 10 / n, tiles="same", batch=batch) for n in range(1, 7)]
    return rows


@pytest.fixture
def text(tmp_path) -> Path:
    path = tmp_path / "fa2_sweep.txt"
    lines = [sweep_file.header(), *map(str, small_sweep())]
    path.write_text(ABOUT + "\n".join(lines) + "\n")
    return path


def test_rows_come_back_from_the_text():
    for original in small_sweep():
        back = sweep_file.parse_row(str(original))
        assert back.key == original.key and back.note == original.note
        assert back.ms == pytest.approx(original.ms, abs=1e-5)
    with pytest.raises(ValueError, match="not a row"):
        sweep_file.parse_row("512 64 1 2")


def test_output_of_the_lectures_loop_is_one_sweep():
    """Each call prints its own lines of environment; a shape measured again replaces the first."""
    one = ABOUT + sweep_file.header() + f"\n{row('stage6', ms=2.0)}\n"
    two = ABOUT + sweep_file.header() + f"\n{row('stage6', ms=3.0)}\n{row('sdpa_flash')}\n"
    about, rows = sweep_file.parse(one + two)
    assert len(about) == 2 and sweep_file.gpu_of(about) == "NVIDIA H200"
    assert [(r.backend, r.ms) for r in rows] == [("stage6", 3.0), ("sdpa_flash", 1.0)]


def test_flops_are_the_lectures_and_halved_when_causal():
    assert row("stage6").tflops == pytest.approx(4 * 2 * 16 * 1024**2 * 64 / 1e-3 / 1e12)
    assert row("stage6", causal=True).flops * 2 == row("stage6").flops
    assert row("stage6", ms=None).tflops is None


@pytest.mark.parametrize("stage", range(2, 7))
@pytest.mark.parametrize("causal", [False, True])
def test_requested_bytes_are_what_the_simulator_counts(stage, causal, built):
    np = pytest.importorskip("numpy")
    from fa2course import attention

    q = np.random.default_rng(0).standard_normal((1, 1, 200, 64)).astype(np.float16)
    counters = {}
    attention(q, q, q, stage=stage, causal=causal, tiles="same", counters=counters)
    shape = sweep_file.Row(200, 64, causal, 1, 1, "fp16", "same", "", *[None] * 5, "")
    counted = counters["global_load_bytes"] + counters["global_store_bytes"]
    assert sweep_file.requested_bytes(shape, 64, 128) == counted


def test_csv_and_pictures(text):
    done = subprocess.run([sys.executable, BENCH / "plot_fa2_sweep.py", text], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    with open(text.with_name("fa2_sweep.csv")) as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[:6] == ["seqlen", "headdim", "sdpa_ms", "fa2_ms", "fa2_tflops",
                                  "sdpa_tflops"]  # fmt: skip
    assert {"causal", "batch", "heads", "dtype", "stage6_ms", "stage6_tflops",
            "fa2_share_of_peak", "stage6_requested_gbps"} <= set(lines[0])  # fmt: skip
    first = lines[0]
    assert (first["seqlen"], first["sdpa_ms"], first["fa2_ms"]) == ("512", "5.12", "0.512")
    assert all("NVIDIA H200" in line["environment"] for line in lines)
    out_of_memory = next(line for line in lines if line["seqlen"] == "16384")
    assert out_of_memory["sdpa_ms"] == "" and out_of_memory["fa2_ms"] == "9"
    for name in ("fa2_sweep.png", "fa2_sweep_parents.png"):
        data = text.with_name(name).read_bytes()
        width, height = struct.unpack(">II", data[16:24])
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and width > 600 and height > 400
    assert not list(text.parent.glob(".*.tmp"))


def test_axes_of_the_pictures(text):
    plot = importlib.import_module("plot_fa2_sweep")
    from fa2course import report

    about, rows = sweep_file.read(text)
    plt = report.pyplot()
    speed, head = plot.draw_speed(plt, about, rows)
    assert "NVIDIA H200" in head and "B2 H16" in head
    assert [axis.get_title(loc="left") for axis in speed.axes] == [
        "d 64, full", "d 64, causal (FLOPs halved)"]  # fmt: skip
    for axis in speed.axes:
        assert axis.get_xscale() == "log" and axis.get_xlabel() == "sequence length N"
        labels = [line.get_label() for line in axis.lines]
        assert labels == ["SDPA MATH", "official FA2 (SDPA FLASH)", "stage 6 deferred lazy"]
    flash = speed.axes[0].lines[1]
    assert list(flash.get_xdata()) == [512, 1024, 16384]  # without the one that ran out of memory
    parents, _ = plot.draw_parents(plt, rows)
    assert parents.axes[0].get_xlabel() == "batch x heads"
    assert plot.parent_gains(rows)[64, 2] == [(16, pytest.approx(2), 0.04),
                                              (64, pytest.approx(2), 0.04)]  # fmt: skip
    plt.close("all")


def test_plot_of_a_file_that_is_none(tmp_path):
    for name, content in (("absent.txt", None), ("empty.txt", ABOUT), ("prose.txt", "hello\n")):
        path = tmp_path / name
        if content is not None:
            path.write_text(content)
        done = subprocess.run([sys.executable, BENCH / "plot_fa2_sweep.py", path], check=False,
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 2 and done.stderr.startswith("plot_fa2_sweep: ")
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words, sentence", [
    (["sweep"], "needs a GPU: no GPU in this test"),
    (["sweep", "--mode", "fwd", "--batch_size", "2", "--nheads", "16", "--seqlen", "512",
      "--headdim", "64", "--dtype", "fp16", "--causal"], "needs a GPU: no GPU in this test"),
    (["profile", "2"], "profiling needs a GPU: no GPU in this test"),
    (["profile", "official"], "profiling needs a GPU"),
    (["sweep", "--mode", "bwd"], "forward pass only"),
    (["sweep", "--plot", "none.txt"], "none.txt is not there"),
    (["sweep", "--seqlength", "5"], "no option --seqlength"),
    (["profile"], "name a stage or 'official'"),
    (["profile", "9"], "there is no stage '9'"),
    (["profile", "2", "--headdim", "96"], "accepted are 64 and 128"),
    (["profile", "2", "--seqlen", "0"], "it must be at least 1"),
    (["profile", "2", "--variant", "lazy"], "--variant is for stage 6"),
    (["profile", "--read", "x.ncu-rep"], "x.ncu-rep is not there"),
])  # fmt: skip
def test_what_cannot_run_here_has_a_sentence(words, sentence, monkeypatch, capsys):
    from fa2course.launcher import gpu
    from fa2course.launcher.__main__ import main

    monkeypatch.setattr(gpu, "look", lambda: gpu.Gpu(False, "no GPU in this test"))
    assert main(words) == 2
    assert sentence in capsys.readouterr().err


def test_a_python_without_pytorch_is_named(monkeypatch):
    from fa2course.launcher import pytorch
    from fa2course.launcher.errors import UserError

    monkeypatch.setattr(pytorch, "candidates", lambda: ["/bin/false", "/nowhere/python"])
    with pytest.raises(UserError, match="/bin/false .has no PyTorch.*/nowhere/python.*FA2_PYTHON="):
        pytorch.find()


def test_peers_without_a_gpu_or_pytorch_leave_the_comparison(tmp_path, monkeypatch, capsys):
    from fa2course.launcher import peers, pytorch

    monkeypatch.setattr(pytorch, "candidates", lambda: ["/bin/false"])
    assert peers.run("sim", tmp_path, False) == peers.run("cuda", tmp_path, False) == 0
    said = capsys.readouterr().err
    assert "ran on the simulator" in said and "no peers: PyTorch is needed" in said


# sweep.py without PyTorch, GPU and backends: a shape takes some milliseconds.
FAKE_SWEEP = """
import sys, time, types

def fake(name, **contents):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(contents)

cuda = types.SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "NVIDIA H200")
fake("torch", cuda=cuda, manual_seed=lambda seed: None, float16=None, bfloat16=None, Tensor=list)
fake("timing")
fake("backends", PEERS=["sdpa_math"], stage_names=lambda: ["stage1", "stage2"])
bench, out, run, *more = sys.argv[1:]
sys.path.insert(0, bench)
import sweep

def measure(shape, names, peak):
    time.sleep(0.005)
    return [sweep.Row(*shape.shape, shape.tiles if name.startswith("stage") else "-", name, 1.0,
                      0.02, None, None, 1e-4, run) for name in names]

sweep.measure = measure
sweep.environment_lines = lambda peak: ["# fa2 sweep: NVIDIA H200"]
sweep.library.load = lambda: types.SimpleNamespace(require=lambda backend: None)
sys.exit(sweep.main(["--out", out, *more]))
"""


# timing.py without PyTorch: events tell the number of calls so far.
FAKE_TIMING = """
import sys, types

calls = []

class Event:
    def __init__(self, timing): pass
    def record(self): self.at = len(calls)
    def elapsed_time(self, end): return float(end.at - self.at)

cuda = types.SimpleNamespace(Event=Event, synchronize=lambda: None)
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda, OutOfMemoryError=MemoryError)
sys.path.insert(0, sys.argv[1])
import timing

names = ["a", "b", "c", "d"]
times = timing.median_times({n: [lambda n=n: calls.append(n)] for n in names}, replay=False)
assert {n: t.ms for n, t in times.items()} == dict.fromkeys(names, 1.0)
timed = "".join(calls[len(names) * timing.WARM_UPS:])
print(" ".join(timed[i:i + 4] for i in range(0, len(timed), 4)))
"""


def test_backends_take_turns_in_another_order_in_every_round():
    done = subprocess.run([sys.executable, "-c", FAKE_TIMING, BENCH], capture_output=True, text=True)
    rounds = done.stdout.split()
    assert len(rounds) == 20 and all(sorted(one) == list("abcd") for one in rounds), done.stderr
    assert len(set(rounds)) > 10  # of 24
    followers = {pair for one in rounds for pair in zip(one, one[1:])}
    assert len(followers) == 12  # everybody comes after everybody else


def test_the_whole_sweep_has_the_other_shapes_and_bf16(tmp_path):
    command = [sys.executable, "-c", FAKE_SWEEP, BENCH, tmp_path, "0"]
    assert subprocess.run(command, capture_output=True).returncode == 0
    rows = sweep_file.read(tmp_path / "fa2_sweep.txt")[1]
    seen = {(r.batch, r.heads, r.seqlen, r.dtype) for r in rows if r.backend == "sdpa_math"}
    others = {(1, 8, 16384), (8, 16, 2048), (1, 32, 2048), (16, 32, 2048)}
    assert {shape[:3] for shape in seen} - {(2, 16, 2**n) for n in range(9, 15)} == others
    assert [shape for shape in seen if shape[3] == "bf16"] == [(2, 16, 4096, "bf16")]


def test_peers_are_added_to_the_comparison(tmp_path):
    """And combine_runs keeps them."""
    shape = {"B": 1, "Hq": 8, "Hkv": 8, "Nq": 512, "Nk": 512, "d": 64, "causal": False}
    record = {"stage": "stage2_fa1", "number": 2, "variant": "", "shape": shape, "dtype": "fp16",
              "tile_mode": "tuned", "backend": "cuda", "time_ms": 1.0, "spread": 0.1, "ok": True,
              "tflops": 1.0, "requested_gbps": 1.0,
              "environment": {"gpu": "NVIDIA H200"}}  # fmt: skip
    results = {"format": "fa2-compare", "version": 1, "command": "x", "records": [record]}
    file = tmp_path / "compare.json"
    file.write_text(json.dumps(results))
    command = [sys.executable, "-c", FAKE_SWEEP, BENCH, tmp_path, "0", "--like", file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    joined = tmp_path / "joined.json"
    done = subprocess.run([sys.executable, BENCH / "combine_runs.py", file, file, "--out", joined],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    for path, processes in ((file, None), (joined, 2)):
        peers = json.loads(path.read_text())["peers"]
        assert [(p["backend"], p["time_ms"], p["tile_mode"]) for p in peers] == [
            ("sdpa_math", 1.0, "-"), ("stage2", 1.0, "tuned")]  # fmt: skip
        assert [peer.get("processes") for peer in peers] == [processes] * 2


def test_a_row_that_a_full_disk_cut_short_is_measured_again(tmp_path):
    command = [sys.executable, "-c", FAKE_SWEEP, BENCH, tmp_path]
    assert subprocess.run([*command, "0"], capture_output=True).returncode == 0
    whole, part = tmp_path / "fa2_sweep.txt", tmp_path / "fa2_sweep.txt.part"
    text = whole.read_text()
    part.write_text(text[:-20])
    whole.unlink()
    done = subprocess.run([*command, "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = sweep_file.read(whole)[1]
    assert len(rows) == len({row.key for row in rows})
    assert [row.note for row in rows].count("1") == 1


def test_a_file_that_cannot_grow_is_a_sentence_and_no_row_is_lost(tmp_path):
    """As on a full disk."""
    command = [sys.executable, "-c", FAKE_SWEEP, BENCH, tmp_path]
    limit = (2000, 2000)
    done = subprocess.run([*command, "0"], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert subprocess.run([*command, "1"], capture_output=True).returncode == 0
    rows = sweep_file.read(tmp_path / "fa2_sweep.txt")[1]
    assert len(rows) == len({row.key for row in rows}) and {row.note for row in rows} == {"0", "1"}


@pytest.mark.parametrize("number, status", [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_an_interrupted_sweep_goes_on_and_leaves_whole_rows(tmp_path, number, status):
    out, part = tmp_path / "fa2_sweep.txt", tmp_path / "fa2_sweep.txt.part"
    kept: dict[tuple, str] = {}  # the rows in the file, and which run measured each
    for run in range(20):
        child = subprocess.Popen([sys.executable, "-c", FAKE_SWEEP, BENCH, tmp_path, str(run)],
                                 text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)  # fmt: skip
        shown = [child.stdout.readline() for _ in range(2 + 20)]  # head and some rows
        child.send_signal(number)
        errors = child.communicate(timeout=60)[1]
        assert f"goes on after {len(kept)} rows" in errors or not run
        if out.exists():
            break
        assert child.returncode == status, errors
        assert [file.name for file in tmp_path.iterdir()] == [part.name]
        assert part.read_text().endswith("\n")
        found = {row.key: row.note for row in sweep_file.read(part)[1]}
        assert found.keys() >= {sweep_file.parse_row(line).key for line in shown[2:-1]}
        assert found | kept == found  # nothing lost, nothing measured again
        kept = found
    assert run > 2
    assert [file.name for file in tmp_path.iterdir()] == [out.name]
    lines = re.findall(r"^ *\d+ .*", out.read_text(), re.MULTILINE)
    shapes, families = 6 * 2 * 2 + 4 * 2 * 2 + 2, 2 * 10
    assert len(sweep_file.read(out)[1]) == len(lines) == shapes * 3 + families * 2

"""notes/simulator_vs_hardware.md is what its two files say, and explains every difference."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "common" / "bench"))


@pytest.fixture
def svh():
    return importlib.import_module("simulator_vs_hardware")


def test_the_note_is_what_the_two_files_say(svh):
    text = (ROOT / "notes" / "simulator_vs_hardware.md").read_text()
    assert text == svh.markdown(), "python common/bench/simulator_vs_hardware.py table"
    for quantity in svh.QUANTITIES:
        table = text.split(f"## {quantity.name}\n")[1].split("\n## ")[0]
        for row in svh.ROWS:
            assert f"\n| {row} |" in table


def test_the_simulator_still_counts_so(svh, built):
    """Otherwise a kernel has changed, and Nsight Compute must count again, too."""
    pytest.importorskip("numpy")
    written = svh.read(svh.SIMULATOR)[1]
    for stage, row, _, d, causal, quantity, value in svh.count():
        call = f"{stage} {row}".strip(), d, causal
        assert written[call][""][quantity] == value, (call, quantity)


def doctored(source: Path, target: Path, begin: str, change: int) -> Path:
    """A copy in which one value, of the line that begins so, is another."""
    lines = source.read_text().splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.startswith(begin + ",")]
    name, value = lines[at].rsplit(",", 1)
    lines[at] = f"{name},{int(value) + change}"
    target.write_text("\n".join(lines) + "\n")
    return target


@pytest.mark.parametrize("begin, message", [
    ("3,,fa2_forward,64,0,warps HMMA.16816.F32", "mma of stage 3: 0 reasons"),
    ("1,,softmax_P,128,1,threads MUFU.EX2", "exp2 of stage 1: 0 reasons"),
    ("6,lazy,fa2_forward,128,0,warps SHFL.BFLY", "shuffles of stage 6 lazy: 0 reasons"),
    ("4,,fa2_forward,64,0,warps BAR.SYNC.DEFER_BLOCKING", "block barriers of stage 4: 0 reasons"),
    # A reason explains its difference exactly.
    ("2,,fa1_forward,64,1,wavefronts LDS.128", "shared wavefronts of stage 2: the reason explains"),
    ("1,,multiply_O,64,0,launch__grid_size", "another number of blocks"),
])  # fmt: skip
def test_a_difference_without_a_reason_fails(svh, tmp_path, begin, message):
    hardware = doctored(svh.HARDWARE, tmp_path / "ncu.csv", begin, 1)
    with pytest.raises(svh.Unexplained, match=message):
        svh.markdown(hardware)


def test_the_simulators_side_counts_as_well(svh, tmp_path):
    simulator = doctored(svh.SIMULATOR, tmp_path / "sim.csv", "5,,,64,0,cp_async", -1)
    with pytest.raises(svh.Unexplained, match="cp.async bytes of stage 5: 0 reasons"):
        svh.markdown(simulator=simulator)


def test_a_reason_for_what_is_equal_fails(svh, monkeypatch):
    extra = svh.Reason("mma", ["3"], "made up", None)
    monkeypatch.setattr(svh, "REASONS", [*svh.REASONS, extra])
    with pytest.raises(svh.Unexplained, match=r"mma of stage 3: 1 reasons .*\[0, 0, 0, 0\]"):
        svh.markdown()


def test_a_missing_call_fails(svh, tmp_path):
    hardware = tmp_path / "ncu.csv"
    lines = svh.HARDWARE.read_text().splitlines()
    hardware.write_text("\n".join(line for line in lines if not line.startswith("6,lazy")))
    with pytest.raises(svh.Unexplained, match="same calls"):
        svh.markdown(hardware)


SASS = {16: "@!P6 STS [R8+0x15000], R9", 32: "HMMA.16816.F32 R4, R8, R2, R4", 48: "HMMA.16816.F32",
        64: "LDSM.16.M88.4 R60, [R154]", 80: "BAR.SYNC.DEFER_BLOCKING 0x0"}  # fmt: skip


class FakeMetric(SimpleNamespace):
    """Of every instruction 1; of a launch `total`."""

    def as_double(self, i=None):
        return float(self.total if i is None else 1)

    def as_uint64(self):
        return self.total

    def num_instances(self):
        return len(SASS)

    def correlation_ids(self):
        return SimpleNamespace(as_uint64=list(SASS).__getitem__)


def fake_reader(svh, kernels: list[str]):
    def action(kernel: str):
        def metric(name):
            return FakeMetric(total=svh.BLOCKS[kernel] if "grid_size" in name else 7)

        return SimpleNamespace(
            name=lambda: kernel, metric_by_name=metric, sass_by_pc=SASS.__getitem__
        )

    actions = [action(kernel) for kernel in kernels]
    launches = SimpleNamespace(
        num_actions=lambda: len(actions), action_by_idx=actions.__getitem__
    )
    report = SimpleNamespace(range_by_idx=lambda i: launches)
    return SimpleNamespace(load_report=lambda path: report)


def test_a_report_is_read_by_the_order_of_its_launches(svh, monkeypatch):
    order = [k for _ in svh.SHAPES for name in svh.BACKENDS for k in svh.kernels_of(name)]
    monkeypatch.setitem(sys.modules, "ncu_report", fake_reader(svh, order))
    rows = svh.read_report(Path("a.ncu-rep"))
    assert len({tuple(row[:5]) for row in rows}) == len(order) == 36
    last = {row[5]: row[6] for row in rows if row[:5] == [6, "lazy", "fa2_forward", 128, 1]}
    assert last["warps HMMA.16816.F32"] == 2 and last["warps BAR.SYNC.DEFER_BLOCKING"] == 1
    assert last["ideal STS"] == last["wavefronts LDSM.16.M88.4"] == 1
    assert "warps STS" not in last and last["launch__block_size"] == 7

    order[0], order[1] = order[1], order[0]
    monkeypatch.setitem(sys.modules, "ncu_report", fake_reader(svh, order))
    with pytest.raises(SystemExit, match="other kernels ran"):
        svh.read_report(Path("a.ncu-rep"))

"""--scheduler: a Dask scheduler and workers on loopback, one of them killed midway."""
import csv
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

distributed = pytest.importorskip("distributed",
                                  reason="Dask is not installed: ./fa2 test brings it")

from fa2course import compare_workers, merge, scheduler  # noqa: E402
from fa2course.grading import command, one  # noqa: E402
from fa2course.launcher.errors import UserError  # noqa: E402
from test_grading import FRAME, hand_in  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


class Cluster:
    """A scheduler and workers, each a process as on machines of their own."""

    def __init__(self, folder: Path, workers: int):
        self.folder, self.workers = folder, []
        sources = ROOT / "common" / "python"
        self.env = os.environ | {"PYTHONPATH": f"{sources}:{sources / 'tests'}"}
        file = folder / "scheduler.json"
        self.scheduler = self.start("dask_scheduler", "--host", "127.0.0.1", "--port", "0",
                                    "--no-dashboard", "--dashboard-address", "127.0.0.1:0",
                                    "--scheduler-file", str(file))
        try:
            self.begin(file, workers)
        except BaseException:
            self.stop()
            raise

    def begin(self, file: Path, workers: int) -> None:
        deadline = time.monotonic() + 60
        while not file.exists() or not file.read_text().rstrip().endswith("}"):
            assert time.monotonic() < deadline and self.scheduler.poll() is None
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        for n in range(workers):
            self.workers.append(self.start(
                "dask_worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
                "--host", "127.0.0.1", "--name", f"w{n}", "--resources", "fa2-simulator=1",
                "--local-directory", str(self.folder / f"w{n}")))
        if workers:
            with distributed.Client(self.address, set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=90)
                self.names = {address: int(worker["name"][1:]) for address, worker in
                              client.scheduler_info(n_workers=-1)["workers"].items()}

    def start(self, program: str, *arguments: str) -> subprocess.Popen:
        log = open(self.folder / f"{program}.log", "ab")
        return subprocess.Popen([sys.executable, "-m", f"distributed.cli.{program}", *arguments],
                                env=self.env, stdout=log, stderr=log)

    def kill_one_when(self, ready) -> list[str]:
        """In the background: kills the first worker that is at work once ready() is true. Returns a
        list that then holds what it was at."""
        lost: list[str] = []

        def watch():
            with distributed.Client(self.address, set_as_default=False) as client:
                for _ in range(3000):
                    busy = {name: keys for name, keys in client.processing().items() if keys}
                    if busy and ready():
                        address, keys = next(iter(busy.items()))
                        self.workers[self.names[address]].kill()
                        lost.extend(map(str, keys))
                        return
                    time.sleep(0.02)

        threading.Thread(target=watch, daemon=True).start()
        return lost

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path, build_dir):
    if not (build_dir / "bin" / "fa2-check").exists() or "asan" in build_dir.name:
        pytest.skip("fa2-check is not built, or with AddressSanitizer, which no sandbox holds")
    cluster = Cluster(tmp_path, 3)
    yield cluster
    cluster.stop()


def test_grading_survives_the_death_of_a_worker(cluster, tmp_path, capsys):
    students = tmp_path / "class"
    kernels = [FRAME % ("", f"x.LSE[{n}] = {n}.f") for n in range(3)]
    kernels += ["#error no\n", "nonsense\n"]
    for n, kernel in enumerate([*kernels, kernels[0]]):
        hand_in(students, f"s{n}", kernel)
    known = tmp_path / "remote" / "known"
    lost = cluster.kill_one_when(lambda: known.is_dir() and any(known.iterdir()))
    arguments = [str(students), "--run-seconds", "30"]
    remote = [*arguments, "--out", str(tmp_path / "remote"), "--scheduler", cluster.address]
    assert command.run(command.parse(remote)) == 0
    assert lost, "no worker was killed midway"
    graded = json.loads((tmp_path / "remote" / "grades.json").read_text())
    assert [s["name"] for s in graded["students"]] == [f"s{n}" for n in range(6)]
    assert all(s["stages"][0]["state"] == "graded" for s in graded["students"])
    assert len(list(known.iterdir())) == len(kernels)  # none twice, none missing

    local = [*arguments, "--out", str(tmp_path / "local"), "--jobs", "2"]
    assert command.run(command.parse(local)) == 0
    assert (tmp_path / "local" / "grades.json").read_bytes() == \
           (tmp_path / "remote" / "grades.json").read_bytes()


def test_a_comparison_survives_the_death_of_a_worker(cluster, build_dir):
    arguments = ["--stages", "2,3", "--seqlen", "64,128,192", "--headdim", "64", "--full",
                 "--scheduler", cluster.address, "--threads", "1"]
    begun = time.monotonic()
    lost = cluster.kill_one_when(lambda: time.monotonic() > begun)
    results, left_out = merge.merge(compare_workers.compare(cluster.address, arguments), "test")
    assert lost and left_out == 0
    shown = [(r["stage"], r["shape"]["Nq"], r["ok"]) for r in results["records"]]
    assert shown == [(stage, N, True) for N in (64, 128, 192)
                     for stage in ("stage2_fa1", "stage3_fa2_seqpar")]
    assert "6 results, none wrong" in merge.summary(results)


def test_what_cannot_be_done_is_a_sentence(tmp_path, build_dir):
    with pytest.raises(UserError, match="no Dask scheduler answers"):
        scheduler.connect("tcp://127.0.0.1:1", 1)
    cluster = Cluster(tmp_path, 0)
    try:
        with (scheduler.connect(cluster.address) as client,
              pytest.raises(UserError, match="no worker")):
            scheduler.require_workers(client, one.course_fingerprint, one.course_fingerprint())
    finally:
        cluster.stop()


def test_shapes_are_shared_out_and_options_passed_on():
    arguments = ["--seqlen", "64,128", "--headdim=64,128", "--scheduler", "x", "--causal",
                 "--out=y"]
    assert compare_workers.shapes(arguments) == [
        ["--seqlen", N, "--headdim", d] for N in ("64", "128") for d in ("64", "128")]
    assert compare_workers.passed_on(arguments) == ["--causal"]
    assert compare_workers.shapes(["--causal"]) == [[]]


# ---- compare --merge (needs no Dask, but is what the results above go through) -------------------


def csv_rows(text: str) -> list[dict]:
    return [{name: number(value) for name, value in row.items()}
            for row in csv.DictReader(io.StringIO(text))]


def number(text: str):
    try:
        return float(text)
    except ValueError:
        return text


def test_merged_files_have_the_columns_of_the_program(tmp_path, build_dir):
    program = build_dir / "bin" / "fa2-compare"
    if not program.exists():
        pytest.skip("fa2-compare is not built")
    subprocess.run([program, "--backend", "sim", "--stages", "2", "--seqlen", "64", "--headdim",
                    "64", "--quiet", "--out", str(tmp_path / "one")], check=True)
    results, _ = merge.merge([merge.read(tmp_path / "one" / "compare.json")], "test")
    merge.write(results, tmp_path / "merged")
    one_, merged = ((tmp_path / name / "compare.csv").read_text() for name in ("one", "merged"))
    assert csv_rows(one_) == csv_rows(merged)
    assert one_.splitlines()[0] == merged.splitlines()[0]

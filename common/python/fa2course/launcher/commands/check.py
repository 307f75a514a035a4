"""./fa2 check N"""
import sys
import time
from pathlib import Path

from .. import build, console, gpu, paths, stages
from ..errors import UserError
from ..options import Parser

SUMMARY = "checks your kernel of stage N step by step and says what is missing"
HELP = """
usage: ./fa2 check N [OPTIONS]

Compiles work/stageN/kernel.cu in place of the stage and goes step by step: one tile, many tiles,
causal, ragged, grouped queries, bf16, the counters that the change must move, from stage 3 on the
grid (which q tile starts first, and what happens where y ends), and on a GPU also time. It stops at
the first step that fails and says where to look.

  N               the stage: 2, stage2 or its folder
  --watch         check again whenever the file is saved (Ctrl-C ends it)
  --file FILE     another file than work/stageN/kernel.cu
  --backend sim   no step on the GPU, even if there is one

exit status: 0 solved, 1 a step failed, 2 cannot run here
"""


def run(arguments: list[str]) -> int:
    from fa2course.student import progress

    parser = Parser("check")
    parser.add_argument("stage", metavar="N")
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--backend", choices=["sim"])
    options = parser.parse_args(arguments)
    stage = stages.number(stages.find(options.stage))
    kernel = (options.file or progress.kernel(stage)).resolve()
    if not kernel.is_file():
        where = options.file or kernel.relative_to(paths.ROOT)
        raise UserError(f"{where} is not there. ./fa2 start {stage} puts your kernel in place.")
    preset = "cuda" if options.backend is None and gpu.look().usable else "sim"
    build.ensure_built(preset, ["fa2-check"])
    check_once = Session(stage, kernel, preset, keep=options.file is None)
    return check_once.watch() if options.watch else check_once.run()


class Session:
    def __init__(self, stage: int, kernel: Path, preset: str, keep: bool):
        from fa2course.student.compiler import Build, shown

        self.stage, self.kernel, self.keep = stage, kernel, keep
        self.build = Build(paths.preset_dir(preset))
        self.gpu = self.build if preset == "cuda" else None
        self.scratch = paths.BUILD / "check" / f"stage{stage}"
        self.shown = shown(kernel)
        self.live = console.is_terminal(sys.stdout)

    def run(self, interrupted=lambda: False) -> int:
        from fa2course.student import check, execute, progress

        print(f"stage {self.stage}, {self.shown}", flush=True)
        self.began = time.monotonic()
        result = check.check(
            self.stage, self.kernel, self.scratch, progress=self.show, build=self.build,
            gpu=self.gpu, execute=lambda *phase: execute.plainly(*phase, interrupted=interrupted))
        if self.keep:
            failure = result["first_failure"]
            progress.update(self.stage, passed=result["passed"], of=result["of"],
                            failed=failure["title"] if failure else "",
                            solved=result["solved"] or progress.of(self.stage).solved)
        print(self.last_words(result), flush=True)
        return 0 if result["solved"] else 1

    def show(self, event: dict) -> None:
        """One line per step; on a terminal also while it runs."""
        title = event["title"]
        if event["status"] == "running":
            expected = event.get("expected_s")
            if expected:
                title += f": compiles them all, about {console.seconds(max(1, expected))}"
            if self.live:
                print(f"  ..  {title}", end="\r", flush=True)
            elif expected:
                print(f"  ..  {title}", flush=True)
            return
        if self.live:
            print("\x1b[K", end="")
        if event["status"] == "passed":
            said = f": {event['message']}" if event["message"] else ""
            took = console.seconds(time.monotonic() - self.began)
            print(f"  ok  {title}{said}  ({took})", flush=True)
        elif event["status"] == "failed":
            print(f"  --  {title}")
            for line in event["message"].splitlines():
                print(f"      {line}", flush=True)

    def last_words(self, result: dict) -> str:
        from fa2course.student import progress

        if not result["solved"]:
            left = progress.of(self.stage).hints < 3
            more = f"  (./fa2 hint {self.stage} helps)" if left else ""
            return f"{result['passed']} of {result['of']} steps passed{more}"
        last = self.stage == len(stages.names())
        following = (" Next: the extra in the task, \"lazy\", then lecture 8" if last
                     else f" Next: ./fa2 start {self.stage + 1}")
        return f"solved: all {result['of']} steps passed.{following}"

    def watch(self) -> int:
        from fa2course.student.execute import Interrupted

        print("watching; Ctrl-C ends it", flush=True)
        status = 1
        while True:
            seen = self.version()
            try:
                status = self.run(interrupted=lambda seen=seen: self.version() != seen)
            except Interrupted:
                print("  ..  saved again: starting over\n", flush=True)
                continue
            try:
                while self.version() == seen:
                    time.sleep(0.2)
                print(flush=True)
            except KeyboardInterrupt:
                return status

    def version(self) -> tuple[int, int] | None:
        """Changes when the file is saved; an editor may leave it missing for a moment."""
        for _ in range(20):
            try:
                stat = self.kernel.stat()
                return stat.st_mtime_ns, stat.st_ino
            except OSError:
                time.sleep(0.05)
        return None

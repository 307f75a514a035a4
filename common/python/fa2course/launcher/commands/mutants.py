"""./fa2 mutants"""
import difflib
import sys
from concurrent.futures import ThreadPoolExecutor

from .. import build, paths, stages
from ..errors import UserError
from ..options import Parser

SUMMARY = "wrong kernels that the tests must reject: lists, shows and tries them"
HELP = """
usage: ./fa2 mutants [N]                what there is, for all stages or stage N
       ./fa2 mutants --show N/NAME      its source as a diff (--source: the whole wrong files)
       ./fa2 mutants --run [N | N/NAME] compiles and tries them, on the simulator

Each mutant is one mistake that students make, one edit away from a stage's kernel. The tests
compile all of them and fail if one is accepted. They stand in common/testing/mutants, whose
README.md has the format.

exit status: 0 done, 1 a mutant was accepted or got another verdict than expected, 2 cannot run here
"""


def run(arguments: list[str]) -> int:
    from fa2course import mutants

    parser = Parser("mutants")
    parser.add_argument("which", metavar="N/NAME", nargs="?")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--source", action="store_true")
    parser.add_argument("--run", action="store_true")
    options = parser.parse_args(arguments)
    if options.which and "/" in options.which:
        chosen = [mutants.find(options.which)]
    else:
        chosen = mutants.load(stages.find(options.which) if options.which else None)
    if options.show or options.source:
        if len(chosen) != 1:
            raise UserError("--show needs one mutant, e.g. 4/mask_sign (./fa2 mutants lists them)")
        show(mutants, chosen[0], options.source)
        return 0
    if options.run:
        return try_all(mutants, chosen)
    width = max(len(mutant.label) for mutant in chosen)
    for mutant in chosen:
        print(f"{mutant.label:<{width}}  {mutant.mistake} ({mutant.verdict})")
    return 0


def show(mutants, mutant, whole: bool) -> None:
    for file, text in mutants.sources(mutant).items():
        if whole:
            print(text, end="")
            continue
        before = stages.unmarked((paths.ROOT / file).read_text())
        for line in difflib.unified_diff(before.splitlines(), text.splitlines(), f"a/{file}",
                                         f"b/{file}", lineterm=""):
            print(line)


def try_all(mutants, chosen) -> int:
    names = sorted({mutant.stage for mutant in chosen})
    build.ensure_built("sim", ["fa2-try", *names])
    bench = mutants.Bench(paths.preset_dir("sim"))
    failed = 0
    with ThreadPoolExecutor(build.jobs()) as pool:
        for mutant, result in zip(chosen, pool.map(bench.try_mutant, chosen)):
            right = result.verdict == mutant.verdict
            failed += not right
            print(f"{'rejected' if right else 'FAILED  '}  {mutant.label}: {result.verdict}"
                  + ("" if right else f", expected {mutant.verdict}\n{result.details}"), flush=True)
    print(f"{len(chosen) - failed} rejected as expected, {failed} not")
    sys.stdout.flush()
    return 1 if failed else 0

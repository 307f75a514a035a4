"""Every wrong kernel of common/testing/mutants is rejected, and for the reason it should be."""
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from fa2course import mutants
from fa2course.launcher import stages
from fa2course.launcher.errors import UserError

MUTANTS = mutants.load()
TRIED = MUTANTS[::int(os.environ.get("FA2_EVERY_MUTANT", "3"))]  # for time; .ci/run tries all
# What a student can get wrong without any value being wrong on a good day.
VALUES_RIGHT = ("counters", "shared-memory race")


@pytest.fixture(scope="module")
def results(build_dir):
    """The verdicts on all mutants and on the stages as they are. Together, on all cores."""
    if reason := mutants.Bench.reason_not_to_run(build_dir):
        pytest.skip(reason)
    bench = mutants.Bench(build_dir)

    def verdict(work):
        try:
            return bench.try_original(work) if isinstance(work, str) else bench.try_mutant(work)
        except UserError as error:
            return mutants.Result("no longer fits", str(error))

    work = stages.names() + TRIED
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return dict(zip([w if isinstance(w, str) else w.label for w in work],
                        pool.map(verdict, work)))


@pytest.mark.parametrize("stage", stages.names())
def test_right_kernel_is_accepted(results, stage):
    assert results[stage].verdict == "accepted", results[stage].details


@pytest.mark.parametrize("mutant", TRIED, ids=lambda mutant: mutant.label)
def test_mutant_is_rejected(results, mutant):
    result = results[mutant.label]
    assert result.verdict == mutant.verdict, result.details


def test_there_are_enough():
    assert len(MUTANTS) >= 36
    for stage in stages.names():
        assert sum(mutant.stage == stage for mutant in MUTANTS) >= 5, stage
    assert sum(mutant.verdict in VALUES_RIGHT for mutant in MUTANTS) * 3 >= len(MUTANTS)
    labels = [mutant.label for mutant in MUTANTS]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.label)
def test_edits_fit(mutant):
    mutants.sources(mutant)


def test_edit_that_no_longer_fits_is_named():
    mutant, = mutants.parse("name x\nmistake y\nverdict wrong\n- no such line\n+ z\n",
                            "stage2_fa1", "f")
    with pytest.raises(UserError, match="stage2_fa1.txt:4: x no longer fits: stage2_fa1/kernel.cu"):
        mutants.sources(mutant)


@pytest.mark.parametrize("text, message", [
    ("mistake y\n", "f:1: a mutant begins with its name"),
    ("name x\nverdict wrong\n", "f:1: x needs a mistake, a verdict and an edit"),
    ("name x\nverdcit wrong\n", 'f:2: "verdcit" is not known'),
])
def test_bad_file_is_named(text, message):
    with pytest.raises(UserError, match=message):
        mutants.parse(text, "stage2_fa1", "f")

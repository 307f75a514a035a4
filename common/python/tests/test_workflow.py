"""What other systems run: the GitHub workflow of a student's fork and Gradescope's autograder."""
import os
import stat
import subprocess
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask: ./fa2 test brings it")

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / ".github/workflows/check.yml"
GRADESCOPE = ROOT / "common/python/fa2course/grading/gradescope"

# Keys that GitHub documents ("Workflow syntax for GitHub Actions"), as far as they are used here.
TOP = {"name", "run-name", "on", "permissions", "env", "defaults", "concurrency", "jobs"}
JOB = {"name", "needs", "runs-on", "permissions", "env", "if", "timeout-minutes", "strategy",
       "steps", "container", "continue-on-error", "concurrency", "outputs"}
STEP = {"name", "id", "if", "uses", "with", "run", "env", "shell", "working-directory",
        "continue-on-error", "timeout-minutes"}


@pytest.fixture(scope="module")
def workflow() -> dict:
    return yaml.load(FILE.read_text(), Loader=yaml.BaseLoader)  # "on" stays a word


def test_the_workflow_is_one_that_github_knows(workflow):
    assert workflow.keys() <= TOP and {"on", "jobs"} <= workflow.keys()
    assert workflow["on"]["push"] == {"paths": ["work/**"]}
    assert workflow["permissions"] == {"contents": "read"}  # runs code of whoever pushes
    for job in workflow["jobs"].values():
        assert job.keys() <= JOB and {"runs-on", "steps"} <= job.keys()
        for step in job["steps"]:
            assert step.keys() <= STEP and ("uses" in step) != ("run" in step)
            assert "@" in step.get("uses", "@")


@pytest.mark.parametrize("solved, failed", [("24", ""), ("2", "4"), ("", "")])
def test_its_script_checks_every_stage_in_work(workflow, tmp_path, solved, failed):
    script = workflow["jobs"]["check"]["steps"][-1]["run"]
    fake = tmp_path / "fa2"
    fake.write_text(f"#!/bin/sh\n[ \"$1 $3 $4\" = 'check --backend sim' ] || exit 9\n"
                    f"echo \"what check says of $2\"\ncase $2 in stage[{failed or 'x'}]) exit 1;; "
                    "esac\n")
    fake.chmod(0o755)
    for stage in solved + failed:
        (tmp_path / f"work/stage{stage}").mkdir(parents=True)
        (tmp_path / f"work/stage{stage}/kernel.cu").touch()
    summary = tmp_path / "summary"
    summary.touch()
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, capture_output=True,
                          text=True, env=os.environ | {"GITHUB_STEP_SUMMARY": str(summary)},
                          check=False)
    assert done.returncode == (1 if failed else 0), done.stderr
    text = summary.read_text()
    for stage in solved + failed:
        assert f"### stage{stage}: {'not solved yet' if stage in failed else 'solved'}" in text
        assert f"what check says of stage{stage}" in text
    if not solved + failed:
        assert "holds no kernel" in done.stdout


def test_gradescope_finds_its_two_scripts():
    for name in ("setup.sh", "run_autograder"):
        path = GRADESCOPE / name
        assert path.read_text().startswith("#!/bin/bash\n")
        assert path.stat().st_mode & stat.S_IXUSR
        assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    words = (GRADESCOPE / "run_autograder").read_text()
    assert "/autograder/submission" in words and "--out /autograder/results" in words


def test_the_archive_for_gradescope_has_them_at_its_root(tmp_path):
    command = next(line for line in (GRADESCOPE.parent / "README.md").read_text().splitlines()
                   if line.strip().startswith("git archive"))
    archive = tmp_path / "autograder.zip"
    done = subprocess.run(f"{command.strip()} && python3 -m zipfile -l {archive}".replace(
        "-o autograder.zip", "-o "
                             f"{archive}"), shell=True, capture_output=True, text=True, check=False,
        cwd=ROOT)
    if "not a git repository" in done.stderr or "not a valid object name" in done.stderr:
        pytest.skip("this is no git clone")
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert {"setup.sh", "run_autograder", "course/fa2"} <= set(names)

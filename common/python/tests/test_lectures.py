"""The lectures, the stages' READMEs, their pictures and the notebooks are what the code gives."""
import re
from pathlib import Path

import pytest

from fa2course.launcher.__main__ import command_names
from fa2course.lectures import blocks, counts, figures, svg

ROOT = Path(__file__).resolve().parents[3]
LECTURES = sorted(ROOT.glob("lectures/*.md"))
STAGE_LECTURES = [ROOT / "lectures" / f"0{n + 1}_stage{n}.md" for n in range(1, 7)]
READMES = sorted(ROOT.glob("stage*/README.md"))
NOTEBOOKS = ["online_softmax", "reading_counters", "reading_a_sweep"]
MEND = "./fa2 lectures --refresh rewrites it"


@pytest.mark.parametrize("path", blocks.files(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_output_blocks_are_what_the_commands_give(build_dir, path):
    assert blocks.refreshed(path) == path.read_text(), MEND


@pytest.mark.parametrize("name", figures.FIGURES)
def test_pictures_are_what_the_counters_give(build_dir, name):
    assert str(figures.FIGURES[name]()) == (figures.FOLDER / f"{name}.svg").read_text(), MEND


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run_and_print_what_is_committed(build_dir, name):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    from fa2course.lectures import notebooks

    path = notebooks.path_of(name)
    committed = notebooks.nbformat.read(path, as_version=4)
    assert notebooks.texts(notebooks.execute(path)) == notebooks.texts(committed), MEND


def test_notebooks_are_small():
    for name in NOTEBOOKS:
        assert (ROOT / "lectures" / f"{name}.ipynb").stat().st_size < 150_000


def test_every_stage_has_a_lecture_with_every_part():
    parts = ["**Question.**", "## Mental model", "## The mathematics", "## Predict", "## See it",
             "## Exercise", "## Things that break", "## Check yourself", "## Sources"]
    for number, path in enumerate(STAGE_LECTURES, 1):
        text = path.read_text()
        positions = [text.find(part) for part in parts]
        assert positions == sorted(positions) and positions[0] > 0, f"{path.name}: {parts}"
        assert f"./fa2 start {number}" in text and f"./fa2 check {number}" in text
        assert "<!-- run" in text and "](figures/" in text


@pytest.mark.parametrize("number", range(2, 7))
def test_solution_is_folded_until_the_exercise(number):
    """Whoever wants to solve the stage first must not read the answer on the way there."""
    text = STAGE_LECTURES[number - 1].read_text()
    before = text[:text.index("## Exercise")]
    change = before[before.index("## The change in the code"):]
    assert change.index(f"./fa2 start {number}") < change.index("<details>")
    shown = re.sub(r"<details>.*?</details>", "", before, flags=re.DOTALL)
    assert "```diff" not in shown and "```cpp" not in shown


def test_every_output_block_is_marked():
    """A command's output that nobody regenerates will be wrong one day."""
    for path in [*STAGE_LECTURES, *READMES]:
        for fence in re.finditer(r"^```(text|diff|cpp)\n", path.read_text(), re.MULTILINE):
            before = path.read_text()[:fence.start()].rstrip().splitlines()
            marked = before[-1] == "-->" or (before[-1].startswith("[") and before[-2] == "-->")
            assert marked, f"{path.name}: no comment makes the block after \"{before[-1]}\""


def test_the_questions_of_the_paper_review_are_answered():
    answers = "\n".join(path.read_text() for path in STAGE_LECTURES)
    summaries = " ".join(re.findall(r"<summary>(.*?)</summary>", answers))
    for words in ("What changed in the mathematics between FlashAttention and FlashAttention-2?",
                  "parallelized over batch and heads only. What does the second add?",
                  "Why does trimming non-matmul work matter on an A100?"):
        assert words in summaries
    assert answers.count("<details>") == answers.count("</details>") >= 18


def test_commands_in_the_lectures_exist():
    known = command_names()
    for path in [*LECTURES, *READMES]:
        for command in re.findall(r"\./fa2 ([a-z]+)", path.read_text()):
            assert command in known, f"{path.name} tells of ./fa2 {command}"


def test_pictures_are_shown_and_exist():
    texts = "\n".join(path.read_text() for path in LECTURES)
    shown = {name for name in re.findall(r"\]\(figures/(\w+)\.svg\)", texts)}
    assert set(figures.FIGURES) <= shown
    for name in shown:
        assert (figures.FOLDER / f"{name}.svg").exists(), f"figures/{name}.svg is missing"


def test_pictures_read_on_light_and_dark_pages():
    def light(hexadecimal: str) -> float:
        red, green, blue = (int(hexadecimal[i:i + 2], 16) for i in (1, 3, 5))
        return 0.3 * red + 0.59 * green + 0.11 * blue
    for which in (0, 1):
        paper = light(svg.COLORS["paper"][which])
        for name in ("ink", "quiet", "s1", "s2", "s3", "s4", "s5", "s6"):
            assert abs(light(svg.COLORS[name][which]) - paper) > 80, f"{name} on paper"
    assert "prefers-color-scheme:dark" in str(svg.Svg(10, 10, "title"))


TEXT = "first\nline a\n\nsecond\nline b\nline c\n\nthird\nline d\n"


@pytest.mark.parametrize("selectors, wanted", [
    ([], TEXT.strip()),
    (["show: line b"], "second\nline b\nline c"),
    (["from: line b", "to: third"], "line b\nline c\n\nthird"),
    (["show: first", "show: third"], "first\nline a\n...\nthird\nline d"),
    (["from: first", "to: line a", "from: line c", "to: line c"], "first\nline a\n...\nline c")])
def test_parts_of_an_output(selectors, wanted):
    assert blocks.selected(TEXT, selectors) == wanted


@pytest.mark.parametrize("selectors, sentence", [
    (["show: nowhere"], "no line contains"), (["to: first"], "without \"from\""),
    (["from: first"], "without \"to\""), (["lines 3-4"], "no selector")])
def test_wrong_selectors_are_a_sentence(selectors, sentence):
    with pytest.raises(blocks.Wrong, match=sentence):
        blocks.selected(TEXT, selectors)


def lecture(folder: Path, text: str) -> Path:
    path = folder / "lectures" / "test.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_an_output_that_was_edited_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(counts, "output", lambda arguments: f"counted with {arguments}\n")
    path = lecture(tmp_path, "<!-- run\n./fa2 compare --backend "
                             "sim\n-->\n```text\nold\n```\nafter\n")
    assert blocks.refreshed(path) == (
        "<!-- run\n./fa2 compare --backend sim\n-->\n```text\n$ ./fa2 compare --backend sim\n"
        "counted with --backend sim\n```\nafter\n")


def test_an_excerpt_follows_the_code(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks.paths, "ROOT", tmp_path)
    (tmp_path / "kernel.cu").write_text("a\n  // [change]\n  b\n  // [end of change]\n  c\n")
    head = "<!-- excerpt kernel.cu\nfrom: b\nto: c\n-->\n"
    path = lecture(tmp_path, f"{head}```cpp\n```\n\nText.\n\n{head}```cpp\nold\n```\nMore.\n")
    body = f"{head}[kernel.cu:3](../kernel.cu#L3)\n```cpp\nb\nc\n```\n"
    assert blocks.refreshed(path) == f"{body}\nText.\n\n{body}More.\n"
    path.write_text(blocks.refreshed(path))  # links are there now
    assert blocks.refreshed(path) == path.read_text()


@pytest.mark.parametrize("command, sentence", [
    ("rm -rf /", "only ./fa2"), ("./fa2 compare", "--backend sim")])
def test_commands_that_no_test_may_run(command, sentence):
    with pytest.raises(blocks.Wrong, match=sentence):
        blocks.output_of(command)


def test_without_a_build_the_way_out_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("FA2_BUILD_DIR", str(tmp_path))
    with pytest.raises(counts.Missing, match="./fa2 compare"):
        counts.build_dir()


@pytest.mark.parametrize("arguments, passed_on", [
    ([], []), (["--no-open"], []), (["--refresh"], ["--refresh"]), (["--check"], ["--check"])])
def test_the_command_sets_up_and_runs(monkeypatch, arguments, passed_on):
    from fa2course.launcher.commands import lectures

    calls = []
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(lectures.build, "ensure_tools", lambda: None)
    monkeypatch.setattr(lectures.build, "ensure_built",
                        lambda preset, targets: calls.append(targets))
    monkeypatch.setattr(lectures.venv, "ensure_or_system", lambda groups, modules: Path("python"))
    monkeypatch.setattr(lectures.process, "run_foreground",
                        lambda command, env: calls.append(command) or 0)
    assert lectures.run(arguments) == 0
    assert calls == [["fa2-compare", "fa2-warmup"],
                     ["python", "-m", "fa2course.lectures", *passed_on]]


def test_html_of_the_lectures(tmp_path, monkeypatch):
    pytest.importorskip("nbconvert")
    from fa2course.lectures import site

    monkeypatch.setattr(site, "OUT", tmp_path / "lectures")
    index = site.build()
    assert all(f"{path.stem}.html" in index.read_text() for path in LECTURES)
    page = (index.parent / "05_stage4.html").read_text()
    assert "<table>" in page and 'src="figures/split.svg"' in page and "<!-- run" not in page
    assert 'href="03_stage2.html"' in (index.parent / "07_stage6.html").read_text()

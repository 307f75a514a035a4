"""Links and math of every Markdown file and notebook, and their checks on planted mistakes."""
import json
import re
from pathlib import Path

import pytest

from fa2course import documents

ROOT = Path(__file__).resolve().parents[3]
FILES = documents.files(ROOT)


def test_the_documents_are_found():
    names = {path.relative_to(ROOT).as_posix() for path in FILES}
    assert {"README.md", "notes/fa2_code_notes.md", "notes/glossary.md", "stage1_naive/README.md",
            "lectures/09_what_comes_after.md"} <= names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_resolve(path):
    wrong = [w for page in documents.pages(path, ROOT) for w in documents.broken_links(page, ROOT)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_math_renders(path):
    wrong = [w for page in documents.pages(path, ROOT) for w in documents.bad_math(page)]
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def page(tmp_path):
    (tmp_path / "a (1).md").write_text("# One `two`: [three](x)\n## Same\n## Same\n```\n# not "
                                       "me\n```\n")
    (tmp_path / "kernel.cu").write_text("1\n2\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "build").mkdir()

    def make(text: str) -> documents.Page:
        documents.anchors.cache_clear()
        path = tmp_path / "folder" / "page.md"
        path.write_text(text)
        return documents.Page(path, "page.md", text)
    return make


@pytest.mark.parametrize("text", [
    "[x](../kernel.cu) [`x`](../kernel.cu#L2 \"title\") ![x](../kernel.cu#L1-L2)",
    "[x](../a%20%281%29.md#one-two-three) [x](<../a%20(1).md#same-1>)",
    "# Here we-go!\n[x](#here-we-go) [y](https://example.org/a_(b)) <https://x.org>",
    "`[x](nowhere)` and\n```\n[x](nowhere)\n```\n<!-- [x](nowhere) -->",
    "``a ` [x](nowhere)``",
    "[a]: ../kernel.cu\n[x][a] <img src=\"../kernel.cu\">",
    "[x](https://github.com/o/r/blob/" + 40 * "a" + "/f.h#L3)",
    "[x](https://github.com/o/r/blob/main/f.h)",
])
def test_good_links(page, text):
    made = page(text)
    assert not documents.broken_links(made, made.path.parents[1])


@pytest.mark.parametrize("text, what", [
    ("\n[x](nowhere.md)", "page.md:2: nowhere.md leads to no file"),
    ("![x](nowhere.svg)", "leads to no file"),
    ("[![x](nowhere.svg)](../kernel.cu)", "leads to no file"),
    ("[x](../Kernel.cu)", "leads to no file"),
    ("[x](../kernel.cu#L3)", "behind the last line, 2"),
    ("[x](../a%20%281%29.md#not-me)", "heading that is not there"),
    ("[x](../a%20%281%29.md#same-2)", "heading that is not there"),
    ("[x](#nowhere)", "heading that is not there"),
    ("[x](../../out.md)", "leaves the repository"),
    ("[x](/kernel.cu)", "leaves the repository"),
    ("[x](../build)", "leads into build/"),
    ("[x]()", "is empty"),
    ("[x](https://nowhere)", "is no address"),
    ("[x](https://github.com/o/r/blob/main/f.h#L3)", "use the commit's 40 digits"),
    ("[a]: nowhere.md", "leads to no file"),
    ("<source srcset='nowhere.svg'>", "leads to no file"),
])
def test_broken_links(page, text, what):
    made = page(text)
    wrong = documents.broken_links(made, made.path.parents[1])
    assert len(wrong) == 1 and what in wrong[0]


@pytest.mark.parametrize("text", [
    "with $m_i^{(j)}$, $e^{a - b}$ and $\\mathrm{diag}(l)$.", "costs \\$5", "`$OUT`",
    "```\n$x\n```", "a\n\n$$\nS = Q K^T\n$$\n\nb", "$$O = P V$$",
    "> text\n>\n> $$a$$\n>\n> text", "| a | $x \\vert y$ |",
    "$a < b$",
])
def test_good_math(page, text):
    assert not documents.bad_math(page(text))


@pytest.mark.parametrize("text, what", [
    ("one $x and", "without its partner"),
    ("$x$s", "touches a $"),
    ("a$x$", "touches a $"),
    ("$ x$", "a blank inside"),
    ("$a\\_b$", "Markdown takes the backslash of \\_"),
    ("$\\{a\\}$", "Markdown takes the backslash of \\{"),
    ("a\n\n$$\na \\\\ b\n$$\n", "Markdown takes the backslash of \\\\"),
    ("$a * b$", "* can begin emphasis"),
    ("$\\tilde{P}_i$", "}_ can begin emphasis"),
    ("$i<j$", "<j begins an HTML tag"),
    ("$\\operatorname{diag}$", "does not allow \\operatorname"),
    ("${a$", "unbalanced braces"),
    ("text\n$$a$$\n\nb", "a blank line before and after"),
    ("a\n\n$$a$$\nb", "a blank line before and after"),
    ("a\n\n$$\na\n- b\n$$\n", "- at the beginning of a line"),
    ("a\n\n$$\na\n=\nb\n$$\n", "= at the beginning of a line"),
    ("a\n\n$$\na\n\nb\n$$\n", "a blank line ends the paragraph"),
    ("| a | $x | y$ |", "| ends the table's cell"),
])
def test_bad_math(page, text, what):
    wrong = documents.bad_math(page(text))
    assert len(wrong) == 1 and what in wrong[0]


def test_notebook_cells(tmp_path):
    cells = [{"cell_type": "code", "source": ["$x"]},
             {"cell_type": "markdown", "source": ["a\n", "$x and [x](no.md)"]}]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    page, = documents.pages(tmp_path / "n.ipynb", tmp_path)
    assert documents.bad_math(page)[0].startswith("n.ipynb, cell 2:2: ")
    assert documents.broken_links(page, tmp_path) == ["n.ipynb, cell 2:2: no.md leads to no file"]


# ---- One word for one thing ----------------------------------------------------------------------

GLOSSARY = ROOT / "notes" / "glossary.md"
BRITISH = (r"\w+(?:alis|imis|ganis|eognis)(?:e[drs]?|ing|ations?)\b|"
           r"\bcolou\w+|\bbehaviou\w+|\bneighbou\w+")


def terms() -> list[list[str]]:
    """The rows of the glossary: term, meaning, elsewhere."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    return [row for row in rows if row[0] != "term"]


def avoided() -> list[str]:
    return [word for row in terms() for word in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", row[2])]


def words_to_avoid(text: str, avoid: list[str]) -> list[str]:
    """Words that the course has another word for, and British spelling, outside code and quotes."""
    own = re.sub(r'"[^"\n]*"|“[^”]*”', "", documents.without_code(text))
    own = re.sub(r"\]\([^)]*\)", "]", own)
    pattern = "|".join([rf"\b{re.escape(word)}s?\b" for word in avoid] + [BRITISH])
    return [f"{documents.line_of(own, match.start())}: {match[0]}"
            for match in re.finditer(pattern, own)]


def test_glossary_has_each_term_once():
    names = [row[0] for row in terms()]
    assert len(names) > 50 and len(set(names)) == len(names)
    assert all(len(row) == 3 and row[1] for row in terms())
    assert {"CTA", "HBM", "SMEM"} <= set(avoided())


@pytest.mark.parametrize("path", [path for path in FILES if path != GLOSSARY],
                         ids=lambda path: path.relative_to(ROOT).as_posix())
def test_words_are_those_of_the_glossary(path):
    wrong = [f"{page.where}:{word}" for page in documents.pages(path, ROOT)
             for word in words_to_avoid(page.text, avoided())]
    assert not wrong, "\n".join(wrong)


def test_other_words_are_noticed():
    avoid = avoided()
    assert words_to_avoid("a CTA, two CTAs", avoid) == ["1: CTA", "1: CTAs"]
    assert words_to_avoid("x\nnormalised colours", avoid) == ["2: normalised", "2: colours"]
    assert not words_to_avoid('`CTA`, "CTA" and CTAX [x](CTA.md) realistic', avoid)

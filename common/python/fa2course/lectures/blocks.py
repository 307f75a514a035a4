"""Marked blocks in the lectures and in the READMEs of the stages: what they show is made here,
never typed. A comment says how; what stands between it and the end of the block is rewritten.

    <!-- run
    ./fa2 compare --backend sim --stages 3,4 --seqlen 256
    show: 4 warps over 3 seqpar
    -->
    ```text
    (the command and what it prints)
    ```

    <!-- excerpt stage4_fa2_warps/kernel.cu
    from: constexpr int S_rows
    to: constexpr int O_rows
    -->
    [stage4_fa2_warps/kernel.cu:42](../stage4_fa2_warps/kernel.cu#L42)
    ```cpp
    (these lines)
    ```

    <!-- numbers 4 -->
    (tables of stage 4; "numbers 4 times" for the times alone: readmes.py)
    <!-- end of numbers -->

`show: TEXT` keeps the first paragraph with TEXT, `from: A` and `to: B` the lines from the first
with A to the next with B. Several may follow each other; `...` stands for what is between. Without
any, all is kept.
"""
import re
import subprocess
from pathlib import Path

from . import counts, readmes
from ..launcher import paths, stages

FENCED = re.compile(r"^<!-- (run|excerpt)\b(.*?)-->\n(?:\[[^\n]*\n)?```\w*\n.*?^```$\n",
                    re.MULTILINE | re.DOTALL)
NUMBERS = re.compile(r"^<!-- (numbers)\b(.*?)-->\n.*?^<!-- end of numbers -->$\n",
                     re.MULTILINE | re.DOTALL)


class Wrong(Exception):
    """A marked block that cannot be made, in a sentence for its author."""


def files() -> list[Path]:
    """Every file that may have marked blocks."""
    return sorted([*paths.ROOT.glob("lectures/*.md"), *paths.ROOT.glob("stage*/README.md")])


def refreshed(path: Path) -> str:
    """The text of a file with its blocks made anew."""
    text = path.read_text()
    for pattern in (FENCED, NUMBERS):
        text = pattern.sub(lambda match: block(match.group(1), match.group(2), path), text)
    return text


def block(kind: str, details: str, path: Path) -> str:
    comment = f"<!-- {kind}{details}-->\n"
    head, *selectors = details.strip().splitlines()
    try:
        if kind == "run":
            body = selected(output_of(head), selectors)
            language = "diff" if head.startswith("./fa2 diff") else "text"
            return f"{comment}```{language}\n$ {head}\n{body}\n```\n"
        if kind == "excerpt":
            return comment + excerpt(head, selectors, path)
        return f"{comment}\n{readmes.numbers(head)}\n<!-- end of numbers -->\n"
    except (Wrong, readmes.Wrong) as error:
        raise Wrong(f"{path.relative_to(paths.ROOT)}, block \"{kind} {head}\": {error}") from None


def output_of(command: str) -> str:
    """What a command prints. Where ./fa2 would first build, it is the built program that runs."""
    words = command.split()
    if words[0] != "./fa2":
        raise Wrong("only ./fa2 commands can be run")
    if words[1] == "compare":
        if "--backend sim" not in command:
            raise Wrong("say --backend sim: counters are the same on every machine, times are not")
        return counts.output(" ".join(words[2:]))
    if words[1] == "warmup":
        words = [str(counts.build_dir() / "bin" / "fa2-warmup"), *words[2:]]
    done = subprocess.run(words, cwd=paths.ROOT, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise Wrong(f"it ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout.replace(f"{paths.ROOT}/", "")


def excerpt(file: str, selectors: list[str], path: Path) -> str:
    """Lines of a source file, and a link to the first of them."""
    source = paths.ROOT / file
    if not source.exists():
        raise Wrong(f"there is no {file}")
    numbered = list(enumerate(source.read_text().splitlines(), 1))
    kept = [(n, line) for n, line in numbered if not stages.CHANGE_MARK.match(line)]
    body = selected("\n".join(line for _, line in kept), selectors)
    first = body.splitlines()[0]
    line_number = next(n for n, line in kept if line.strip() == first.strip())
    up = "../" * (len(path.relative_to(paths.ROOT).parts) - 1)
    return f"[{file}:{line_number}]({up}{file}#L{line_number})\n```cpp\n{dedent(body)}\n```\n"


def dedent(text: str) -> str:
    lines = text.splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines
                  if line.strip() and line != "..."), default=0)
    return "\n".join(line if line == "..." else line[indent:] for line in lines)


def selected(text: str, selectors: list[str]) -> str:
    """The parts of a text that the selectors name, in their order."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    if not selectors:
        return "\n".join(lines)
    parts, end = [], 0
    pending = None
    for selector in selectors:
        key, colon, wanted = (part.strip() for part in selector.partition(":"))
        if not colon or key not in ("show", "from", "to"):
            raise Wrong(f"\"{selector}\" is no selector: show, from or to")
        start = end if pending is None else pending
        at = next((i for i in range(start, len(lines)) if wanted in lines[i]), None)
        if at is None:
            raise Wrong(f"no line contains \"{wanted}\"")
        if key == "from":
            pending = at
            continue
        if key == "to" and pending is None:
            raise Wrong("\"to\" without \"from\"")
        first = pending if key == "to" else next(i for i in range(at, -1, -1)
                                                 if i == 0 or not lines[i - 1])
        last = at + 1 if key == "to" else next((i for i in range(at, len(lines)) if not lines[i]),
                                               len(lines))
        if parts and first > end:
            parts.append("...")
        parts += lines[first:last]
        end, pending = last, None
    if pending is not None:
        raise Wrong("\"from\" without \"to\"")
    return "\n".join(parts)

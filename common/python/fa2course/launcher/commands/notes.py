"""./fa2 notes [FILE...]"""
import re
from pathlib import Path

from .. import paths
from ..errors import UserError
from ..options import Parser

SUMMARY = "checks that a note's references into code still hold"
HELP = """
usage: ./fa2 notes [--official PATH] [--fix] [FILE...]

Checks every reference of a note into code: that the file has the line, and the line the identifiers
that the note names right after it, in backticks. Stops at the first that does not hold. A reference
is a link to FILE#L12, a permalink to the official repository, or plain:

  stage4_fa2_warps/kernel.cu:51 `S_rows`
  softmax.h:137 `softmax_rescale_o`

  FILE             a note, yours too (default: notes/fa2_code_notes.md)
  --official PATH  a clone of github.com/Dao-AILab/flash-attention: checks the references into it as
                   well, at the commits that they name (plain ones: v2.8.3, for fmha* v1.0.9)
  --fix            moves line numbers into this repository to where the identifiers are now, when
                   that is one place

exit status: 0 all hold, 1 one does not (a sentence says which), 2 cannot check here
"""


def run(arguments: list[str]) -> int:
    from fa2course import notes_check

    parser = Parser("notes")
    parser.add_argument("files", metavar="FILE", nargs="*")
    parser.add_argument("--official", metavar="PATH", type=Path)
    parser.add_argument("--fix", action="store_true")
    options = parser.parse_args(arguments)
    notes = [Path(file).resolve() for file in options.files]
    try:
        return check(notes or [paths.ROOT / "notes" / "fa2_code_notes.md"], options)
    except notes_check.Drift as drift:
        raise UserError(str(drift), 1) from None
    except notes_check.Missing as missing:
        raise UserError(str(missing), 2) from None


def check(notes: list[Path], options) -> int:
    from fa2course import notes_check

    read_official = options.official and notes_check.read_official(options.official)
    read_ours = notes_check.read_ours(paths.ROOT)
    for note in notes:
        try:
            text = note.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{note} cannot be read: {getattr(error, 'strerror', error)}") from None
        references = notes_check.find(text, note, paths.ROOT)
        if options.fix:
            text, moved = notes_check.fix(text, references, paths.ROOT)
            if moved:
                paths.write_whole(note, text)
                references = notes_check.find(text, note, paths.ROOT)
            print(f"{note.name}: {moved} line number{'s' if moved != 1 else ''} moved")
        if not references:
            hint = re.search(r"\w+\.(?:h|cu|cpp|py)\b", text)
            raise UserError(f"{note} has no reference into code" +
                            (f"; write {hint[0]}:LINE `identifier`" if hint else ""), 1)
        for reference in references:
            if reference.commit is None:
                notes_check.check(reference, read_ours)
            elif read_official:
                notes_check.check(reference, read_official)
        ours = sum(reference.commit is None for reference in references)
        official = len(references) - ours
        state = "hold" if read_official else "not checked (--official PATH does)"
        print(f"{note.name}: of {len(references)} references, {ours} into this repository hold" +
              (f", {official} into the official one {state}" if official else ""))
    return 0

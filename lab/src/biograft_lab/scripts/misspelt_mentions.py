"""Names with spelling errors in running text: how many are found again, and what is invented.

One error is made in a gold mention whose name is found: in a word of five letters or more a letter
becomes its neighbour on the keyboard, is left out, doubled, or exchanged with the next one. In
Chinese a character becomes one of the same sound or of similar shape, is left out or doubled.

In notes of others (data/clinical) each name gets its errors in a copy of the note. It is found if
an answer at its place has the concept that the right spelling has, and wrong if there is another
concept that the search without misspelt names does not give. What this search adds to clean text,
outside of the marked findings, is invented.

    python -m biograft_lab.scripts.misspelt_mentions --json
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from script_options import some_of

from biograft.kb.names import HAN
from biograft.kb.similar_characters import similar_characters
from biograft.linking import Linker
from biograft.text.documents import Document, Mention
from biograft_lab.scripts import new_parser, run
from biograft_lab.scripts.unseen_notes import open_store, read_notes

NOTES = {"notes-en": "medic", "notes-zh": "chinese"}
"""The store of each set of notes."""
_WORD = re.compile(r"[^\W\d_]{5,}")
_HAN_WORD = re.compile(f"[{HAN}]{{2,}}")
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
KINDS = ("keyboard", "missing", "exchanged", "doubled")
HAN_KINDS = ("sound", "shape", "missing", "doubled")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure each set."""
    return {
        "sets": {name: _measure_notes(name, options) for name in options.sets},
        "seed": options.seed,
    }


def _measure_notes(name: str, options: argparse.Namespace) -> dict[str, Any]:
    path = options.data / "clinical" / f"notes_{name[-2:]}_dev.txt"
    notes = [
        Document(
            note.id,
            note.text,
            tuple(Mention(m.start, m.end, note.text[m.start : m.end]) for m in note.findings),
        )
        for note in read_notes(path)
    ]
    with tempfile.TemporaryDirectory() as work:
        kb = open_store(NOTES[name], options.data, Path(work))
        linkers = {
            how: Linker.open(kb, k=1, misspelt=how == "misspelt") for how in ("plain", "misspelt")
        }
        clean = {how: _answers(linker, notes) for how, linker in linkers.items()}
        names = linkers["plain"].kb.rows_by_name
        errors = list(_errors(notes, clean["plain"], names, options))
        damaged = [each.document for each in errors]
        found = {how: _answers(linker, damaged) for how, linker in linkers.items()}
    result: dict[str, Any] = {"notes": len(notes), "errors": len(errors)}
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    n_wrong = 0
    for error, with_search, plain in zip(errors, found["misspelt"], found["plain"], strict=True):
        here = {
            answer for answer in with_search if error.start < answer[1] and answer[0] < error.end
        }
        is_right = any(concept == error.concept for _, _, concept in here)
        wrong = {concept for _, _, concept in here - set(plain)} - {error.concept}
        keys = ("all", error.kind, error.length, error.source)
        total.update(keys)
        right.update(keys if is_right else ())
        n_wrong += bool(wrong)
    added = [
        (note.text[start:end], concept)
        for note, more, plain in zip(notes, clean["misspelt"], clean["plain"], strict=True)
        for start, end, concept in set(more) - set(plain)
        if not any(start < m.end and m.start < end for m in note.mentions)
    ]
    units = sum(len(re.findall(rf"[{HAN}]|[A-Za-z]+", note.text)) for note in notes)
    return result | {
        "found": {
            key: [right[key], n, _percent(right[key], n)] for key, n in sorted(total.items())
        },
        "wrong": [n_wrong, _percent(n_wrong, len(errors))],
        "invented": [len(added), units, _percent(len(added), units)],
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / max(whole, 1), 2)


Answer = tuple[int, int, str]


def _answers(linker: Linker, documents: Sequence[Document]) -> list[list[Answer]]:
    plain = [replace(each, mentions=()) for each in documents]
    return [
        [(m.start, m.end, m.concept) for m in linked.mentions if m.concept is not None]
        for linked in linker.pipe(plain)
    ]


class _Error(NamedTuple):
    """A copy of a note with an error in a name."""

    document: Document
    start: int
    end: int
    kind: str
    length: str
    concept: str
    source: str
    """Whether the right spelling is a name of the knowledge base or of the clinical lexicon."""


def _errors(
    notes: Sequence[Document],
    answers: Sequence[Sequence[Answer]],
    names: Callable[[str], object],
    options: argparse.Namespace,
) -> Iterator[_Error]:
    """Yield copies of the notes with an error in each name that has a concept."""
    rng = random.Random(options.seed)
    for note, known in zip(notes, answers, strict=True):
        for mention in note.mentions:
            concepts = [
                c for start, end, c in known if (start, end) == (mention.start, mention.end)
            ]
            for _ in range(options.copies if concepts else 0):
                error = _damage(mention.text, rng)
                if error is None:
                    continue
                new, kind = error
                text = note.text[: mention.start] + new + note.text[mention.end :]
                length = f"{len(mention.text)} characters" if _HAN_WORD.search(new) else "English"
                yield _Error(
                    Document(note.id, text),
                    mention.start,
                    mention.start + len(new),
                    kind,
                    length,
                    concepts[0],
                    "name" if names(mention.text) else "lexicon",
                )


def _damage(name: str, rng: random.Random) -> tuple[str, str] | None:
    """Make one error in a name; None where no word is long enough."""
    if match := _HAN_WORD.search(name):
        return _damage_han(name, rng.randrange(match.start(), match.end()), rng)
    words = [match for match in _WORD.finditer(name) if match[0].isascii()]
    if not words:
        return None
    word = rng.choice(words)
    kind = rng.choice(KINDS)
    at = rng.randrange(word.start(), word.end() - (kind == "exchanged"))
    if kind == "exchanged":
        ways = [k for k in range(word.start(), word.end() - 1) if name[k] != name[k + 1]]
        at = rng.choice(ways)
        new = name[at + 1] + name[at]
        return name[:at] + new + name[at + 2 :], kind
    letter = name[at]
    new = {"keyboard": rng.choice(_beside(letter)), "missing": "", "doubled": 2 * letter}[kind]
    return name[:at] + new + name[at + 1 :], kind


def _damage_han(name: str, at: int, rng: random.Random) -> tuple[str, str] | None:
    sounds, shapes = similar_characters().get(name[at], ("", ""))
    kinds = [kind for kind in HAN_KINDS if kind != "missing" or len(name) > 2]
    ways = {"sound": sounds, "shape": shapes}
    kind = rng.choice([kind for kind in kinds if ways.get(kind, "-")])
    new = {"missing": "", "doubled": 2 * name[at]}.get(kind) or ""
    if kind in ways:
        new = rng.choice(ways[kind])
    return name[:at] + new + name[at + 1 :], kind


@cache
def _beside(letter: str) -> str:
    """Return the letters beside one on the keyboard."""
    for row in _KEYS:
        if (at := row.find(letter.lower())) >= 0:
            near = row[max(at - 1, 0) : at] + row[at + 1 : at + 2]
            return near.upper() if letter.isupper() else near
    return "e"


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("--sets", type=some_of(NOTES), default=list(NOTES))
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--copies", type=int, default=8, help="errors of each name of a note")
    run(measure, parser)


if __name__ == "__main__":
    main()

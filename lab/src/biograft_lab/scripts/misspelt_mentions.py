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
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from machine import describe_command, describe_commit
from script_options import add_data, run_with, some_of, start_parser

from biograft.compute import describe_machine
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.names import HAN
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker
from biograft.text.documents import Document, Mention
from biograft.text.spelling.chinese import similar_characters

NOTES = {
    "notes-en": ("notes_en_dev.txt", ("entity_linking/medic/medic_06Jul2012.txt.gz",)),
    "notes-zh": ("notes_zh_dev.txt", ("starter", "clinical-findings")),
}
"""The notes of a set, and the sources of its knowledge base."""
_WORD = re.compile(r"[^\W\d_]{5,}")
_HAN_WORD = re.compile(f"[{HAN}]{{2,}}")
_HEAD = re.compile(r"^(?:@@ |#)(?=\w).*\n", re.MULTILINE)
_MARK = re.compile(r"\[\[([^|\]]+)(?:\|[^\]]*)?\]\]")
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
KINDS = ("keyboard", "missing", "exchanged", "doubled")
HAN_KINDS = ("sound", "shape", "missing", "doubled")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure each set."""
    return {
        "sets": {name: _measure_notes(name, options) for name in options.sets},
        "seed": options.seed,
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("-m biograft_lab.scripts.misspelt_mentions", sys.argv[1:]),
    }


def _measure_notes(name: str, options: argparse.Namespace) -> dict[str, Any]:
    notes = list(_read_notes(options.data / "clinical" / NOTES[name][0]))
    with tempfile.TemporaryDirectory() as work:
        linkers = _open_linkers(name, options, Path(work))
        clean = {how: _answers(linker, notes) for how, linker in linkers.items()}
        names = linkers["plain"].kb.rows_by_name
        errors = list(_errors(notes, clean["plain"], names, options))
        damaged = [each.document for each in errors]
        found = {how: _answers(linker, damaged) for how, linker in linkers.items()}
    result: dict[str, Any] = {"notes": len(notes), "errors": len(errors)}
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    n_wrong, shown = 0, []
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
        if wrong or not is_right:
            shown.append((error.written, error.text, error.kind, is_right, sorted(wrong)))
    added = [
        (note.text[start:end], concept)
        for note, more, plain in zip(notes, clean["misspelt"], clean["plain"], strict=True)
        for start, end, concept in set(more) - set(plain)
        if not any(start < m.end and m.start < end for m in note.mentions)
    ]
    units = sum(len(re.findall(rf"[{HAN}]|[A-Za-z]+", note.text)) for note in notes)
    if options.show:
        random.Random(0).shuffle(shown)
        sys.stderr.write("\n".join(map(str, [*shown[: options.show], "invented:", *added])) + "\n")
    return result | {
        "found": {
            key: [right[key], n, _percent(right[key], n)] for key, n in sorted(total.items())
        },
        "wrong": [n_wrong, _percent(n_wrong, len(errors))],
        "invented": [len(added), units, _percent(len(added), units)],
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / max(whole, 1), 2)


def _read_notes(path: Path) -> Iterator[Document]:
    """Read notes with marked findings."""
    text = path.read_text(encoding="utf-8")
    for number, part in enumerate(_HEAD.split(text)[1:]):
        plain, at, mentions = "", 0, []
        for match in _MARK.finditer(part):
            plain += part[at : match.start()]
            mentions.append(Mention(len(plain), len(plain) + len(match[1]), match[1]))
            plain, at = plain + match[1], match.end()
        yield Document(str(number), plain + part[at:], tuple(mentions))


def _open_linkers(name: str, options: argparse.Namespace, work: Path) -> dict[str, Linker]:
    sources = options.kb_sources or NOTES[name][1]
    paths = [options.data / each if "/" in each else Path(each) for each in sources]
    config = BuildConfig(sources=tuple(SourceConfig(path=path) for path in paths))
    build_store(config, work / "kb")
    kb = KnowledgeBase.open(work / "kb")
    return {how: Linker.open(kb, k=1, misspelt=how == "misspelt") for how in ("plain", "misspelt")}


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
    text: str
    written: str
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
                    mention.text,
                    new,
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
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--sets", type=some_of(NOTES), default=list(NOTES))
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--copies", type=int, default=8, help="errors of each name of a note")
    parser.add_argument("--kb-sources", nargs="*", help="knowledge base of the notes")
    parser.add_argument("--show", type=int, default=0, help="errors to show that are not found")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    run_with(lambda given: print(json.dumps(measure(given), ensure_ascii=False)), options)


if __name__ == "__main__":
    main()

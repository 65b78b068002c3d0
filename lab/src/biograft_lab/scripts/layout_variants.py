"""Findings in notes as mail, web pages, PDF files and typists leave them: does any change.

A second generator beside ``biograft evaluate robustness``, with code of its own. It starts from
what happens to a note on its way, not from what the rules look at:

=============  ===================================================================================
page           a form feed in place of an empty line; or the foot of a page, *Page 2 of 5*
bullets        other marks and numbers of lists
cells          lines *label: value* as cells, *| label | value |*
pairs          two lines of that kind side by side, with a gap between them
mime           soft line breaks of quoted-printable mail, *=* at the end of a line of 76 characters
quoted         a mail's *>* before each line
html           *&nbsp;*, *&amp;*, *<br>* that were left
markdown       headings in bold, *#* before titles
typography     curved quotation marks, long dashes, three points as one character
ligatures      *fi* and *fl* as one character, as PDF files have them
invisible      zero-width blanks, soft hyphens and byte order marks between words
indented       blanks or tabs before each line
hard-wrapped   lines of at most 72 characters, with a hanging indent in half of the variants
double-spaced  an empty line after each line
rulers         lines of *-*, *=* or *_* between paragraphs
capitals       a line in capitals
=============  ===================================================================================

A text is a list of characters, each with the offset that it had; a finding of the note is where
its first and its last character are. Short forms are written in capitals, so that *capitals* may
rightly change some; it is counted apart, as is *cells*, since a table says less than a sentence. A
name that *=* at the end of a line or *&nbsp;* parts is not found, so that *mime* and *html* change
findings. The generator was written after the rules, by an author who had seen them; its kinds are
those that converters, mail, scanners and typists are known for.

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.layout_variants --stores medic,chinese --json
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from machine import describe_command, describe_commit
from script_options import add_data, run_with, some_of, start_parser

from biograft.compute import describe_machine
from biograft.linking import LinkedDocument, Linker
from biograft.text.documents import Document
from biograft_lab.scripts.unseen_notes import STORES, linkers_and_notes

Chars: TypeAlias = list[tuple[str, int]]
"""Characters with the offset that each had in the note; -1: it is new."""
Finding: TypeAlias = tuple[int, int, str, str]
_APART = ("capitals", "cells")
_PAIR = re.compile(r"^([A-Z][\w /]{1,24}): ?(\S.{0,50})$", re.MULTILINE)
_ITEM = re.compile(r"^([ \t]*)(?:[-*•]|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_TITLE = re.compile(r"^[A-Z][A-Za-z /&]{2,40}:|^[A-Z][A-Z /&]{4,40}$", re.MULTILINE)
_EMPTY = re.compile(r"(?<=\n)\n")
_LIGATURE = re.compile(r"f[il]")


def read(text: str) -> Chars:
    """Return the characters of a text."""
    return [(char, at) for at, char in enumerate(text)]


def new(text: str) -> Chars:
    """Return characters that the note does not have."""
    return [(char, -1) for char in text]


def replace(text: str, pattern: str | re.Pattern[str], make: Callable[[str], str | Chars]) -> Chars:
    """Replace what a pattern finds.

    Args:
        text: The note.
        pattern: The pattern.
        make: Returns what stands in place of the text found.
    """
    made: Chars = []
    end = 0
    for found in re.finditer(pattern, text):
        made += [(text[at], at) for at in range(end, found.start())]
        part = make(found[0])
        made += new(part) if isinstance(part, str) else part
        end = found.end()
    return made + [(text[at], at) for at in range(end, len(text))]


def insert(text: str, pattern: str | re.Pattern[str], make: Callable[[], str]) -> Chars:
    """Insert new text before each place that a pattern finds, which stays.

    Args:
        text: The note.
        pattern: The pattern.
        make: Returns the new text.
    """
    places = {found.start() for found in re.finditer(pattern, text)}
    made: Chars = []
    for at, char in enumerate(text):
        if at in places:
            made += new(make())
        made.append((char, at))
    return made


def page(text: str, rng: random.Random) -> Chars:
    """Return a text with page breaks in place of some empty lines.

    Args:
        text: The note.
        rng: Chooses.
    """
    feet = ("\f", "\n\fPage 2 of 5\n\n", "\n- 3 -\n\n", "\f\n")
    return replace(text, _EMPTY, lambda _: rng.choice(feet) if rng.random() < 0.5 else "\n")


def bullets(text: str, rng: random.Random) -> Chars:
    """Return a text whose lists have other marks or numbers.

    Args:
        text: The note.
        rng: Chooses.
    """
    mark = rng.choice(("- ", "* ", "• ", "– ", "o ", "-", "#) ", "#. ", "(#) ", "▪ ", "· "))
    numbers = iter(range(1, 1000))
    return replace(text, _ITEM, lambda _: mark.replace("#", str(next(numbers))))


def cells(text: str, rng: random.Random) -> Chars:
    """Return a text with the lines of labels and values as a table.

    Args:
        text: The note.
        rng: Chooses.
    """
    made: Chars = []
    end = 0
    for found in _PAIR.finditer(text):
        made += [(text[at], at) for at in range(end, found.start())]
        label, value = ([(text[at], at) for at in range(*found.span(group))] for group in (1, 2))
        made += new("| ") + label + new(" | ") + value + new(" |")
        end = found.end()
    return made + [(text[at], at) for at in range(end, len(text))]


def pairs(text: str, rng: random.Random) -> Chars:
    """Return a text with lines of labels and values side by side.

    Args:
        text: The note.
        rng: Chooses.
    """
    gap, value = " " * rng.randint(3, 12), r"[A-Z][\w /]{1,24}: ?\S.{0,40}"
    return replace(text, rf"(?m)(?<=[a-z])\n(?={value}$)", lambda _: gap)


def mime(text: str, rng: random.Random) -> Chars:
    """Return a text with soft line breaks of mail.

    Args:
        text: The note.
        rng: Chooses.
    """
    made: Chars = []
    column = 0
    for at, char in enumerate(text):
        word = len(text[at:].split(maxsplit=1)[0]) if text[at:].strip() else 0
        column = 0 if char == "\n" else column + 1
        made.append((char, at))
        if char == " " and column + word > 75:
            made += new("=\n")
            column = 0
    return made


def quoted(text: str, rng: random.Random) -> Chars:
    """Return a text as a reply quotes it.

    Args:
        text: The note.
        rng: Chooses.
    """
    mark = rng.choice(("> ", ">", ">> "))
    return insert(text, r"(?m)^(?=.)", lambda: mark)


def html(text: str, rng: random.Random) -> Chars:
    """Return a text with remnants of HTML.

    Args:
        text: The note.
        rng: Chooses.
    """
    kind = rng.randrange(3)
    if kind == 0:
        return replace(text, r"(?<=\S) (?=\S)", lambda s: "&nbsp;" if rng.random() < 0.2 else " ")
    if kind == 1:
        return replace(text, r"\n", lambda _: "<br>\n")
    return replace(text, r"[&<>]", lambda s: {"&": "&amp;", "<": "&lt;", ">": "&gt;"}[s])


def markdown(text: str, rng: random.Random) -> Chars:
    """Return a text with marked headings.

    Args:
        text: The note.
        rng: Chooses.
    """
    before, after = rng.choice(
        (("**", "**"), ("# ", ""), ("### ", ""), ("__", "__"), ("<b>", "</b>"))
    )
    made: Chars = []
    end = 0
    for found in _TITLE.finditer(text):
        made += [(text[at], at) for at in range(end, found.start())]
        title = [(text[at], at) for at in range(*found.span())]
        made += new(before) + title + new(after)
        end = found.end()
    return made + [(text[at], at) for at in range(end, len(text))]


def typography(text: str, rng: random.Random) -> Chars:
    """Return a text with the signs of a typesetter.

    Args:
        text: The note.
        rng: Chooses.
    """
    signs = {"'": "’", '"': rng.choice("“”"), " - ": rng.choice((" – ", " — ")), "...": "…"}
    made = replace(text, r"'|\"| - |\.\.\.", lambda sign: signs[sign])
    return _keep_places(made, text)


def ligatures(text: str, rng: random.Random) -> Chars:
    """Return a text with two letters as one sign.

    Args:
        text: The note.
        rng: Chooses.
    """
    made: Chars = []
    at = 0
    while at < len(text):
        if _LIGATURE.match(text, at):
            made.append(("ﬁ" if text[at + 1] == "i" else "ﬂ", at))
            at += 2
        else:
            made.append((text[at], at))
            at += 1
    return made


def invisible(text: str, rng: random.Random) -> Chars:
    """Return a text with invisible signs between words.

    Args:
        text: The note.
        rng: Chooses.
    """
    sign = rng.choice("\u200b\u00ad\ufeff\u2060\u200c")
    return insert(text, r"\b(?=\w)", lambda: sign if rng.random() < 0.15 else "")


def indented(text: str, rng: random.Random) -> Chars:
    """Return a text with blanks before each line.

    Args:
        text: The note.
        rng: Chooses.
    """
    blank = rng.choice(("    ", "\t", "  ", "\u3000\u3000"))
    return insert(text, r"(?m)^(?=.)", lambda: blank)


def hard_wrapped(text: str, rng: random.Random) -> Chars:
    """Return a text in lines of at most 72 characters.

    Args:
        text: The note.
        rng: Chooses.
    """
    hang = rng.choice(("", "    "))
    made: Chars = []
    column = 0
    for at, char in enumerate(text):
        word = len(text[at + 1 :].split(maxsplit=1)[0]) if text[at + 1 :].strip() else 0
        column = 0 if char == "\n" else column + 1
        if char == " " and column + word > 72 and text[at - 1] not in ".:;":
            made += new("\n" + hang)
            column = len(hang)
        else:
            made.append((char, at))
    return made


def double_spaced(text: str, rng: random.Random) -> Chars:
    """Return a text with an empty line after each line that ends a sentence.

    Args:
        text: The note.
        rng: Chooses.
    """
    return replace(text, r"(?<=[.。])\n(?=\S)", lambda _: "\n\n")


def rulers(text: str, rng: random.Random) -> Chars:
    """Return a text with lines drawn between paragraphs.

    Args:
        text: The note.
        rng: Chooses.
    """
    ruler = rng.choice("-=_*") * rng.randint(8, 60) + "\n"
    return insert(text, r"(?<=\n\n)(?=\S)", lambda: ruler)


def capitals(text: str, rng: random.Random) -> Chars:
    """Return a text with one line in capitals.

    Args:
        text: The note.
        rng: Chooses.
    """
    lines = [found.span() for found in re.finditer(r".+", text)]
    start, end = rng.choice(lines)
    upper = text[:start] + text[start:end].upper() + text[end:]
    return list(zip(upper, range(len(text)), strict=True)) if len(upper) == len(text) else []


def _keep_places(made: Chars, text: str) -> Chars:
    """Give signs that replace one sign its place: they may stand within a finding."""
    kept, following = [], 0
    for char, at in made:
        place = at if at >= 0 else following
        kept.append((char, place))
        following = place + 1
    return kept


KINDS: dict[str, Callable[[str, random.Random], Chars]] = {
    "page": page,
    "bullets": bullets,
    "cells": cells,
    "pairs": pairs,
    "mime": mime,
    "quoted": quoted,
    "html": html,
    "markdown": markdown,
    "typography": typography,
    "ligatures": ligatures,
    "invisible": invisible,
    "indented": indented,
    "hard-wrapped": hard_wrapped,
    "double-spaced": double_spaced,
    "rulers": rulers,
    "capitals": capitals,
}


def findings(document: LinkedDocument) -> set[Finding]:
    """Return span, concept and status of what is found."""
    return {(m.start, m.end, m.concept, m.status or "") for m in document.mentions if m.concept}


def moved(found: Iterable[Finding], chars: Chars, kind: str) -> set[Finding]:
    """Return findings of a note at their place in a variant; what has no place is left out.

    Args:
        found: The findings.
        chars: The variant.
        kind: Its kind.
    """
    at = {place: index for index, (_, place) in enumerate(chars) if place >= 0}
    if kind == "ligatures":  # the second letter is where the first is
        at |= {place + 1: index for index, (char, place) in enumerate(chars) if char in "ﬁﬂ"}
    return {
        (at[start], at[end - 1] + 1, concept, status)
        for start, end, concept, status in found
        if start in at and end - 1 in at
    }


def measure_notes(
    linker: Linker, notes: Iterable[tuple[str, str]], options: argparse.Namespace
) -> dict[str, Any]:
    """Compare the findings of notes with those of their variants.

    Args:
        linker: The linker.
        notes: Name and text of each note.
        options: Kinds, number of variants and seed.
    """
    n, changed, examples = Counter[str](), Counter[str](), []
    names, texts = zip(*notes, strict=True)
    linked = list(
        linker.pipe(Document(name, text) for name, text in zip(names, texts, strict=True))
    )
    made: list[tuple[LinkedDocument, str, Chars]] = []
    for document in linked:
        text = document.document.text
        for kind in options.kinds:
            known = {text}
            for number in range(options.variants):
                rng = random.Random(f"{options.seed}/{document.document.id}/{kind}/{number}")
                chars = KINDS[kind](text, rng)
                variant = "".join(char for char, _ in chars)
                if variant and variant not in known:
                    known.add(variant)
                    made.append((document, kind, chars))

    def variants() -> Iterator[Document]:
        for document, _, chars in made:
            yield Document(document.document.id, "".join(char for char, _ in chars))

    for (document, kind, chars), answer in zip(made, linker.pipe(variants()), strict=True):
        before, after = moved(findings(document), chars, kind), findings(answer)
        n[kind] += 1
        if before != after:
            changed[kind] += 1
            start = min(before ^ after)[0]
            text = answer.document.text
            piece = text[max(0, start - 50) : start + 50]
            row = [
                kind,
                document.document.id,
                piece,
                sorted(before - after),
                sorted(after - before),
            ]
            examples.append(row)
    main = set(options.kinds) - set(_APART)
    return {
        "variants": sum(n[kind] for kind in main),
        "changed": sum(changed[kind] for kind in main),
        "kinds": {kind: [n[kind], changed[kind]] for kind in options.kinds},
        "examples": examples,
    }


def measure(options: argparse.Namespace) -> None:
    """Measure the notes with each store, and print the result."""
    result: dict[str, Any] = {}
    for name, linker, notes in linkers_and_notes(options):
        result[name] = measure_notes(linker, [(note.id, note.text) for note in notes], options)
        if not options.details:
            del result[name]["examples"]
    result |= {
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("-m biograft_lab.scripts.layout_variants", sys.argv[1:]),
    }
    print(json.dumps(result, ensure_ascii=False, indent=None if options.json else 1))


def _parse() -> argparse.Namespace:
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--stores", type=some_of(STORES), default=["medic", "chinese"])
    parser.add_argument("--kinds", type=some_of(KINDS), default=list(KINDS))
    parser.add_argument("--variants", type=int, default=5, help="of each kind a note")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="folder of the stores; default: a new one")
    parser.add_argument("--details", action="store_true", help="list what changed")
    parser.add_argument("--json", action="store_true", help="one line")
    return parser.parse_args()


if __name__ == "__main__":
    run_with(measure, _parse())

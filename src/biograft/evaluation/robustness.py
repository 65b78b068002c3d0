"""Robustness of findings: what a note says must not depend on its layout.

Each note is linked as it is, and in variants made by fixed rules and seeds; the findings (span,
concept, status) must be the same. Kinds of variants:

* ``blanks``, ``tabs``, ``trailing``, ``hard-blanks``: single blanks within lines become two or
  three, or tabs; blanks end lines; blanks become non-breaking, narrow or, in Chinese, wide ones.
* ``crlf``, ``wraps``: lines end as in files of Windows; long lines are wrapped at 64 to 100
  characters, Chinese ones at 32 to 50, within sentences. No line then begins like an item of a list
  or a label, *2.*, *-* or *Plan:*, and none is broken within a finding of a Chinese text.
* ``widths``: in Chinese, punctuation, digits and letters outside of findings become full-width or
  half-width ones. Commas and colons between digits stay.
* ``order``, ``unknown``: in lists of findings of one status, with nothing but commas, *and*, *or*
  between them, a trigger or a mark before the first and a mark after the last, the items change
  places; a list of absent findings gets one more, which no knowledge base has.
* ``concepts``: one to three other words of the text are mentions, too, as they would be if the
  knowledge base had them: words of relatives, risk, history, screening, and any that are neither
  within findings nor triggers nor words such as *than*, which no index of names has.
* ``headings``: headings before a colon, at the beginning of a line after an empty one, of words of
  five letters or more and without findings, in capitals or not.
* ``typos``: one letter of an English trigger is left out, doubled, changed or exchanged, in a word
  of five letters or more, if no ordinary word comes of it. Here some change is expected, so it is
  counted apart; what the misspelt word itself is taken for does not count.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from biograft.artifacts import write_lines
from biograft.clinical import Trigger
from biograft.config import AtLeast, Choice, Config
from biograft.errors import ConfigError
from biograft.evaluation.assertion import Finding
from biograft.kb.names import HAN, HAN_CHARACTER
from biograft.linking import LinkedDocument, LinkedMention, Linker
from biograft.linking.detection import in_text_order
from biograft.linking.steps import DocumentState, Step
from biograft.metrics.precision_recall import percent
from biograft.progress import Progress
from biograft.text.documents import Document, Mention
from biograft.text.name_rules import FUNCTION_WORDS
from biograft.text.spelling.corrections import english_words

Piece: TypeAlias = tuple[int, int, str | tuple[int, int]]
"""A stretch of a text, and what stands in its place: a new text, or another stretch."""
TYPOS = "typos"
_AROUND = 60
"""Characters around a change that are shown."""
_BLANK = re.compile(r"(?<=\S) (?=\S)")
_ITEM = re.compile(r"\s|[-*•·–—+>#=?]|[(（]?\w{1,3}[.)、）]|[\w /()-]{1,40}[:：]|[，。；：、）)]")
"""Beginning of a line that may be an item of a list or a label, or that no line has."""
_SEPARATOR = re.compile(r"\s*(?:,\s*(?:and|or|nor)?|\b(?:and|or|nor)\b)\s*|[、，,或及和]", re.ASCII)
_BETWEEN_HAN = re.compile(rf"(?<=[{HAN}])(?=[{HAN}])")
_LONGEST_WORD = 13
_LIST_END = re.compile(r"\s*(?:[.;。；]|\n\s*\n|$)")
_UNKNOWN = ("zorblitis", "quamble", "vextrosis"), ("佐布症", "夸姆", "鞴鼾样变")
_SPECIAL = re.compile(
    r"\b(?:mother|father|mom|dad|brother|sister|son|daughter|wife|husband|aunt|uncle|cousin|partner"
    r"|friend|donor|contact|family|history|risk|screening|suspicion|status post|exposure"
    r"|prevention|diagnosis|concern)\b|[父母]亲|妻子|丈夫|儿子|女儿|家族|病史|风险|筛查|可能",
    re.IGNORECASE,
)
_WORD = re.compile(rf"[A-Za-z]{{4,}}|(?<![{HAN}])[{HAN}]{{2,6}}(?![{HAN}])")
_HEADING = re.compile(r"(?:(?<=\n\n)|\A)[A-Za-z]{5,}(?: [A-Za-z]{5,}| of| and)*(?=:)")
_LONG_WORD = re.compile(r"[A-Za-z]{5,}")
_TO_FULL = {ord(c): ord(c) + 0xFEE0 for c in string.ascii_letters + string.digits + ",:;()?"}
_HALF_WIDTH = re.compile(r"(?<!\d)[,:;()?]|[,:;()?](?!\d)|[A-Za-z0-9]")
_FULL_WIDTH = re.compile(r"[，：；（）？]")


class Note(NamedTuple):
    """A text with what was found in it."""

    text: str
    mentions: tuple[LinkedMention, ...]
    is_chinese: bool

    def free(self, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
        """Return the spans of a pattern that overlap no mention."""
        spans = [found.span() for found in pattern.finditer(self.text)]
        return [s for s in spans if not _overlaps(self.mentions, *s)]

    def is_trigger(self, start: int, end: int) -> bool:
        """Return True if a span overlaps a trigger.

        Args:
            start: Its start.
            end: Its end.
        """
        return any(
            m.assertion and _overlaps(m.assertion.triggers, start, end) for m in self.mentions
        )


def _overlaps(others: Iterable[LinkedMention | Trigger], start: int, end: int) -> bool:
    return any(each.start < end and start < each.end for each in others)


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a note, with the offsets that its characters had."""

    kind: str
    document: Document
    kept: tuple[tuple[int, int, int], ...]
    """Start and end in the note, and start in the variant, of what it shares with the note."""

    def place(self, finding: Finding) -> Finding | None:
        """Return a finding of the note at its place in the variant; None if it is not there."""
        start, last = (
            next((moved + at - start for start, end, moved in self.kept if start <= at < end), None)
            for at in (finding.start, finding.end - 1)
        )
        return (
            None if start is None or last is None else finding._replace(start=start, end=last + 1)
        )

    def origin(self, at: int) -> int | None:
        """Return where in the note stands what is at an offset of the variant, if anywhere."""
        found = (s + at - moved for s, end, moved in self.kept if moved <= at < moved + end - s)
        return next(found, None)


@dataclass(frozen=True, slots=True)
class RobustnessCase:
    """A variant whose findings are others than those of its note."""

    kind: str
    """Kind of the variant."""
    document: str
    """Id of the document."""
    before: str
    """The text around the first difference in the note; ``after``: in the variant."""
    after: str
    """Text of the variant."""
    lost: tuple[tuple[str, str, str], ...]
    """Text, concept and status of findings of the note only; ``gained``: of the variant only."""
    gained: tuple[tuple[str, str, str], ...]
    """Findings only of the variant: text, concept and status."""
    added: tuple[str, ...] = ()
    """Words that the variant has as mentions."""


@dataclass(slots=True)
class RobustnessResult:
    """Number of variants of each kind, of those that changed, and these cases."""

    n_documents: int = 0
    """Number of notes."""
    variants: Counter[str] = field(default_factory=Counter)
    """Number of variants by kind."""
    changed: Counter[str] = field(default_factory=Counter)
    """Number of variants with other findings than their note, by kind."""
    cases: list[RobustnessCase] = field(default_factory=list)
    """The variants with other findings."""

    @property
    def n_changed(self) -> int:
        """Number of changed variants that should be none; typos are not counted."""
        return self.changed.total() - self.changed[TYPOS]

    def to_json(self) -> dict[str, Any]:
        """Return the counts as plain values; the fraction unchanged in percent."""
        return {
            "n_documents": self.n_documents,
            "n_variants": self.variants.total(),
            "n_changed": self.n_changed,
            "kinds": {
                kind: {
                    "variants": n,
                    "changed": self.changed[kind],
                    "unchanged": percent(1 - self.changed[kind] / n),
                }
                for kind, n in self.variants.items()
            },
            "unit": "percent",
        }


def evaluate_robustness(
    linker: Linker,
    documents: Iterable[Document],
    config: RobustnessConfig | None = None,
    progress: Progress | None = None,
) -> RobustnessResult:
    """Compare the findings of texts with those of their variants.

    Args:
        linker: The linker; it has to find mentions and their status.
        documents: The texts; mentions that they have are not looked at.
        config: Kinds and number of variants; default: all, five of each a text.
        progress: Progress of the work.

    Raises:
        ConfigError: The linker gives no status.
    """
    if not linker.config.assertions:
        raise ConfigError("assertions: the linker must ask for the status of mentions; set it True")
    config, progress = config or RobustnessConfig(), progress or Progress()
    linker = copy(linker)
    linker.steps = [_AddGiven(linker.steps[0]), *linker.steps[1:]]
    result, waiting = RobustnessResult(), deque[tuple[LinkedDocument, Variant]]()
    plain = (Document(d.id, d.text, language=d.language) for d in documents)

    def variants() -> Iterator[Document]:
        for linked in linker.pipe(plain):
            result.n_documents += 1
            for variant in _variants(linked, config):
                waiting.append((linked, variant))
                yield variant.document

    progress.start("variants")
    for answer in linker.pipe(variants()):
        linked, variant = waiting.popleft()
        result.variants[variant.kind] += 1
        case = _compare(linked, variant, answer)
        if case is not None:
            result.changed[variant.kind] += 1
            result.cases.append(case)
        progress.advance(1)
    progress.finish()
    return result


def save_cases(result: RobustnessResult, path: Path, *, overwrite: bool = False) -> None:
    """Write the changed variants as JSON lines; they hold pieces of the texts.

    Args:
        result: The evaluation.
        path: The file.
        overwrite: Replace a file that exists.
    """
    lines = (json.dumps(asdict(case), ensure_ascii=False) for case in result.cases)
    write_lines(path, lines, overwrite=overwrite)


@dataclass(slots=True)
class _AddGiven:
    """Find mentions as another step does, and add those that the document has."""

    detect: Step
    name: str = "detect"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        given = [state.document.mentions for state in batch]
        for state in batch:
            state.document = replace(state.document, mentions=())
        self.detect(batch)
        for state, mentions in zip(batch, given, strict=True):
            if mentions:
                state.found = in_text_order([*state.found, *mentions])
                state.document = replace(state.document, mentions=mentions)


def _findings(document: LinkedDocument) -> set[Finding]:
    given = {(each.start, each.end) for each in document.document.mentions}
    return {
        Finding(each.start, each.end, each.concept, each.status or "")
        for each in document.mentions
        if each.concept is not None and (each.start, each.end) not in given
    }


def _compare(
    linked: LinkedDocument, variant: Variant, answer: LinkedDocument
) -> RobustnessCase | None:
    """Return how the findings of a variant differ from those of its note."""
    expected = {variant.place(finding): finding for finding in _findings(linked)}
    found = _findings(answer)
    if variant.kind == TYPOS:  # not what the misspelt word itself may be
        found = {each for each in found if variant.origin(each.start) is not None}
    if expected.keys() == found:
        return None
    lost = sorted(own for placed, own in expected.items() if placed not in found)
    gained = sorted(found - expected.keys())
    text, other = linked.document.text, answer.document.text
    own = lost[0] if lost else gained[0]
    placed = (variant.place(own) if lost else None) or own
    origin = own.start if lost else variant.origin(own.start) or own.start
    return RobustnessCase(
        variant.kind,
        linked.document.id,
        _around(text, origin),
        _around(other, placed.start),
        tuple((text[f.start : f.end], f.concept, f.status) for f in lost),
        tuple((other[f.start : f.end], f.concept, f.status) for f in gained),
        tuple(each.text for each in variant.document.mentions),
    )


def _around(text: str, at: int) -> str:
    return text[max(0, at - _AROUND) : at + _AROUND]


# ---- variants


def _variants(linked: LinkedDocument, config: RobustnessConfig) -> Iterator[Variant]:
    """Yield the variants of a note; equal ones once."""
    document = linked.document
    note = Note(document.text, linked.mentions, bool(HAN_CHARACTER.search(document.text)))
    for kind in config.kinds or KINDS:
        known: set[tuple[str, tuple[Mention, ...]]] = {(document.text, ())}
        for number in range(config.variants):
            rng = random.Random(f"{config.seed} {kind} {number} {document.id}")
            made = KINDS[kind](note, rng)
            if isinstance(made, tuple):
                variant = _assemble(kind, document, (), made)
            else:
                variant = _assemble(kind, document, made, ())
            key = variant.document.text, variant.document.mentions
            if key not in known:
                known.add(key)
                yield variant


def _assemble(
    kind: str, document: Document, pieces: Iterable[Piece], mentions: tuple[Mention, ...]
) -> Variant:
    text, kept, parts, length, position = document.text, [], [], 0, 0
    end = len(text)
    for start, stop, new in [*sorted(pieces, key=lambda each: each[:2]), (end, end, "")]:
        parts.append(text[position:start])
        kept.append((position, start, length))
        length += start - position
        part = new if isinstance(new, str) else text[slice(*new)]
        if not isinstance(new, str):
            kept.append((*new, length))
        parts.append(part)
        length, position = length + len(part), stop
    shared = tuple(sorted(each for each in kept if each[0] < each[1]))
    return Variant(kind, replace(document, text="".join(parts), mentions=mentions), shared)


def _some(spans: Iterable[tuple[int, int]], rng: random.Random) -> list[tuple[int, int]]:
    """Return a few of some spans, many, or all of them."""
    spans, rate = list(spans), rng.choice((0.1, 0.4, 1.0))
    chosen = [span for span in spans if rng.random() < rate]
    return chosen or spans[:1]


def _replaced(
    pattern: re.Pattern[str], *choices: str, chinese: str = ""
) -> Callable[[Note, random.Random], list[Piece]]:
    """Return a kind that puts one of some texts in some places; in Chinese, others, too."""

    def change(note: Note, rng: random.Random) -> list[Piece]:
        texts = (*choices, *(chinese * note.is_chinese))
        spans = (found.span() for found in pattern.finditer(note.text))
        return [(*span, rng.choice(texts)) for span in _some(spans, rng)]

    return change


def _wraps(note: Note, rng: random.Random) -> list[Piece]:
    breaks: list[Piece] = []
    width = rng.randint(32, 50) if note.is_chinese else rng.randint(64, 100)
    for line in re.finditer(r".+", note.text):
        start = line.start()
        while start + width < line.end():
            at = _break(note, start, start + width)
            if at is None:
                break
            breaks.append((*at, "\n"))
            start = at[1]
    return breaks


def _break(note: Note, start: int, end: int) -> tuple[int, int] | None:
    """Return the last blank of a line that may be a line break; in Chinese any place."""
    text = note.text
    for at in range(end, end - _LONGEST_WORD, -1):
        is_blank = text[at] == " " != text[at - 1]
        inside = note.is_chinese and any(m.start < at < m.end for m in note.mentions)
        if inside or not (is_blank or _BETWEEN_HAN.match(text, at)):
            continue
        if text[at - 1] not in ".!?:;" and not _ITEM.match(text, at + is_blank):
            return at, at + is_blank
    return None


def _widths(note: Note, rng: random.Random) -> list[Piece]:
    to_full = rng.random() < 0.5
    spans = note.free(_HALF_WIDTH if to_full else _FULL_WIDTH) if note.is_chinese else ()
    changed = _TO_FULL if to_full else {full: half for half, full in _TO_FULL.items()}
    return [(*span, note.text[slice(*span)].translate(changed)) for span in _some(spans, rng)]


def _lists(note: Note) -> list[list[LinkedMention]]:
    """Return the lists of findings of one status."""
    lists: list[list[LinkedMention]] = [[]]
    for mention in note.mentions:
        last = lists[-1][-1] if lists[-1] else mention
        between = _SEPARATOR.fullmatch(note.text, last.end, max(mention.start, last.end))
        if mention.concept is None or mention.status != last.status or not between:
            lists.append([])
        lists[-1].append(mention)
    return [
        each
        for each in lists
        if len(each) > 1
        and _LIST_END.match(note.text, each[-1].end)
        and (
            note.is_trigger((start := each[0].start) - 2, start)
            or note.text[:start].rstrip(" ")[-1:] in "\n.,;:()。，；：（）、"
        )
    ]


def _order(note: Note, rng: random.Random) -> list[Piece]:
    pieces: list[Piece] = []
    for run in _lists(note):
        order = rng.sample(run, len(run))
        pieces += [(a.start, a.end, (b.start, b.end)) for a, b in zip(run, order, strict=True)]
    return pieces


def _unknown(note: Note, rng: random.Random) -> list[Piece]:
    lists = [each for each in _lists(note) if each[0].status == "absent"]
    if not lists:
        return []
    run = rng.choice(lists)
    word, before = rng.choice(_UNKNOWN[note.is_chinese]), rng.choice(run)
    return [(before.start, before.start, f"{word}{'、' if note.is_chinese else ', '}")]


def _concepts(note: Note, rng: random.Random) -> tuple[Mention, ...]:
    words = [
        span
        for span in note.free(_WORD)
        if not note.is_trigger(*span) and note.text[slice(*span)].lower() not in FUNCTION_WORDS
    ]
    special = note.free(_SPECIAL)
    pool = special if special and rng.random() < 0.5 else words
    chosen = sorted(rng.sample(pool, min(len(pool), rng.randint(1, 3))))
    return tuple([Mention(start, end, note.text[start:end]) for start, end in chosen])


def _headings(note: Note, rng: random.Random) -> list[Piece]:
    headings = [(*span, note.text[slice(*span)]) for span in note.free(_HEADING)]
    return [(a, b, name.title() if name.isupper() else name.upper()) for a, b, name in headings]


def _typos(note: Note, rng: random.Random) -> list[Piece]:
    words = [
        span
        for span in note.free(_LONG_WORD)
        if note.is_trigger(*span) and note.text[slice(*span)].lower() in english_words()
    ]
    if not words:
        return []
    start, end = rng.choice(words)
    letters, at = list(note.text[start:end]), rng.randrange(1, end - start - 1)
    changes: tuple[Sequence[str], ...] = (
        [],
        letters[at] * 2,
        rng.choice(string.ascii_lowercase),
        letters[at + 1 : at - 1 : -1],
    )
    kind = rng.randrange(len(changes))
    letters[at : at + 1 + (kind == 3)] = changes[kind]
    typo = "".join(letters)
    known = {typo.lower(), typo.lower().removesuffix("s")} & english_words()
    return [] if known else [(start, end, typo)]


KINDS: dict[str, Callable[[Note, random.Random], list[Piece] | tuple[Mention, ...]]] = {
    "blanks": _replaced(_BLANK, "  ", "   "),
    "tabs": _replaced(_BLANK, "\t"),
    "trailing": _replaced(re.compile(r"(?<=\S)(?=\n|$)"), " ", "  ", "\t"),
    "hard-blanks": _replaced(_BLANK, "\u00a0", "\u2009", "\u202f", chinese="\u3000"),
    "crlf": _replaced(re.compile(r"(?<!\r)\n"), "\r\n"),
    "wraps": _wraps,
    "widths": _widths,
    "order": _order,
    "unknown": _unknown,
    "concepts": _concepts,
    "headings": _headings,
    TYPOS: _typos,
}
"""Variants of a note: changes of its text, or mentions to add."""


@dataclass(frozen=True, kw_only=True)
class RobustnessConfig(Config):
    """Variants that are made of each note."""

    kinds: tuple[Annotated[str, Choice(*KINDS)], ...] = ()
    """Kinds of variants; none: all."""
    variants: Annotated[int, AtLeast(1)] = 5
    """Variants of each kind a note."""
    seed: int = 0
    """Seed of the choice of changed places."""

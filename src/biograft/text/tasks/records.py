"""Task examples as plain records: pairs, rankings, classes and relations; entity indicators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from biograft.text.documents import Mention


@dataclass(frozen=True, slots=True)
class PairExample:
    """Two texts and the label of their relation: the same question, an inference, ..."""

    first: str
    second: str
    label: str = ""
    """The label as written; empty if there is none."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A candidate of a ranking."""

    text: str
    relevance: int = 0
    """0: no answer; above: an answer, the higher the better."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class RankingExample:
    """A question and the texts to rank for it, in the order of the file."""

    query: str
    candidates: tuple[Answer, ...]
    id: str = ""

    @property
    def n_relevant(self) -> int:
        """The number of candidates that are answers."""
        return sum(answer.relevance > 0 for answer in self.candidates)

    @property
    def decidable(self) -> bool:
        """Whether there are both answers and other candidates, so that a ranking matters."""
        return 0 < self.n_relevant < len(self.candidates)


@dataclass(frozen=True, slots=True)
class ClassExample:
    """A text and its classes; the text may be a question about ``context``."""

    text: str
    labels: tuple[str, ...] = ()
    """One label, or any number if ``multi``; empty if unlabelled."""
    context: str = ""
    multi: bool = False
    """Whether this is multi-label classification."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class RelationExample:
    """A text with two mentions and the relation of their concepts."""

    text: str
    first: Mention
    second: Mention
    label: str = ""
    document: str = ""
    id: str = ""


Example: TypeAlias = PairExample | RankingExample | ClassExample | RelationExample
KINDS: dict[str, type[Example]] = {
    "pair": PairExample,
    "ranking": RankingExample,
    "class": ClassExample,
    "relation": RelationExample,
}


def kind_of(example: Example) -> str:
    """Return the kind of an example.

    >>> kind_of(PairExample("a", "b"))
    'pair'
    """
    return next(name for name, record in KINDS.items() if isinstance(example, record))


def labels_of(example: Example) -> tuple[str, ...]:
    """Return the labels of an example; of a ranking, the relevance of each candidate."""
    if isinstance(example, ClassExample):
        return example.labels
    if isinstance(example, RankingExample):
        return tuple(str(answer.relevance) for answer in example.candidates)
    return (example.label,) if example.label else ()


def texts_of(example: Example) -> tuple[str, ...]:
    """Return the texts of an example that a model reads."""
    if isinstance(example, PairExample):
        return (example.first, example.second)
    if isinstance(example, RankingExample):
        return (example.query, *(answer.text for answer in example.candidates))
    if isinstance(example, ClassExample) and example.context:
        return (example.text, example.context)
    return (example.text,)


Offsets = tuple[int, int]
Mark = tuple[str, str]

INDICATED = {
    "": "ENTITY",
    **dict.fromkeys(("drug", "brand", "group", "drug_n"), "DRUG"),
}
"""BLURB's indicators of DDI types, and of unknown types; any other type is its own indicator."""


@dataclass(frozen=True, slots=True)
class Anonymised:
    """A text with indicators instead of two mentions, and their offsets.

    Overlapping mentions share one indicator, and so one span.
    """

    text: str
    first: Offsets
    second: Offsets
    edits: tuple[tuple[Offsets, Offsets], ...]
    """The replacements: the span in the original text, and the span of the indicator."""

    def original(self, position: int) -> int:
        """Return the position of a character in the original text.

        All positions in an indicator map to the start of its mention.
        """
        shift = 0
        for (start, end), (new_start, new_end) in self.edits:
            if new_start <= position < new_end:
                return start
            if position >= new_end:
                shift = end - new_end
        return position + shift


def anonymise(example: RelationExample, names: Mapping[str, str] | None = None) -> Anonymised:
    """Replace both mentions by indicators; ``names`` maps types to indicators.

    A mention with gaps is replaced from its start to its end, as in BLURB.

    >>> text = "aspirin with warfarin"
    >>> first, second = Mention(0, 7, "aspirin", type="drug"), Mention(13, 21, "warfarin")
    >>> anonymise(RelationExample(text, first, second)).text
    '@DRUG$ with @ENTITY$'
    """
    names = INDICATED if names is None else names
    order = sorted((example.first, example.second), key=lambda mention: mention.start)
    indicators = [
        names.get(mention.type, mention.type.upper()) or INDICATED[""] for mention in order
    ]
    spans = [(mention.start, mention.end) for mention in order]
    if spans[1][0] < spans[0][1]:
        spans = [(spans[0][0], max(spans[0][1], spans[1][1]))]
        indicators = ["-".join(indicators)]
    parts, edits, position, length = [], [], 0, 0
    for (start, end), name in zip(spans, indicators, strict=True):
        between, indicator = example.text[position:start], f"@{name}$"
        begin = length + len(between)
        parts += [between, indicator]
        position, length = end, begin + len(indicator)
        edits.append(((start, end), (begin, length)))
    new = [edit[1] for edit in edits]
    first, second = (new[0], new[-1]) if order[0] is example.first else (new[-1], new[0])
    return Anonymised("".join([*parts, example.text[position:]]), first, second, tuple(edits))


def unmark(text: str, marks: Sequence[Mark]) -> tuple[str, Mention, Mention] | None:
    """Remove two pairs of marks from a text; None unless each pair occurs exactly once.

    >>> unmark("<< a >> and [[ b ]]", (("<< ", " >>"), ("[[ ", " ]]")))[0]
    'a and b'
    """
    cuts: list[Offsets] = []
    inner: list[Offsets] = []
    for opening, closing in marks:
        start = text.find(opening)
        # another closing mark may be text, as in "A >> B"
        end = text.find(closing, start + len(opening))
        if start < 0 or text.find(opening, start + 1) >= 0 or end <= start + len(opening):
            return None
        inner.append((start + len(opening), end))
        cuts += [(start, start + len(opening)), (end, end + len(closing))]
    cuts.sort()
    if any(cuts[k][1] > cuts[k + 1][0] for k in range(len(cuts) - 1)):
        return None
    plain, position = "", 0
    for start, end in cuts:
        plain += text[position:start]
        position = end
    plain += text[position:]
    first, second = (_without(cuts, span, plain) for span in inner)
    return plain, first, second


def _without(cuts: Sequence[Offsets], span: Offsets, plain: str) -> Mention:
    """Return the mention at a span after the cuts."""
    start, end = (
        bound - sum(cut_end - cut_start for cut_start, cut_end in cuts if cut_end <= bound)
        for bound in span
    )
    return Mention(start, end, plain[start:end])

"""What tasks learn from: plain records, one type for each kind of question asked of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from biograft.documents import Mention


@dataclass(frozen=True, slots=True)
class PairExample:
    """Two texts and how they stand to each other: the same question, an inference, ..."""

    first: str
    second: str
    label: str = ""
    """As written; empty where it is not given."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One text among those to be ranked."""

    text: str
    relevance: int = 0
    """0: not an answer; above: an answer, the higher the better."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class RankingExample:
    """A question and the texts to be ranked for it, in the file's order."""

    query: str
    candidates: tuple[Answer, ...]
    id: str = ""

    @property
    def n_relevant(self) -> int:
        """How many candidates are answers."""
        return sum(answer.relevance > 0 for answer in self.candidates)

    @property
    def decidable(self) -> bool:
        """Whether an order can be right or wrong: there are answers and others."""
        return 0 < self.n_relevant < len(self.candidates)


@dataclass(frozen=True, slots=True)
class ClassExample:
    """A text (a question, with the text it is asked of as ``context``) and its classes."""

    text: str
    labels: tuple[str, ...] = ()
    """One, unless ``multi``; none where it is not given, or (``multi``) where none holds."""
    context: str = ""
    multi: bool = False
    """Whether any number of classes may hold at once."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class RelationExample:
    """A text with two mentions in it, and how their concepts are related."""

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
    """Name the kind of an example.

    >>> kind_of(PairExample("a", "b"))
    'pair'
    """
    return next(name for name, record in KINDS.items() if isinstance(example, record))


def labels_of(example: Example) -> tuple[str, ...]:
    """Give the labels of an example; of a ranking, the relevance of each candidate."""
    if isinstance(example, ClassExample):
        return example.labels
    if isinstance(example, RankingExample):
        return tuple(str(answer.relevance) for answer in example.candidates)
    return (example.label,) if example.label else ()


def texts_of(example: Example) -> tuple[str, ...]:
    """Give the texts of an example, those a model would read."""
    if isinstance(example, PairExample):
        return (example.first, example.second)
    if isinstance(example, RankingExample):
        return (example.query, *(answer.text for answer in example.candidates))
    if isinstance(example, ClassExample) and example.context:
        return (example.text, example.context)
    return (example.text,)


Span = tuple[int, int]
Mark = tuple[str, str]

INDICATED = {
    "": "ENTITY",
    **dict.fromkeys(("drug", "brand", "group", "drug_n"), "DRUG"),
}
"""What BLURB calls the types of DDI; ``ENTITY`` where no type is known. Others: the type itself."""


@dataclass(frozen=True, slots=True)
class Anonymised:
    """A text with indicators in place of two mentions, and where they stand in it.

    Mentions that overlap have one indicator in common, and so one span.
    """

    text: str
    first: Span
    second: Span
    edits: tuple[tuple[Span, Span], ...]
    """What was replaced: its span in the unaltered text, and that of its indicator here."""

    def original(self, position: int) -> int:
        """Say where a character of this text came from; inside an indicator: its beginning."""
        shift = 0
        for (start, end), (new_start, new_end) in self.edits:
            if new_start <= position < new_end:
                return start
            if position >= new_end:
                shift = end - new_end
        return position + shift


def anonymise(example: RelationExample, names: Mapping[str, str] | None = None) -> Anonymised:
    """Put indicators in place of both mentions; ``names`` maps types to what indicators say.

    A mention with gaps is replaced from its beginning to its end, as BLURB does.

    >>> text = "aspirin with warfarin"
    >>> first, second = Mention(0, 7, "aspirin", type="drug"), Mention(13, 21, "warfarin")
    >>> anonymise(RelationExample(text, first, second)).text
    '@DRUG$ with @ENTITY$'
    """
    names = INDICATED if names is None else names
    order = sorted((example.first, example.second), key=lambda mention: mention.start)
    said = [names.get(mention.type, mention.type.upper()) or INDICATED[""] for mention in order]
    spans = [(mention.start, mention.end) for mention in order]
    if spans[1][0] < spans[0][1]:
        spans = [(spans[0][0], max(spans[0][1], spans[1][1]))]
        said = ["-".join(said)]
    parts, edits, position, length = [], [], 0, 0
    for (start, end), name in zip(spans, said, strict=True):
        between, indicator = example.text[position:start], f"@{name}$"
        begin = length + len(between)
        parts += [between, indicator]
        position, length = end, begin + len(indicator)
        edits.append(((start, end), (begin, length)))
    new = [edit[1] for edit in edits]
    first, second = (new[0], new[-1]) if order[0] is example.first else (new[-1], new[0])
    return Anonymised("".join([*parts, example.text[position:]]), first, second, tuple(edits))


def unmark(text: str, marks: Sequence[Mark]) -> tuple[str, Mention, Mention] | None:
    """Take two pairs of marks out of a text; none unless each opens once and closes.

    >>> unmark("<< a >> and [[ b ]]", (("<< ", " >>"), ("[[ ", " ]]")))[0]
    'a and b'
    """
    cuts: list[Span] = []
    inner: list[Span] = []
    for opening, closing in marks:
        start = text.find(opening)
        # a further closing mark may be text, as in "A >> B"
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


def _without(cuts: Sequence[Span], span: Span, plain: str) -> Mention:
    """Say where a span lies once the cuts are made."""
    start, end = (
        place - sum(cut_end - cut_start for cut_start, cut_end in cuts if cut_end <= place)
        for place in span
    )
    return Mention(start, end, plain[start:end])

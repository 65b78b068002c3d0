"""Entity linking results: hits of a generator, candidates with evidence, linked mentions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from biograft.arrays import Flags, Float32s, Ints
from biograft.clinical import Assertion, Measurement
from biograft.display import Shown, highlighted, stretches, table
from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.text.documents import Document, Mention

_DECIMALS = 6
"""Decimals of scores in JSON: as many as a 32-bit float has."""

Rows = Ints
Scores = Float32s


def pad_rows(lines: Sequence[Sequence[int] | Rows], width: int | None = None) -> Rows:
    """Make an array of lines, padded with -1.

    Args:
        lines: Rows of names of each query.
        width: Length of the longest line, or more; computed if None.

    Returns:
        One line for each query: (queries, width).
    """
    width = max(map(len, lines), default=0) if width is None else width
    padded = np.full((len(lines), width), -1, np.int64)
    for row, line in enumerate(lines):
        padded[row, : len(line)] = line
    return padded


def names_in(kb: KnowledgeBase, languages: Sequence[str]) -> Flags:
    """Return which names of a store are in some languages.

    Args:
        kb: The store.
        languages: Codes of languages; none: all.

    Returns:
        A flag for each row of the names table.

    Raises:
        ConfigError: The store has no names in a language.
    """
    if not languages:
        return np.ones(kb.n_names, np.bool_)
    for language in languages:
        if language not in kb.languages:
            raise ConfigError(
                f"languages: {kb.folder} has no names in {language!r}; "
                f"{nearest(language, kb.languages)}"
            )
    codes = [kb.languages.index(language) for language in languages]
    return np.isin(kb.numbers("names", "language"), codes)


class Query(Protocol):
    """A mention to be linked: the texts to look up, and their context."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts to look up; several for a composite mention."""

    @property
    def document(self) -> str:
        """Id of the document; one document is never on both sides of a training split."""

    @property
    def context(self) -> str:
        """The whole text of the document; empty if unknown."""

    @property
    def start(self) -> int | None:
        """Start offset of the mention in ``context``."""

    @property
    def end(self) -> int | None:
        """End offset of the mention in ``context``."""


class Context(NamedTuple):
    """The text around a mention and its offsets there; empty if unknown."""

    text: str = ""
    """Text around the mention."""
    start: int = 0
    """Character offset of the mention's first character in ``text``."""
    end: int = 0
    """Character offset behind its last character."""

    def split(self) -> tuple[str, str, str]:
        """Split the text at the mention.

        Returns:
            The text before the mention, the mention, and the text after it.

        Raises:
            ConfigError: The mention is not within the text.
        """
        text, start, end = self
        if not 0 <= start <= end <= len(text):
            raise ConfigError(
                f"context: expected a mention within the {len(text):,} characters of its text, "
                f"found one from {start:,} to {end:,}"
            )
        return text[:start], text[start:end], text[end:]


class NameHits(NamedTuple):
    """The nearest names of each query, best first; equal scores by lower row first."""

    rows: Rows  # (queries, k): rows of the store's table of names, -1 where there are fewer
    """Rows of the names in the knowledge base, (queries, k), padded with -1."""
    scores: Scores  # (queries, k): -inf where there are fewer
    """Score of each name, higher is better."""


class Generator(Protocol):
    """A candidate generator: finds the nearest names of a store for a text."""

    name: str

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        """Find the k nearest names of each text.

        Args:
            texts: Texts to search for.
            k: Number of names of each.
        """

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        """Score the given names for each text, as a search would: (texts, names).

        Args:
            texts: Texts.
            rows: Rows of names for each text; -1, and a name that is not in the generator's index,
                score -inf.
        """


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a concept is a candidate: the generator, the name it found, its rank (from 1)."""

    generator: str
    """Search that found the name, as ``lexical``."""
    name: str
    """The name that was found."""
    rank: int
    """Rank of the name in that search."""
    score: float
    """Score of the name in that search; its range depends on the search."""

    def to_json(self) -> dict[str, Any]:
        """Return the evidence as plain values."""
        return {
            "generator": self.generator,
            "name": self.name,
            "rank": self.rank,
            "score": round(self.score, _DECIMALS),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Candidate(Shown):
    """A concept that a mention may refer to."""

    concept: str
    """Id of the concept."""
    concept_name: str
    """Preferred name of the concept."""
    name: str
    """Name by which it was found."""
    score: float
    """Score of the ranking, higher is better; its range depends on the linker."""
    probability: float | None = None
    """Probability that the concept is right; None without a calibration."""
    evidence: tuple[Evidence, ...] = ()
    """The searches that found the concept, with ranks and scores."""
    tied: tuple[str, ...] = ()
    """Ids of other concepts with the same name, of the same kind; for a first candidate."""
    types: tuple[str, ...] = ()
    """Codes of the semantic types of the concept."""
    ids: tuple[str, ...] = ()
    """All ids of the concept, where they are asked for."""

    @classmethod
    def of_evidence(cls, kb: KnowledgeBase, concept: str, evidence: Evidence) -> Candidate:
        """Return the candidate that one piece of evidence speaks for, with its name and score.

        Args:
            kb: Knowledge base of the concept.
            concept: Any own id of the concept.
            evidence: The evidence.
        """
        row = kb.row(concept)
        return cls(
            concept=kb.id_at(row),
            concept_name=kb.name_at(row),
            name=evidence.name,
            score=evidence.score,
            evidence=(evidence,),
            types=tuple(each.code for each in kb.concept_at(row).types),
        )

    def scaled(self, factor: float) -> Candidate:
        """Return the candidate with its score, and its probability, multiplied."""
        probability = None if self.probability is None else self.probability * factor
        return replace(self, score=self.score * factor, probability=probability)

    def named(self, kb: KnowledgeBase, language: str) -> Candidate:
        """Return it with the name of its concept in a language, if that is in the knowledge base.

        Args:
            kb: The knowledge base.
            language: Such as ``zh``.
        """
        row = kb.find_row(self.concept)
        return self if row is None else replace(self, concept_name=kb.name_in(row, language))

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as plain values."""
        probability = None if self.probability is None else round(self.probability, _DECIMALS)
        values = {
            "concept": self.concept,
            "concept_name": self.concept_name,
            "types": list(self.types),
            "name": self.name,
            "score": round(self.score, _DECIMALS),
            "probability": probability,
            "evidence": [item.to_json() for item in self.evidence],
            "tied": list(self.tied),
        }
        return {**values, "ids": list(self.ids)} if self.ids else values


@dataclass(frozen=True, slots=True)
class GeneratorScore:
    """Score of one search for the name of the first candidate."""

    generator: str
    weight: float
    score: float | None
    """None if the search has no score for the name."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the first candidate of a mention came first."""

    form: str
    """The text that was looked up."""
    form_from: str
    """Origin: the text, a definition in the document, a list, a composite mention."""
    defined_at: tuple[int, int] | None
    """The span of the long form in the document."""
    name_kind: str
    """Kind of the name that was found: preferred, synonym, ..."""
    match: str
    scores: tuple[GeneratorScore, ...]
    order: str
    """Reason for the order of the first candidates."""
    support: str
    """Support in the document for a short form or shared name."""
    threshold: float | None
    """The score, or probability, below which the answer is NIL."""
    limits: tuple[str, ...]
    """The types, sources and value set that answers were limited to."""

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain values."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Yield the explanation in words."""
        where = f" at {self.defined_at[0]}-{self.defined_at[1]}" if self.defined_at else ""
        yield f"looked up: {self.form} ({self.form_from}{where})"
        if self.match:
            yield f"name: {self.match}; {self.name_kind} name of the concept"
        for each in self.scores:
            score = "none" if each.score is None else f"{each.score:.3f}"
            yield f"{each.generator} search: {score}, weight {each.weight:.2f}"
        if self.order:
            yield f"first because: {self.order}"
        if self.support:
            yield f"in the document: {self.support}"
        below = "none" if self.threshold is None else f"below {self.threshold:.2f}"
        yield f"NIL: {below}"
        if self.limits:
            yield f"limited to: {', '.join(self.limits)}"


@dataclass(frozen=True, slots=True, repr=False)
class LinkedMention(Shown):
    """A mention with its candidates, best first, and the concept it is linked to, if any.

    ``form`` is the text that was looked up: the mention itself, the long form of an
    abbreviation, or one part of a composite mention.
    """

    start: int
    """Character offset of its first character."""
    end: int
    """Character offset behind its last character."""
    text: str
    """The mention as written."""
    form: str
    candidates: tuple[Candidate, ...] = ()
    """Candidates, best first, at most ``k``."""
    concept: str | None = None
    """Id of the concept; None means NIL."""
    assertion: Assertion | None = None
    """Assertion status of the mention; None if it was not computed."""
    measurements: tuple[Measurement, ...] = ()
    """Values and doses beside the mention, as the text has them."""
    explanation: Explanation | None = None
    """Why the first candidate came first, where the linker was asked to say so."""
    origin: str = ""
    """Whether the document has the mention (given), a model or the names found it."""
    part_of: str = ""
    """The longer word or term of the text that the mention is a part of; its scores are lower."""

    def shown(self) -> dict[str, Any]:
        """Return text, concept, name and status, which a prompt and a notebook show."""
        names = ("start", "end", "text", "concept", "name", "score", "status")
        return {name: getattr(self, name) for name in names}

    @property
    def answer(self) -> Candidate | None:
        """The candidate that the mention is linked to; None means NIL."""
        return self.candidates[0] if self.concept is not None and self.candidates else None

    @property
    def name(self) -> str | None:
        """Preferred name of the concept; None means NIL."""
        return None if self.answer is None else self.answer.concept_name

    @property
    def types(self) -> tuple[str, ...]:
        """Codes of the semantic types of the concept."""
        return () if self.answer is None else self.answer.types

    @property
    def score(self) -> float | None:
        """Score of the first candidate, also of one below the threshold."""
        return self.candidates[0].score if self.candidates else None

    @property
    def probability(self) -> float | None:
        """Probability of the first candidate; None without a calibration."""
        return self.candidates[0].probability if self.candidates else None

    @property
    def status(self) -> str | None:
        """Assertion status in one word, such as "absent"; None where it was not computed."""
        return None if self.assertion is None else self.assertion.status

    @property
    def axes(self) -> dict[str, str] | None:
        """Polarity, certainty, time, course and so on; None where they were not computed."""
        return None if self.assertion is None else self.assertion.axes

    @property
    def section(self) -> str | None:
        """Section of the note, empty outside one; None where it was not computed."""
        return None if self.assertion is None else self.assertion.section

    @property
    def negated(self) -> bool:
        """Whether the text says that it is absent."""
        return self.assertion is not None and self.assertion.negated

    @property
    def uncertain(self) -> bool:
        """Whether the text leaves open if it is present."""
        return self.assertion is not None and self.assertion.uncertain

    @property
    def historical(self) -> bool:
        """Whether it belongs to the past."""
        return self.assertion is not None and self.assertion.historical

    @property
    def hypothetical(self) -> bool:
        """Whether it is only something that may happen."""
        return self.assertion is not None and self.assertion.hypothetical

    @property
    def family(self) -> bool:
        """Whether it is about a member of the family."""
        return self.assertion is not None and self.assertion.family

    @property
    def other_person(self) -> bool:
        """Whether it is about another person."""
        return self.assertion is not None and self.assertion.other_person

    @property
    def conditional(self) -> bool:
        """Whether it is there under a condition only, such as exertion."""
        return self.assertion is not None and self.assertion.conditional

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """Ids of other concepts to which the name belongs as much: the choice is arbitrary."""
        return self.candidates[0].tied if self.candidates else ()

    def to_json(self) -> dict[str, Any]:
        """Return the linked mention as plain values, with its assertion where there is one."""
        values: dict[str, Any] = {
            "start": self.start,
            "end": self.end,
            "text": self.text,
            "form": self.form,
            "concept": self.concept,
            "name": self.name,
            "types": list(self.types),
            "measurements": [each._asdict() for each in self.measurements],
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }
        if self.assertion is not None:
            values |= self.assertion.to_json()
        if self.part_of:
            values["part_of"] = self.part_of
        if self.explanation is not None:
            values["explanation"] = self.explanation.to_json()
        return values


@dataclass(frozen=True, slots=True, repr=False)
class LinkedDocument(Shown):
    """A document with its linked mentions, in text order."""

    document: Document
    """The document as it was read."""
    mentions: tuple[LinkedMention, ...]
    """Linked mentions."""
    dropped: tuple[tuple[Mention, str], ...] = ()
    """Names in the text that are no finding, and why: a vaccine, a heading, a person."""

    def _repr_html_(self) -> str:
        columns = ("text", "concept", "name", "status")
        marks = [
            (
                start,
                end,
                (found[0].types or (found[0].concept,))[0] or "",
                found[0].status or "",
                "; ".join(
                    f"{each.concept or 'NIL'} {each.name or ''} {each.status or ''}"
                    for each in found
                ),
            )
            for start, end, found in stretches(self.mentions)
        ]
        rows = [[getattr(each, name) for name in columns] for each in self.mentions]
        return highlighted(self.document.text, marks) + table(rows, columns)

    def to_json(self) -> dict[str, Any]:
        """Return the linked document as plain values; offsets are character offsets in its text."""
        values: dict[str, Any] = {
            "id": self.document.id,
            "text": self.document.text,
            "mentions": [mention.to_json() for mention in self.mentions],
        }
        if self.dropped:
            values["dropped"] = [
                {"start": each.start, "end": each.end, "text": each.text, "reason": reason}
                for each, reason in self.dropped
            ]
        return values

"""Terms of a source and the concepts that a linker maps them to."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from biograft.documents import Document, Mention
from biograft.linking import Linker
from biograft.linking.candidates import Candidate, LinkedMention
from biograft.text import normalise

EXACT, AMBIGUOUS, NIL = "exact", "ambiguous", "nil"
_BATCH = 512
"""Terms that are searched together."""


@dataclass(frozen=True, slots=True)
class SourceTerm:
    """A term of a source, with its code there and the number of rows that have it."""

    text: str
    code: str = ""
    frequency: int = 1


@dataclass(frozen=True, slots=True)
class TermMapping:
    """A term and the concept it is mapped to."""

    term: SourceTerm
    concept: str | None
    """Id of the concept; None means NIL."""
    name: str | None
    """Preferred name of the concept."""
    score: float | None
    """Score of the best candidate, also where it is no answer."""
    probability: float | None
    flag: str = ""
    """``exact``: equals a name of the concept; ``ambiguous``: equals a name of several concepts;
    ``nil``: no concept."""
    others: tuple[Candidate, ...] = ()
    """Candidates that are not the answer, best first."""


def distinct_terms(terms: Iterable[SourceTerm]) -> list[SourceTerm]:
    """Merge terms with equal codes that differ in case and whitespace only; drop empty ones.

    The first spelling stays, and frequencies are added. Punctuation counts: *Rh +* is not *Rh -*.

    >>> distinct_terms([SourceTerm("Flu "), SourceTerm("flu"), SourceTerm("")])
    [SourceTerm(text='Flu', code='', frequency=2)]
    """
    found: dict[tuple[str, str], SourceTerm] = {}
    for term in terms:
        text = _one_line(term.text)
        if not text:
            continue
        key = (unicodedata.normalize("NFKC", text).casefold(), term.code)
        earlier = found.get(key)
        if earlier is None:
            found[key] = replace(term, text=text)
        else:
            found[key] = replace(earlier, frequency=earlier.frequency + term.frequency)
    return list(found.values())


def _one_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    plain = (" " if unicodedata.category(char) == "Cc" else char for char in text)
    return " ".join("".join(plain).split())


def map_terms(linker: Linker, terms: Iterable[SourceTerm | str]) -> Iterator[TermMapping]:
    """Map each distinct term to a concept, in the order of the terms.

    The linker decides what is NIL, as for ``link --terms``; a term is never split into parts.

    >>> [m.concept for m in map_terms(linker, ["hart atack", "n/a"])]  # doctest: +SKIP
    ['D009203', None]
    """
    distinct = distinct_terms(SourceTerm(t) if isinstance(t, str) else t for t in terms)
    whole = linker.with_settings(composites=False, assertions=False, mentions="given")
    documents = (
        Document(str(row), term.text, (Mention(0, len(term.text), term.text),))
        for row, term in enumerate(distinct)
    )
    for term, linked in zip(distinct, whole.pipe(documents, _BATCH), strict=True):
        yield _mapping(term, linked.mentions[0])


def _mapping(term: SourceTerm, linked: LinkedMention) -> TermMapping:
    answer = linked.answer
    if answer is None:
        flag = NIL
    elif linked.ambiguous:
        flag = AMBIGUOUS
    else:
        flag = EXACT if normalise(term.text) == normalise(answer.name) else ""
    others = linked.candidates if answer is None else linked.candidates[1:]
    return TermMapping(
        term, linked.concept, linked.name, linked.score, linked.probability, flag, others
    )

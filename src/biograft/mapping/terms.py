"""Terms of a source and the concepts that a linker maps them to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from biograft.documents import Document, Mention
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.candidates import Candidate, LinkedMention
from biograft.mapping.decisions import Decision
from biograft.mapping.earlier import SEEN, Earlier, EarlierDecisions
from biograft.text import HAN_CHARACTER, fold_lines, is_invisible, normalise, one_line, term_key

EXACT, AMBIGUOUS, NIL, CONTEXT, REJECTED = "exact", "ambiguous", "nil", "context", "rejected"
NEAR = 0.02
"""Candidates whose scores differ by no more from the best are told apart by the context."""
_EQUAL = 1e-6
"""The same of a term that is a name: only names that it equals as well are told apart."""
_POOL = 10
"""Candidates that are looked at where there is a context."""
_BATCH = 512
"""Terms that are searched together."""
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class SourceTerm:
    """A term of a source, with its code there and the number of rows that have it."""

    text: str
    code: str = ""
    frequency: int = 1
    context: tuple[tuple[str, str], ...] = ()
    """Further columns that belong to the term, with their values."""

    @property
    def context_text(self) -> str:
        """The context on one line, such as ``unit: mg/dL; department: urology``."""
        return "; ".join(f"{column}: {value}" for column, value in self.context if value)


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
    ``context``: the context chose among candidates that are (nearly) equal; ``nil``: no concept;
    ``rejected``: the best concept was rejected before. With earlier decisions also ``seen`` and
    what changed since (:mod:`biograft.mapping.earlier`)."""
    others: tuple[Candidate, ...] = ()
    """Candidates that are not the answer, best first."""
    decision: Decision | None = None
    """Earlier decision, if the flag refers to one."""


def distinct_terms(terms: Iterable[SourceTerm]) -> list[SourceTerm]:
    """Merge terms with equal codes and contexts that differ in case and whitespace only.

    Empty ones are dropped, the first spelling stays, and frequencies are added. Punctuation counts:
    *Rh +* is not *Rh -*.

    >>> distinct_terms([SourceTerm("Flu "), SourceTerm("flu"), SourceTerm("")])
    [SourceTerm(text='Flu', code='', frequency=2, context=())]
    """
    found: dict[tuple[object, ...], SourceTerm] = {}
    for term in terms:
        text = one_line(term.text)
        if is_invisible(text):
            continue
        context = tuple((fold_lines(column), fold_lines(value)) for column, value in term.context)
        term = replace(term, text=text, code=fold_lines(term.code), context=context)  # noqa: PLW2901
        key = (term_key(text), term.code, term.context)
        earlier = found.get(key)
        if earlier is None:
            found[key] = term
        else:
            found[key] = replace(earlier, frequency=earlier.frequency + term.frequency)
    return list(found.values())


def map_terms(
    linker: Linker,
    terms: Iterable[SourceTerm | str],
    earlier: EarlierDecisions | None = None,
) -> Iterator[TermMapping]:
    """Map each distinct term to a concept, in the order of the terms.

    The linker decides what is NIL, as for ``link --terms``; a term is never split into parts. What
    was decided ``earlier`` is not asked again, unless the knowledge base has changed since.

    >>> [m.concept for m in map_terms(linker, ["hart atack", "n/a"])]  # doctest: +SKIP
    ['D009203', None]
    """
    distinct = distinct_terms(SourceTerm(t) if isinstance(t, str) else t for t in terms)
    known = [earlier.of(t.text, t.code, t.context_text) if earlier else Earlier() for t in distinct]
    k = max(linker.config.k, _POOL) if any(t.context for t in distinct) else linker.config.k
    whole = linker.with_settings(composites=False, assertions=False, mentions="given", k=k)
    documents = (
        Document(str(row), term.text, (Mention(0, len(term.text), term.text),))
        for row, (term, before) in enumerate(zip(distinct, known, strict=True))
        if before.flag != SEEN
    )
    linked = whole.pipe(documents, _BATCH)
    contexts = ContextHints(linker.kb)
    for term, before in zip(distinct, known, strict=True):
        if before.flag == SEEN:
            yield _seen(term, before)
            continue
        mention = next(linked).mentions[0]
        if before.flag:
            yield _changed(term, before, mention.candidates)
        else:
            yield _without_rejected(_mapping(term, mention, contexts), before.rejected)


def _mapping(term: SourceTerm, linked: LinkedMention, contexts: ContextHints) -> TermMapping:
    answer, candidates = linked.answer, linked.candidates
    if answer is None:
        return _mapped(term, None, candidates, NIL)
    if ordered := contexts.order(term, candidates):
        return _mapped(term, ordered[0], ordered[1:], CONTEXT)
    if linked.ambiguous:
        flag = AMBIGUOUS
    else:
        flag = EXACT if normalise(term.text) == normalise(answer.name) else ""
    return _mapped(term, answer, candidates[1:], flag)


def _mapped(
    term: SourceTerm, answer: Candidate | None, others: Sequence[Candidate], flag: str
) -> TermMapping:
    best = next(iter(others), None) if answer is None else answer
    return TermMapping(
        term,
        None if answer is None else answer.concept,
        None if answer is None else answer.concept_name,
        None if best is None else best.score,
        None if best is None else best.probability,
        flag,
        tuple(others),
    )


def _seen(term: SourceTerm, before: Earlier) -> TermMapping:
    """Apply a decision that stands."""
    probability = None if before.decision is None else before.decision.probability
    concept, name = before.concept or None, before.name or None
    return TermMapping(term, concept, name, None, probability, SEEN, decision=before.decision)


def _changed(term: SourceTerm, before: Earlier, candidates: Sequence[Candidate]) -> TermMapping:
    """Say what has changed since a decision: what takes its place, then what is found anew."""
    known = {before.concept, *(candidate.concept for candidate in before.candidates)}
    others = (*before.candidates, *(c for c in candidates if c.concept not in known))
    concept, name = before.concept or None, before.name or None
    return TermMapping(term, concept, name, None, None, before.flag, others, before.decision)


def _without_rejected(mapping: TermMapping, rejected: frozenset[str]) -> TermMapping:
    """Leave out the concepts that were rejected for the term."""
    others = tuple(c for c in mapping.others if c.concept not in rejected)
    if mapping.concept is not None and mapping.concept in rejected:
        return _mapped(mapping.term, None, others, REJECTED)
    return replace(mapping, others=others) if rejected else mapping


class ContextHints:
    """Orders candidates that are equally good by the words that they share with the context."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._words = lru_cache(1 << 14)(self._read)

    def order(self, term: SourceTerm, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the candidates in another order, or nothing if the context decides nothing.

        Only those near the best change places, and only if one of them has more words of the
        context, which are not in the term, among its names and types than any other.
        """
        words = _words(" ".join(value for _, value in term.context)) - _words(term.text)
        is_name = bool(candidates) and normalise(candidates[0].name) == normalise(term.text)
        margin = _EQUAL if is_name else NEAR
        near = [c for c in candidates if candidates[0].score - c.score <= margin]
        if not words or len(near) < 2:
            return ()
        counts = [len(words & self._words(candidate.concept)) for candidate in near]
        if counts.count(max(counts)) > 1 or (not candidates[0].tied and counts[0] == max(counts)):
            return ()
        ranked = sorted(range(len(near)), key=lambda row: -counts[row])
        return (*(near[row] for row in ranked), *candidates[len(near) :])

    def _read(self, concept: str) -> frozenset[str]:
        row = self._kb.find_row(concept)
        if row is None:
            return frozenset()
        found = self._kb.concept_at(row)
        texts = (*(name.text for name in found.names), *(kind.label for kind in found.types))
        return frozenset().union(*map(_words, texts))


def _words(text: str) -> frozenset[str]:
    """Return the words of three letters and more, and pairs of Chinese characters."""
    words = set(_WORD.findall(normalise(text)))
    pairs = {a + b for a, b in pairwise(text) if HAN_CHARACTER.match(a)}
    return frozenset(words | {pair for pair in pairs if HAN_CHARACTER.match(pair[1])})

"""Terms of a source and the concepts that a linker maps them to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from biograft.kb import KnowledgeBase
from biograft.kb.names import HAN_CHARACTER, fold_lines, is_invisible, normalise, one_line, term_key
from biograft.linking import Linker
from biograft.linking.candidates import Candidate, LinkedMention
from biograft.linking.outputs.output import ConceptIds
from biograft.mapping.decisions import NIL, REJECTED, Decision
from biograft.text.documents import Document, Mention

SEEN = "seen"
CHANGES = ("retired", "replaced", "split", "merged", "renamed")
FLAGS = (SEEN, *CHANGES)
_Key = tuple[str, str, str]
"""Term without case and whitespace, code and context."""
EXACT, AMBIGUOUS, CONTEXT = "exact", "ambiguous", "context"
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
    what changed since (:mod:`biograft.mapping.terms`)."""
    others: tuple[Candidate, ...] = ()
    """Candidates that are not the answer, best first."""
    decision: Decision | None = None
    """Earlier decision, if the flag refers to one."""
    through: str = ""
    """Concepts that are not standard and led to this one (:mod:`biograft.mapping.standard`)."""
    mapping_type: str = ""
    """OMOP's relationship to the concept: *Maps to*, or *Maps to value*."""


def distinct_terms(terms: Iterable[SourceTerm]) -> list[SourceTerm]:
    """Merge terms with equal codes and contexts that differ in case and whitespace only.

    Empty ones are dropped, the first spelling stays, and frequencies are added. Punctuation counts:
    *Rh +* is not *Rh -*.

    Args:
        terms: Terms, such as those of all rows of a table.

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


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier decision about a term, and whether it still holds."""

    decision: Decision | None = None
    flag: str = ""
    """``seen``, or what changed; empty if nothing was decided."""
    concept: str = ""
    """Id in the store now; empty: none."""
    name: str = ""
    candidates: tuple[Candidate, ...] = ()
    """Concepts that may take the place of a retired one."""
    rejected: frozenset[str] = frozenset()
    """Ids of concepts that the term does not mean."""


class EarlierDecisions:
    """Earlier decisions by term, checked against the knowledge base; the latest on a term counts.

    A decision stands (``seen``) as long as the store has its concept under the same name. Otherwise
    it is not applied, and its flag says what changed:

    ========  ======================================================================
    retired   no concept has the id any more, and none takes its place
    replaced  the id is retired, and another concept takes its place
    split     several concepts take its place
    merged    the id belongs to a concept with another id of the same vocabulary
    renamed   the concept has another preferred name
    ========  ======================================================================

    Args:
        decisions: Decisions; proposals among them are only counted.
        kb: Knowledge base.
        ids: Preferred vocabularies of its ids.

    >>> EarlierDecisions(read_decisions("lab.sssom.tsv"), kb).of("hart atack")  # doctest: +SKIP
    """

    def __init__(
        self, decisions: Iterable[Decision], kb: KnowledgeBase, ids: ConceptIds | None = None
    ) -> None:
        self._kb, self._ids = kb, ids or ConceptIds(kb)
        self.n_decided = self.n_proposed = 0
        self._decided: dict[_Key, Decision] = {}
        self._rejected: dict[_Key, set[str]] = defaultdict(set)
        self._by_text: dict[str, set[_Key]] = defaultdict(set)
        self._by_code: dict[str, set[_Key]] = defaultdict(set)
        self._used: set[_Key] = set()
        self._checked: dict[Decision, Earlier] = {}
        for decision in decisions:
            if not decision.is_decided:
                self.n_proposed += 1
                continue
            self.n_decided += 1
            key = (term_key(decision.term), decision.code, decision.context)
            if decision.verdict == REJECTED:
                self._rejected[key] |= {self._kb.id_at(row) for row in self._rows(decision.concept)}
            else:
                known = self._decided.get(key, decision)
                if decision.time >= known.time or not decision.time:
                    self._decided[key] = decision
            self._by_text[key[0]].add(key)
            if decision.code and not key[0]:
                self._by_code[decision.code].add(key)

    @property
    def n_unused(self) -> int:
        """Number of terms with a decision that no term asked for so far had."""
        return len((self._decided.keys() | self._rejected.keys()) - self._used)

    def of(self, text: str, code: str = "", context: str = "") -> Earlier:
        """Return what was decided about a term.

        A decision with another code or context does not count; one without, for a term that has
        them, and the other way round, does if all decisions on that text agree.

        Args:
            text: The term.
            code: Its code in the source.
            context: Its further columns, as :attr:`SourceTerm.context_text` has them.
        """
        keys = self._keys(term_key(text), code, context)
        self._used |= keys
        rejected = frozenset().union(*(self._rejected.get(key, ()) for key in keys))
        decided = (self._decided.get(key) for key in sorted(keys))  # the same one in every run
        answers = {decision.concept: decision for decision in decided if decision}
        if len(answers) != 1:
            return Earlier(rejected=rejected)
        (decision,) = answers.values()
        if decision not in self._checked:
            self._checked[decision] = self._check(decision)
        return self._checked[decision]

    def _keys(self, text: str, code: str, context: str) -> set[_Key]:
        exact = (text, code, context)
        known = self._by_text.get(text, set())
        if exact in known:
            return {exact}
        if code in self._by_code:
            return self._by_code[code]
        return {
            key
            for key in known
            if (not code or not key[1] or code == key[1])
            and (not context or not key[2] or context == key[2])
        }

    def _check(self, decision: Decision) -> Earlier:
        """Compare a decision with the store."""
        if decision.verdict == NIL:
            return Earlier(decision, SEEN)
        kb, vocabulary = self._kb, self._ids.vocabulary
        ids = [kb.id_at(row) for row in self._rows(decision.concept)]
        flag = SEEN
        if not ids:
            successor = kb.replacement(decision.concept)
            ids = list(successor.replaced_by) if successor else []
            flag = "replaced" if len(ids) == 1 else "split" if ids else "retired"
            if successor and not ids:
                ids = list(successor.consider)
        else:
            row = kb.find_row(decision.concept)
            primary = ids[0] if row is None else kb.id_at(row)
            if primary != decision.concept and vocabulary(primary) == vocabulary(decision.concept):
                flag = "merged" if len(ids) == 1 else "split"
            if flag != "split":
                ids = [primary]
        names = [kb.name_at(kb.row(identifier)) for identifier in ids]
        if flag in ("split", "retired"):
            found = zip(ids, names, strict=True)
            candidates = tuple(Candidate(concept, name, name, 0.0) for concept, name in found)
            return Earlier(decision, flag, candidates=candidates)
        if flag == SEEN and decision.name and normalise(names[0]) != normalise(decision.name):
            flag = "renamed"
        return Earlier(decision, flag, ids[0], names[0])

    def _rows(self, concept: str) -> tuple[int, ...]:
        """Return the rows of the concepts with an id, or of the one that refers to it.

        ``--prefer`` gives ids that may be cross-references.
        """
        if rows := self._kb.rows_of([concept]):
            return rows
        found = [each.id for each in self._kb.by_xref(concept)]
        return tuple(map(self._kb.row, found)) if len(found) == 1 else ()


def map_terms(
    linker: Linker,
    terms: Iterable[SourceTerm | str],
    earlier: EarlierDecisions | None = None,
) -> Iterator[TermMapping]:
    """Map each distinct term to a concept, in the order of the terms.

    The linker decides what is NIL, as for ``link --terms``; a term is never split into parts. What
    was decided ``earlier`` is not asked again, unless the knowledge base has changed since.

    Args:
        linker: Linker of the knowledge base.
        terms: Terms, or their texts.
        earlier: Earlier decisions.

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
        decision = before.decision
        candidates: Sequence[Candidate] = ()
        if before.flag != SEEN:
            mention = next(linked).mentions[0]
            if not before.flag:
                yield _mapping(term, mention, contexts, before.rejected)
                continue
            candidates = mention.candidates
        # what takes the place of the decided concept, then what is found anew
        told = {before.concept, *(candidate.concept for candidate in before.candidates)}
        others = (*before.candidates, *(c for c in candidates if c.concept not in told))
        probability = decision.probability if decision and before.flag == SEEN else None
        concept, name = before.concept or None, before.name or None
        yield TermMapping(term, concept, name, None, probability, before.flag, others, decision)


def _mapping(
    term: SourceTerm, linked: LinkedMention, contexts: ContextHints, rejected: frozenset[str]
) -> TermMapping:
    """Map a term that was not decided, without the concepts that were rejected for it."""
    answer, others, flag = linked.answer, linked.candidates, NIL
    best = answer or next(iter(others), None)
    if answer is not None:
        if ordered := contexts.order(term, others):
            best, others, flag = ordered[0], ordered[1:], CONTEXT
        else:
            is_name = normalise(term.text) == normalise(answer.name)
            others, flag = others[1:], AMBIGUOUS if linked.ambiguous else EXACT if is_name else ""
        answer = best
    others = tuple(candidate for candidate in others if candidate.concept not in rejected)
    if answer is not None and answer.concept in rejected:
        answer, best, flag = None, next(iter(others), None), REJECTED
    return TermMapping(
        term,
        answer.concept if answer else None,
        answer.concept_name if answer else None,
        best.score if best else None,
        best.probability if best else None,
        flag,
        tuple(others),
    )


class ContextHints:
    """Orders candidates that are equally good by the words that they share with the context."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self._words = lru_cache(1 << 14)(self._read)

    def order(self, term: SourceTerm, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the candidates in another order, or nothing if the context decides nothing.

        Only those near the best change places, and only if one of them has more words of the
        context, which are not in the term, among its names and types than any other.

        Args:
            term: A term with the columns beside it.
            candidates: Its candidates, best first.
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

"""Terms of a source and the concepts that a linker maps them to.

A term that is a name is looked up as it is. Any other is read first
(:mod:`biograft.mapping.term_parts`): without codes, values, sides and remarks, and part by part
where it lists several concepts. Where no name equals what is looked up, the names inside it are
read as running text; they answer if what they leave of the term is plain, or if the search has no
good answer. A candidate that differs in polarity, site, side, number or type is scored down.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from biograft.display import Shown
from biograft.kb import KnowledgeBase
from biograft.kb.names import HAN_CHARACTER, fold_lines, is_invisible, normalise, one_line, term_key
from biograft.linking import Linker
from biograft.linking.candidates import Candidate, Evidence, LinkedDocument, LinkedMention
from biograft.linking.lexicon import AS_WORD, is_listed_word, is_short
from biograft.linking.normalisation import Steps
from biograft.linking.outputs.output import ConceptIds
from biograft.linking.reviewed import SOURCE
from biograft.mapping.decisions import NIL, REJECTED, Decision
from biograft.mapping.term_parts import (
    TermParts,
    denial,
    difference,
    is_list,
    is_plain,
    read_term,
    sides,
)
from biograft.text.documents import Document, Mention

SEEN = "seen"
CHANGES = ("retired", "replaced", "split", "merged", "renamed")
FLAGS = (SEEN, *CHANGES)
_Key = tuple[str, str, str]
"""Term without case and whitespace, code and context."""
EXACT, AMBIGUOUS, CONTEXT = "exact", "ambiguous", "context"
PARTIAL, SHORT, TRANSLATED, WORDING = "part", "short", "translated", "wording"
NEAR = 0.02
"""Candidates whose scores differ by no more from the best are told apart by the context."""
_EQUAL = 1e-6
"""The same of a term that is a name: only names that it equals as well are told apart."""
_POOL = 10
"""Candidates that are looked at where there is a context."""
_BATCH = 512
"""Terms that are searched together."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_SPELLING = Steps.parse("unicode,simplified,chinese,greek,possessive,case,roman,british,plural")
"""Normalisation that two spellings of a name share; it keeps signs: *Rh +* is not *Rh -*."""
_COVERED = 0.98
"""Factor of the score of a name that leaves only plain words of a term."""
_INSIDE = 0.75
"""Names inside a term answer where the search scores lower."""
_SHARE, _SHARE_OF_NIL, _GOOD = 0.5, 0.3, 0.6
"""Least fraction of a text that a name inside has, to take the place of an answer of the search
with a score of at least ``_GOOD``, or of a lower one."""
_READ, _LIKE = 0.97, 0.85
"""Names inside a text are read where the search scores lower; the second for a name of as many
words."""
PART = "name inside the term"
"""Generator in the evidence of a name inside a term."""
STATUSES = ("present", "possible", "historical")
"""Statuses with which a name inside a term may answer it."""
_SPLIT = 0.1
"""Least gain in score over the whole term, for each further part."""
_VOTE = 0.2
"""Weight of the concepts of similar reviewed terms, for the parts of a term."""
_POOL_OF_DIFFERENT = 3
"""Candidates that are compared with the text."""
_DIFFERENT = 0.5
"""Factor of the score of candidates that differ from the term."""


@dataclass(frozen=True, slots=True)
class SourceTerm:
    """A term of a source, with its code there and the number of rows that have it."""

    text: str
    """The term as its source has it."""
    code: str = ""
    """Its code in the source; empty if it has none."""
    frequency: int = 1
    """Number of rows with the term."""
    context: tuple[tuple[str, str], ...] = ()
    """Further columns that belong to the term, with their values."""

    @property
    def context_text(self) -> str:
        """The context on one line, such as ``unit: mg/dL; department: urology``."""
        return "; ".join(f"{column}: {value}" for column, value in self.context if value)


@dataclass(frozen=True, slots=True, repr=False)
class TermMapping(Shown):
    """A term and the concept it is mapped to."""

    term: SourceTerm
    """The term of the source."""
    concept: str | None
    """Id of the concept; None means NIL."""
    name: str | None
    """Preferred name of the concept."""
    score: float | None
    """Score of the best candidate, also where it is no answer."""
    probability: float | None
    """Probability that the concept is right; None without a calibration."""
    flag: str = ""
    """``exact``: equals a name of the concept, in any spelling; ``short``: equals a short form of
    it; ``wording``: the clinical lexicon lists it; ``part``: a part of the term equals one;
    ``translated``: equals a name that only a translation gives; ``ambiguous``: equals a name of
    several concepts; ``context``: the context chose among candidates that are (nearly) equal;
    ``nil``: no concept;
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
    part: str = ""
    """The part of the term that the concept is of; empty: the whole."""
    reason: str = ""
    """Why the term has no concept, or in what its best candidate differs from it."""

    def named(self, kb: KnowledgeBase, language: str) -> TermMapping:
        """Return it with the names of its concepts in a language.

        Args:
            kb: The knowledge base.
            language: Such as ``zh``.
        """
        row = None if self.concept is None else kb.find_row(self.concept)
        name = self.name if row is None else kb.name_in(row, language)
        others = tuple(each.named(kb, language) for each in self.others)
        return replace(self, name=name, others=others)


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
        code, frequency = fold_lines(term.code), term.frequency
        key = (term_key(text), code, context)
        if earlier := found.get(key):
            text, frequency = earlier.text, earlier.frequency + frequency
        found[key] = SourceTerm(text, code, frequency, context)
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
    more: tuple[Earlier, ...] = ()
    """Decisions about further concepts of the term."""


class EarlierDecisions:
    """Earlier decisions by term, checked against the knowledge base; the latest on a term counts.

    Several concepts of a term stand together if they were decided at one time, or as a part of it
    or a further concept (``biograft review target``).

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
        self._decided: dict[_Key, list[Decision]] = defaultdict(list)
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
                self._add(self._decided[key], decision)
            self._by_text[key[0]].add(key)
            if decision.code and not key[0]:
                self._by_code[decision.code].add(key)

    @staticmethod
    def _add(stand: list[Decision], new: Decision) -> None:
        """Add a decision to those that stand; of two that exclude each other the later one does.

        Two concepts are meant together if they were decided at the same time, or one of them of a
        part; two parts are decided apart.
        """
        for old in tuple(stand):
            of_two, both = old.part != new.part, old.concept and new.concept
            is_apart = of_two and old.part and new.part
            is_more = both and old.concept != new.concept and (of_two or old.time == new.time)
            if not (is_apart or is_more):
                if new.time < old.time and new.time:
                    return
                stand.remove(old)
        stand.append(new)

    @property
    def n_unused(self) -> int:
        """Number of decisions that no term so far has used."""
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
        answers = {frozenset(d.concept for d in each): each for each in decided if each}
        if len(answers) != 1:
            return Earlier(rejected=rejected)
        (decisions,) = answers.values()
        for decision in decisions:
            if decision not in self._checked:
                self._checked[decision] = self._check(decision)
        first, *more = (self._checked[decision] for decision in decisions)
        return replace(first, more=tuple(more)) if more else first

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
        if flag == SEEN and decision.name and not self._is_first(decision.name, ids[0]):
            flag = "renamed"
        return Earlier(decision, flag, ids[0], names[0])

    def _is_first(self, name: str, concept: str) -> bool:
        """Whether a name is the first one that a concept has in a language."""
        firsts: dict[str, str] = {}
        for each in self._kb.names_at(self._kb.row(concept)):
            firsts.setdefault(each.language, normalise(each.text))
        return normalise(name) in firsts.values()

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

    A term that lists several concepts has a mapping for each, one after the other. The linker
    decides what is NIL, as for ``link --terms``. What was decided ``earlier`` is not asked again,
    unless the knowledge base has changed since.

    Args:
        linker: Linker of the knowledge base.
        terms: Terms, or their texts.
        earlier: Earlier decisions.

    >>> [m.concept for m in map_terms(linker, ["hart atack", "n/a"])]  # doctest: +SKIP
    ['D009203', None]
    """
    distinct = distinct_terms(SourceTerm(t) if isinstance(t, str) else t for t in terms)
    reader = _TermReader(linker, has_context=any(term.context for term in distinct))
    for start in range(0, len(distinct), _BATCH):
        batch = distinct[start : start + _BATCH]
        known = [
            earlier.of(term.text, term.code, term.context_text) if earlier else Earlier()
            for term in batch
        ]
        asked = [t for t, each in zip(batch, known, strict=True) if not _stands(each)]
        found = iter(reader.read(asked))
        for term, first in zip(batch, known, strict=True):
            answers = [] if _stands(first) else next(found)
            if not first.flag:
                for answer in answers:
                    yield reader.mapping(term, answer, first.rejected)
                continue
            for before in (first, *first.more):
                new = [c for answer in answers[:1] for c in answer.candidates]
                yield _decided_before(term, before, [] if before.flag == SEEN else new)


def _stands(before: Earlier) -> bool:
    return all(each.flag == SEEN for each in (before, *before.more))


def _decided_before(term: SourceTerm, before: Earlier, found: Sequence[Candidate]) -> TermMapping:
    """Map a term as it was decided; what takes the place of the concept comes before the found."""
    told = {before.concept, *(candidate.concept for candidate in before.candidates)}
    others = (*before.candidates, *(c for c in found if c.concept not in told))
    decision = before.decision
    return TermMapping(
        term,
        before.concept or None,
        before.name or None,
        None,
        decision.probability if decision and before.flag == SEEN else None,
        before.flag,
        others,
        decision,
        part=decision.part if decision else "",
    )


class _Answer(NamedTuple):
    """Candidates of a part of a term, best first, and whether the first is the answer."""

    form: str
    candidates: tuple[Candidate, ...]
    is_answer: bool
    reason: str = ""


class _TermReader:
    """Finds the concepts of terms.

    Args:
        linker: Linker of the knowledge base.
        has_context: Whether a term has further columns.
    """

    def __init__(self, linker: Linker, *, has_context: bool) -> None:
        self._linker, self._kb = linker, linker.kb
        self._reviewed = reviewed = linker.reviewed
        self._learned = reviewed if reviewed and reviewed.weight and not linker.ranker else None
        is_pool = has_context or self._learned is not None
        k = max(linker.config.k, _POOL) if is_pool else linker.config.k
        self._whole = linker.for_terms(
            composites=False, assertions=False, mentions="given", k=max(k, _POOL_OF_DIFFERENT)
        )
        self._k = k
        self._contexts = ContextHints(linker.kb)
        self._decided = linker.reviewed or ()

    def _is_name(self, text: str) -> bool:
        return text in self._decided or self._whole.is_name(text)

    def _names(self, concept: str) -> Iterator[str]:
        """Yield all names of a concept, which is read when the first is asked for."""
        yield from self._kb.name_texts_at(self._kb.row(concept))

    def read(self, terms: Sequence[SourceTerm]) -> Iterator[list[_Answer]]:
        """Yield the answers of each term: one, or several where it lists several concepts.

        Args:
            terms: The terms of a batch.
        """
        parts = [
            read_term(term.text, self._is_name, every_mark=self._learned is not None)
            for term in terms
        ]
        keys = list(dict.fromkeys(key for each in parts for key in _looked_up(each)))
        forms = list(dict.fromkeys(form for form, _ in keys))
        mentions = dict(zip(forms, self._link(forms), strict=True))
        wholes = {whole for _, whole in keys if whole}
        votes = {each: self._learned.votes(each) for each in wholes} if self._learned else {}
        linked = {
            (form, whole): self._compared(mentions[form], votes.get(whole, {}))
            for form, whole in keys
        }
        listed = {form for each in parts for form in each.forms}
        doubtful = list(
            dict.fromkeys(
                form
                for (form, _), own in linked.items()
                if form in listed and self._is_doubtful(own)
            )
        )
        texts = iter(self._linker.reader.pipe(doubtful, _BATCH)) if doubtful else iter(())
        inside = {form: next(texts) for form in doubtful}
        for term, each in zip(terms, parts, strict=True):
            own = [linked[key] for key in _looked_up(each)]
            if each.no_diagnosis:
                yield [own[0]._replace(is_answer=False, reason=each.no_diagnosis)]
                continue
            answers = []
            for form, found in zip(each.forms, own, strict=False):
                read = inside.get(form)
                answers += [found] if read is None else self._inside(found, read)
            if len(each.forms) > 1 and _is_one(own[-1], answers):
                answers = [own[-1]._replace(form=term.text)]
            yield _distinct(self._kb, [each for found in answers for each in self._combined(found)])

    def _combined(self, found: _Answer) -> list[_Answer]:
        """Return an answer for each concept of a reviewed name that means several."""
        concepts: Sequence[Candidate] = ()
        if self._reviewed is not None and found.is_answer:
            concepts = self._reviewed.combined(found.candidates[0])
        concepts = [each for each in concepts if self._linker.is_wanted(each.concept)]
        return [
            found._replace(
                candidates=(each, *(c for c in found.candidates if c.concept != each.concept))
            )
            for each in concepts
        ] or [found]

    def _link(self, forms: Sequence[str]) -> Iterator[LinkedMention]:
        documents = (Document(form, form, (Mention(0, len(form), form),)) for form in forms)
        return (linked.mentions[0] for linked in self._whole.pipe(documents, _BATCH))

    def _is_doubtful(self, answer: _Answer) -> bool:
        """Return whether to read the names inside a text: no name equals it, by any ranker."""
        first = next(iter(answer.candidates), None)
        if self._linker.ranker is not None or answer.form in self._decided:
            return False
        if first is None or is_short(answer.form):
            return True
        if _is_reviewed(first):
            return False
        if len(first.name.split()) < len(answer.form.split()):  # something may stand beside it
            return first.score < _READ
        return first.score < _LIKE

    def _compared(self, linked: LinkedMention, votes: Mapping[str, float]) -> _Answer:
        """Score candidates down that differ from a text; what differs is no answer.

        Args:
            linked: The text with its candidates.
            votes: Shares of concepts in terms like the one that the text is a part of.
        """
        candidates, reason = list(linked.candidates), ""
        is_answer = linked.concept is not None
        if votes and linked.text not in self._decided:
            candidates.sort(key=lambda each: -each.score - _VOTE * votes.get(each.concept, 0.0))
            is_answer = bool(candidates) and not self._whole.nil.is_nil(linked.form, candidates[0])
        if linked.text in self._decided:
            return _Answer(linked.text, tuple(candidates[: self._k]), is_answer)
        for _ in linked.candidates:
            first = candidates[0]
            if _is_reviewed(first):
                break
            why = difference(linked.form, first.name, self._names(first.concept))
            if not why:
                break
            reason = reason or f"{first.concept_name}: {why}"
            candidates[0] = first.scaled(_DIFFERENT)
            candidates.sort(key=lambda each: -each.score)
            if candidates[0].concept == first.concept:
                is_answer = False
                break
        if reason and is_answer:
            is_answer = not self._whole.nil.is_nil(linked.form, candidates[0])
        return _Answer(linked.text, tuple(candidates[: self._k]), is_answer, reason)

    def _inside(self, own: _Answer, read: LinkedDocument) -> list[_Answer]:
        """Return the answer of a text, or those of the names inside it where these say more."""
        found = [each for each in read.mentions if each.concept and each.candidates]
        usable = [each for each in found if each.status in STATUSES]
        if found and not usable:
            return [own._replace(is_answer=False, reason=f"{found[0].text}: {found[0].status}")]
        if not usable:
            return [own]
        text = read.document.text
        ends = [0, *(each.end for each in usable)]
        starts = [*(each.start for each in usable), len(text)]
        gaps = [text[a:b] for a, b in zip(ends, starts, strict=True)]
        covered = all(map(is_plain, gaps))
        if len(usable) > 1 and covered and is_list(gaps[1:-1]):
            return [self._named(own, each, _COVERED) for each in usable]
        first = own.candidates[0].score if own.candidates else 0.0
        longest = max(usable, key=lambda each: each.end - each.start)
        concept = own.candidates[0].concept if own.is_answer else None
        if covered and len(usable) == 1:
            return [self._named(own, longest, 1.0 if longest.text == text else _COVERED)]
        length = (longest.end - longest.start) / len(text)
        is_long = length >= (_SHARE if own.is_answer and first >= _GOOD else _SHARE_OF_NIL)
        if is_long and first < _INSIDE and replaces(self._kb, longest.concept, concept):
            return [self._named(own, longest, _INSIDE)]
        return [own]

    def _named(self, own: _Answer, name: LinkedMention, factor: float) -> _Answer:
        """Return the answer of a name inside a text."""
        first = name.candidates[0]
        evidence = (*first.evidence, Evidence(PART, name.text, 1, first.score))
        written = f"{own.form[: name.start]}{name.form}{own.form[name.end :]}"
        why = difference(written, first.name, self._names(first.concept))
        first = replace(first.scaled(_DIFFERENT if why else factor), evidence=evidence)
        if self._linker.calibration is not None:
            probability = float(self._linker.calibration(first.score))
            first = replace(first, probability=probability)
        others = tuple(each for each in own.candidates if each.concept != first.concept)
        if why:
            candidates = sorted((first, *others), key=lambda each: -each.score)
            is_answer = own.is_answer and candidates[0].concept != first.concept
            reason = f"{first.concept_name}: {why}"
            return own._replace(candidates=tuple(candidates), is_answer=is_answer, reason=reason)
        confidence = first.score if first.probability is None else first.probability
        is_answer = confidence >= (self._linker.config.threshold or 0.0)
        return _Answer(name.text, (first, *others), is_answer)

    def mapping(
        self, term: SourceTerm, answer: _Answer, rejected: frozenset[str] = frozenset()
    ) -> TermMapping:
        """Map a term that was not decided, without the concepts that were rejected for it.

        Args:
            term: The term.
            answer: Its answer, or that of one of its parts.
            rejected: Ids of concepts that the term does not mean.
        """
        candidates, flag, reason = answer.candidates, NIL, answer.reason
        part = "" if term_key(answer.form) == term_key(term.text) else answer.form
        best = next(iter(candidates), None)
        if best and (why := self._contradiction(term.text, answer.form, part, best)):
            best = best.scaled(_DIFFERENT)
            candidates = (best, *candidates[1:])
            answer, reason = answer._replace(is_answer=False), f"{best.concept_name}: {why}"
        if best is not None and answer.is_answer:
            if ordered := self._contexts.order(term, candidates):
                candidates, flag = ordered, CONTEXT
            else:
                flag = _flag(self._kb, best, answer.form, part)
            best = candidates[0]
        is_answer = best is not None and answer.is_answer
        if best is not None and is_answer and best.concept in rejected:
            is_answer, flag = False, REJECTED
        left = tuple(each for each in candidates if each.concept not in rejected)
        shown = best if is_answer else next(iter(left), None)
        return TermMapping(
            term,
            best.concept if best and is_answer else None,
            best.concept_name if best and is_answer else None,
            shown.score if shown else None,
            shown.probability if shown else None,
            flag,
            left[1:] if is_answer else left,
            part=part,
            reason=reason,
        )

    def _contradiction(self, text: str, form: str, part: str, best: Candidate) -> str:
        """Return how a concept contradicts what was left out of a term: a side, what is absent."""
        if text in self._decided:
            return ""
        why, side = denial(text, self._names(best.concept)), sides(text) if part else ""
        if side and not why:
            why = difference(f"{form} {side}", best.name, self._names(best.concept))
        return why


def _looked_up(parts: TermParts) -> list[tuple[str, str]]:
    """Return what is looked up for a term: its parts, and the whole of several."""
    if len(parts.forms) == 1:
        return [(parts.forms[0], "")]
    return [*((form, parts.whole) for form in parts.forms), (parts.whole, "")]


def _is_one(whole: _Answer, parts: Sequence[_Answer]) -> bool:
    """Return whether the parts of a term are rather one concept, by their scores."""
    if not whole.is_answer:
        return False
    scores = [each.candidates[0].score if each.candidates else 0.0 for each in parts]
    lengths = [len(each.form) for each in parts]
    mean = sum(a * b for a, b in zip(scores, lengths, strict=True)) / sum(lengths)
    return whole.candidates[0].score >= mean - _SPLIT * (len(parts) - 1)


def replaces(kb: KnowledgeBase, part: str | None, whole: str | None) -> bool:
    """Return True if the name inside a term says something else than the term as a whole.

    Args:
        kb: The knowledge base.
        part: Concept of the name inside.
        whole: Concept of the whole; None: it has none.
    """
    return part is not None and (whole is None or not kb.is_a(whole, part))


def _is_reviewed(candidate: Candidate) -> bool:
    """Whether a candidate was found by a name that a person decided about."""
    return any(each.generator == SOURCE for each in candidate.evidence)


def _flag(kb: KnowledgeBase, best: Candidate, form: str, part: str) -> str:
    """Return how the best candidate was found."""
    if best.tied:
        return AMBIGUOUS
    if is_short(form):
        return SHORT if best.score >= _READ else ""
    names = {best.name, *(each.name for each in best.evidence if each.generator != PART)}
    if _SPELLING(normalise(form)) not in {_SPELLING(normalise(each)) for each in names}:
        return WORDING if not part and is_listed_word(form) and best.score >= AS_WORD else ""
    if part and best.score < _READ:
        return ""  # what it leaves of the term may say more
    if _is_translated(kb, best.concept, form):
        return TRANSLATED
    return PARTIAL if part else EXACT


def _is_translated(kb: KnowledgeBase, concept: str, form: str) -> bool:
    """Return whether a name is in a language in which only translations name its concept.

    A translation is a source without a name in the language of the preferred name.
    """
    names = kb.names_at(kb.row(concept))
    sources = {each.source for each in names if each.language == names[0].language}
    own = {each.language for each in names if each.source in sources}
    equal = {each.language for each in names if normalise(each.text) == normalise(form)}
    return bool(equal) and own.isdisjoint(equal)


def _distinct(kb: KnowledgeBase, answers: Sequence[_Answer]) -> list[_Answer]:
    """Leave out parts with the concept of another part, or a broader one."""
    if len(answers) == 1:
        return [*answers]
    kept: list[_Answer] = []
    concepts = [each.candidates[0].concept if each.is_answer else "" for each in answers]
    for n, (answer, concept) in enumerate(zip(answers, concepts, strict=True)):
        others = [c for m, c in enumerate(concepts) if c and m != n]
        known = [c for c in concepts[:n] if c]
        if not concept or not (
            concept in known or any(kb.is_a(c, concept) for c in others if c != concept)
        ):
            kept.append(answer)
    named = [each for each in kept if each.is_answer]
    return named or kept[:1]


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
        if not term.context:
            return ()
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

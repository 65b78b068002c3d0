"""Learning from decisions: reviewed names, rejected pairs, weights and a calibration of an index.

Nothing is trained; all of it is fitted in seconds. A weight or a calibration is applied only where
cross-validation supports it: fitted to four fifths of the terms, it must answer the others better.
What was decided about a term itself always holds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from biograft.artifacts import new_file, new_folder, sole_writer
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking import Candidate, Linker, fit_calibration
from biograft.linking.calibration import Calibration, choose_threshold
from biograft.linking.config import LinkerConfig
from biograft.linking.index import REVIEWED_NAMES, open_index
from biograft.linking.outputs.output import encoded
from biograft.linking.queries import is_name_of, label_examples
from biograft.linking.reviewed import ReviewedNames, SimilarName, TermDecisions
from biograft.linking.search_weights import fit_lexical_weight
from biograft.mapping.decisions import Decision
from biograft.text import term_key

_MIN_FITTED = 50
"""Decisions from which the weight of lexical search and a calibration are fitted."""
_MIN_IN_FOLDS = _MIN_FITTED // 2
"""Of these, as many as remain beside a fold."""
_MIN_ISOTONIC = 300
_MIN_NIL = 20
"""Terms without a concept from which the threshold of NIL is chosen."""
_GRID = (0.0, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
_FOLDS = 5
Answers = list[str | None]
_SYNONYMS = ("exact", "close")
"""Relations of a term that is a name of its concept."""


@dataclass(frozen=True, slots=True)
class LearningReport:
    """Result of learning."""

    n_approved: int
    n_rejected: int
    n_nil: int
    n_unknown: int
    """Decisions on concepts that the knowledge base does not have."""
    weight: float
    """Weight of a reviewed name relative to a name of the store; 0 where it helps no other term."""
    lexical_weight: float | None = None
    """Weight of lexical search beside dense search; None if that of the index stays."""
    threshold: float | None = None
    """Probability below which the answer is NIL; None if the score decides, as before."""
    f1_before: float = 0.0
    """F1 on the decided terms of the index as it is."""
    f1_after: float = 0.0
    """F1 of what is applied, cross-validated: each term as if it had not been decided."""

    def to_json(self) -> dict[str, object]:
        """Return the report as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Known:
    """The decisions on concepts of a store."""

    decisions: TermDecisions
    texts: dict[str, str]
    """A spelling of each term, by its key."""
    names: list[tuple[str, str]]
    n_unknown: int


def learn(kb: KnowledgeBase, index: str | Path, decisions: Iterable[Decision]) -> LearningReport:
    """Teach an index decisions; those that it was taught before are replaced.

    >>> learn(kb, "INDEX", read_decisions("labs.sssom.tsv"))  # doctest: +SKIP
    LearningReport(n_approved=480, n_rejected=31, n_nil=12, ...)
    """
    known, folder = _known(kb, decisions), Path(index)
    if not known.texts:
        raise ConfigError("decisions: there is none on a concept of this knowledge base")
    open_index(kb, folder, with_reviewed=False)  # refuse what is no index of this store
    with sole_writer(folder), new_folder(folder / REVIEWED_NAMES, overwrite=True) as work:
        reviewed = ReviewedNames.build(kb, work, known.decisions, known.names)
        report = _fit(kb, folder, reviewed, known)
        reviewed.save(work)
    return report


def forget(index: str | Path) -> None:
    """Take from an index what it was taught."""
    with sole_writer(Path(index)):
        shutil.rmtree(Path(index) / REVIEWED_NAMES, ignore_errors=True)


def _known(kb: KnowledgeBase, decisions: Iterable[Decision]) -> _Known:
    """Collect decisions by term; of contradictory ones on the same pair the latest counts."""
    approved: dict[str, dict[str, int]] = {}
    rejected: dict[str, set[str]] = {}
    nil: set[str] = set()
    texts: dict[str, str] = {}
    names: list[tuple[str, str]] = []
    n_unknown = 0
    for each in sorted((d for d in decisions if d.is_decided and d.term), key=lambda d: d.time):
        row = kb.find_row(each.concept) if each.concept else None
        if each.concept and row is None:
            n_unknown += 1
            continue
        key = term_key(each.term)
        texts.setdefault(key, each.term)
        concept = "" if row is None else kb.id_at(row)
        if each.verdict == "approved":
            counts = approved.setdefault(key, {})
            counts[concept] = counts.get(concept, 0) + each.frequency
            rejected.get(key, set()).discard(concept)
            if each.relation in _SYNONYMS:
                names.append((each.term, concept))
        elif each.verdict == "rejected":
            rejected.setdefault(key, set()).add(concept)
            approved.get(key, {}).pop(concept, None)
        else:
            nil.add(key)
    standing = {
        key: tuple(sorted(counts, key=lambda c, n=counts: -n[c]))  # type: ignore[misc]
        for key, counts in approved.items()
        if counts
    }
    pairs = [(text, c) for text, c in names if c in standing.get(term_key(text), ())]
    return _Known(
        TermDecisions(
            standing, {k: frozenset(ids) for k, ids in rejected.items() if ids}, frozenset(nil)
        ),
        texts, pairs, n_unknown,
    )  # fmt: skip


def _fit(kb: KnowledgeBase, index: Path, reviewed: ReviewedNames, known: _Known) -> LearningReport:
    """Fit weights and a calibration, in this order; keep those that answer other terms better."""
    decisions = known.decisions
    keys = [*decisions.approved, *(k for k in decisions.nil if k not in decisions.approved)]
    texts = [known.texts[key] for key in keys]
    gold = [decisions.approved.get(key, ()) for key in keys]
    search = _IndexSearch.open(kb, index)
    terms = _Terms(keys, texts, gold, search.candidates(texts), reviewed.similar(texts))
    answers = [_answer(search, terms.first(n, 0.0), texts[n]) for n in range(len(keys))]
    before = after = _f1(answers, gold)

    lexical, f1 = _lexical_weight(kb, index, terms)
    if lexical is not None and f1 > after:
        after, search = f1, _IndexSearch.open(kb, index, lexical)
        terms = replace(terms, ranked=search.candidates(texts))
        reviewed.weights = {"lexical": lexical, "dense": 1 - lexical}
    else:
        lexical = None
    weight, f1 = _name_weight(search, terms)
    reviewed.weight, after = (weight, f1) if f1 > after else (0.0, after)
    calibration, after = _calibration(search, terms, reviewed.weight, after)
    reviewed.calibration = calibration
    return LearningReport(
        n_approved=sum(map(len, decisions.approved.values())),
        n_rejected=sum(map(len, decisions.rejected.values())),
        n_nil=len(decisions.nil),
        n_unknown=known.n_unknown,
        weight=reviewed.weight,
        lexical_weight=lexical,
        threshold=None if calibration is None else calibration.threshold,
        f1_before=before,
        f1_after=after,
    )


class _IndexSearch(NamedTuple):
    """An index without what it learned before."""

    linker: Linker
    """It gives scores, and no probabilities."""
    calibration: Calibration | None
    """That of the index itself."""

    @classmethod
    def open(
        cls, kb: KnowledgeBase, index: Path, lexical_weight: float | None = None
    ) -> _IndexSearch:
        config = LinkerConfig(lexical_weight=lexical_weight)
        opened = open_index(kb, index, config, with_reviewed=False)
        return cls(Linker(kb, opened.search, names=opened.names), opened.calibration)

    def candidates(self, texts: Sequence[str]) -> list[list[Candidate]]:
        return list(self.linker.link_mentions(texts, 1)) if texts else []


@dataclass(frozen=True, slots=True)
class _Terms:
    """Decided terms with what they mean, and what search and reviewed names give for each."""

    keys: Sequence[str]
    texts: Sequence[str]
    gold: Sequence[tuple[str, ...]]
    """Concepts of each term, the best first; none where it has no concept."""
    ranked: Sequence[Sequence[Candidate]]
    similar: Sequence[Sequence[SimilarName]]

    def first(self, n: int, weight: float, held_out: Collection[str] = ()) -> Candidate | None:
        """Return the first candidate of a term that had not been decided, nor others held out."""
        found = self.ranked[n][0] if self.ranked[n] else None
        for near in self.similar[n] if weight else ():
            key = term_key(near.name)
            if key == self.keys[n] or key in held_out:
                continue
            if found is None or weight * near.score > found.score:
                return Candidate(near.concept, "", near.name, weight * near.score)
            break
        return found

    def folds(self) -> list[tuple[list[int], list[int]]]:
        """Divide terms into those to fit to and those to answer, each answered once."""
        order = np.random.default_rng(0).permutation(len(self.keys)).tolist()
        parts = [order[start::_FOLDS] for start in range(_FOLDS)]
        chosen = [frozenset(part) for part in parts]
        return [
            ([n for n in order if n not in answered], part)
            for part, answered in zip(parts, chosen, strict=True)
            if part
        ]


def _answer(
    search: _IndexSearch,
    first: Candidate | None,
    text: str,
    calibration: Calibration | None = None,
) -> str | None:
    """Return the concept that a linker answers, None for NIL."""
    calibration = calibration or search.calibration
    if first is None:
        return None
    if calibration is None or calibration.keeps_nil:
        return None if search.linker.nil.is_nil(text, first) else first.concept
    threshold = calibration.threshold or 0.0
    return first.concept if float(calibration(first.score)) >= threshold else None


def _f1(answers: Sequence[str | None], gold: Sequence[tuple[str, ...]]) -> float:
    """Return the F1 of answers, micro-averaged over terms."""
    right = sum(answer in concepts for answer, concepts in zip(answers, gold, strict=True))
    total = sum(answer is not None for answer in answers) + sum(map(bool, gold))
    return 2 * right / total if total else 0.0


def _cross_validated(
    terms: _Terms, answers_of: Callable[[list[int], list[int]], Sequence[str | None]]
) -> float:
    """Return the F1 of the answers to all terms, each by what was fitted without its fold."""
    answers: list[str | None] = [None] * len(terms.keys)
    for fitted, answered in terms.folds():
        for n, answer in zip(answered, answers_of(fitted, answered), strict=True):
            answers[n] = answer
    return _f1(answers, terms.gold)


def _lexical_weight(kb: KnowledgeBase, index: Path, terms: _Terms) -> tuple[float | None, float]:
    """Fit the weight of lexical search on terms that are no names of their concepts."""
    search = _IndexSearch.open(kb, index).linker.search
    if search is None or len(search.generators) < 2:
        return None, 0.0

    def fit(numbers: Iterable[int], least: int) -> float | None:
        pairs = [
            (terms.texts[n], terms.gold[n][0])
            for n in numbers
            if terms.gold[n] and not is_name_of(kb, terms.texts[n], terms.gold[n])
        ]
        if len(pairs) < least:
            return None
        return fit_lexical_weight(kb, search, label_examples(pairs)).lexical

    def answers_of(fitted: list[int], answered: list[int]) -> list[str | None]:
        weighted = _IndexSearch.open(kb, index, fit(fitted, _MIN_IN_FOLDS))
        texts = [terms.texts[n] for n in answered]
        return [
            _answer(weighted, found[0] if found else None, text)
            for text, found in zip(texts, weighted.candidates(texts), strict=True)
        ]

    weight = fit(range(len(terms.keys)), _MIN_FITTED)
    return weight, 0.0 if weight is None else _cross_validated(terms, answers_of)


def _name_weight(search: _IndexSearch, terms: _Terms) -> tuple[float, float]:
    """Choose the weight of reviewed names with which other terms are answered best."""

    def answers(numbers: Sequence[int], weight: float, held_out: Collection[str]) -> Answers:
        firsts = [terms.first(n, weight, held_out) for n in numbers]
        texts = [terms.texts[n] for n in numbers]
        return [_answer(search, *each) for each in zip(firsts, texts, strict=True)]

    def fit(numbers: Sequence[int], held_out: Collection[str] = ()) -> float:
        gold = [terms.gold[n] for n in numbers]
        values = [_f1(answers(numbers, weight, held_out), gold) for weight in _GRID]
        best = [weight for weight, f1 in zip(_GRID, values, strict=True) if f1 == max(values)]
        return best[len(best) // 2]

    def answers_of(fitted: list[int], answered: list[int]) -> Answers:
        held_out = frozenset(terms.keys[n] for n in answered)
        return answers(answered, fit(fitted, held_out), held_out)

    return fit(range(len(terms.keys))), _cross_validated(terms, answers_of)


def _calibration(
    search: _IndexSearch, terms: _Terms, weight: float, f1: float
) -> tuple[Calibration | None, float]:
    """Fit probabilities to the first candidates of terms without what was decided about them.

    Its NIL threshold is applied where it raises the F1, its probabilities where they are better
    than the share of right answers.
    """

    def fit(
        numbers: Iterable[int], least: int, held_out: Collection[str] = ()
    ) -> Calibration | None:
        found = [(terms.first(n, weight, held_out), terms.gold[n]) for n in numbers]
        first = [(candidate, concepts) for candidate, concepts in found if candidate]
        scores = np.array([candidate.score for candidate, _ in first])
        right = np.array([candidate.concept in concepts for candidate, concepts in first])
        if len(first) < least or right.all() or not right.any():
            return None
        calibration = fit_calibration(
            scores,
            right,
            "isotonic" if len(first) >= _MIN_ISOTONIC else "platt",
            search=search.linker.score_source,
            store=store_fingerprint(search.linker.kb),
        )
        nil = np.array([not concepts for _, concepts in first])
        if nil.sum() < _MIN_NIL:
            return replace(calibration, keeps_nil=True)
        return replace(calibration, threshold=choose_threshold(calibration(scores), right, nil))

    calibration = fit(range(len(terms.keys)), _MIN_FITTED)
    if calibration is None:
        return None, f1
    outcomes: list[tuple[float, bool]] = []

    def answers_of(fitted: list[int], answered: list[int]) -> Answers:
        held_out = frozenset(terms.keys[n] for n in answered)
        fold, answers = fit(fitted, _MIN_IN_FOLDS, held_out), []
        for n in answered:
            first = terms.first(n, weight, held_out)
            answers.append(_answer(search, first, terms.texts[n], fold))
            if first is not None and fold is not None:
                outcomes.append((float(fold(first.score)), first.concept in terms.gold[n]))
        return answers

    calibrated = _cross_validated(terms, answers_of)
    if calibrated > f1:
        return calibration, calibrated
    probabilities, right = np.array(outcomes, np.float64).reshape(-1, 2).T
    is_better = right.size > 0 and np.square(probabilities - right).mean() < right.var()
    if search.calibration is None and is_better:
        return replace(calibration, threshold=None, keeps_nil=True), f1
    return None, f1


def write_pairs(path: Path, decisions: Iterable[Decision], *, overwrite: bool = False) -> int:
    """Write approved terms as training pairs, of the gold format ``aap``; return their number.

    A line is the id of a concept, its name and the term, with tabs between.
    """
    pairs = dict.fromkeys(
        (each.concept, each.name or each.term, each.term)
        for each in decisions
        if each.verdict == "approved" and each.relation in _SYNONYMS and each.term
    )
    with new_file(path, overwrite=overwrite) as file:
        for pair in pairs:
            file.write(encoded("\t".join(pair) + "\n"))
    return len(pairs)

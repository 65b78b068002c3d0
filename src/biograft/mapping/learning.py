"""Learning from decisions: reviewed names, rejected pairs, weights and a calibration of an index.

Nothing is trained; all of it is fitted in seconds. A weight or a calibration is applied only where
cross-validation supports it: fitted to four fifths of the terms, it must answer the others better.
What was decided about a term itself always holds.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from biograft.artifacts import new_file, new_folder, sole_writer
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.kb.names import term_key
from biograft.linking import Candidate, Linker, fit_calibration
from biograft.linking.calibration import Calibration, choose_threshold
from biograft.linking.config import LinkerConfig
from biograft.linking.index import REVIEWED_NAMES, open_index
from biograft.linking.learned import LEARNED_FORMS
from biograft.linking.outputs.output import encoded
from biograft.linking.queries import is_name_of, label_examples
from biograft.linking.reviewed import ReviewedNames, SimilarName, TermDecisions
from biograft.linking.search_weights import fit_lexical_weight
from biograft.mapping.decisions import Decision

_MIN_FITTED = 50
"""Decisions from which the weight of lexical search and a calibration are fitted."""
_MIN_IN_FOLDS = _MIN_FITTED // 2
"""Of these, as many as remain beside a fold."""
_MIN_ISOTONIC = 300
_MIN_NIL = 20
"""Terms without a concept from which the threshold of NIL is chosen."""
_GRID = (0.0, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
_FOLDS = 5
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


def learn(kb: KnowledgeBase, index: str | Path, decisions: Iterable[Decision]) -> LearningReport:
    """Teach an index decisions; those that it was taught before are replaced.

    Args:
        kb: Knowledge base of the index.
        index: Folder of the index.
        decisions: Decisions; proposals among them are ignored.

    >>> learn(kb, "INDEX", read_decisions("labs.sssom.tsv"))  # doctest: +SKIP
    LearningReport(n_approved=480, n_rejected=31, n_nil=12, ...)
    """
    folder = Path(index)
    terms, texts, names, n_unknown = _collect(kb, decisions)
    if not texts:
        raise ConfigError("decisions: there is none on a concept of this knowledge base")
    open_index(kb, folder, with_reviewed=False)  # refuse what is no index of this store
    with sole_writer(folder), new_folder(folder / REVIEWED_NAMES, overwrite=True) as work:
        reviewed = ReviewedNames.build(kb, work, terms, names)
        report = _fit(kb, folder, reviewed, texts, n_unknown)
        reviewed.save(work)
    return report


def forget(index: str | Path) -> None:
    """Remove all that an index learned.

    Args:
        index: Folder of the index.
    """
    with sole_writer(Path(index)):
        for name in (REVIEWED_NAMES, LEARNED_FORMS):
            shutil.rmtree(Path(index) / name, ignore_errors=True)


def _collect(
    kb: KnowledgeBase, decisions: Iterable[Decision]
) -> tuple[TermDecisions, dict[str, str], list[tuple[str, str]], int]:
    """Collect decisions by term; of contradictory ones on the same pair the latest counts.

    Returns:
        Decisions by the key of a term, a spelling of each, pairs of a name and its concept, and the
        number of decisions on concepts that the store does not have.
    """
    approved: defaultdict[str, Counter[str]] = defaultdict(Counter)
    rejected: defaultdict[str, set[str]] = defaultdict(set)
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
            approved[key][concept] += each.frequency
            rejected[key].discard(concept)
            if each.relation in _SYNONYMS:
                names.append((each.term, concept))
        elif each.verdict == "rejected":
            rejected[key].add(concept)
            if key in approved:
                approved[key].pop(concept, None)
        else:
            nil.add(key)
    standing = {
        key: tuple(concept for concept, _ in counts.most_common())
        for key, counts in approved.items()
        if counts
    }
    wrong = {key: frozenset(concepts) for key, concepts in rejected.items() if concepts}
    pairs = [(text, c) for text, c in names if c in standing.get(term_key(text), ())]
    return TermDecisions(standing, wrong, frozenset(nil)), texts, pairs, n_unknown


def _fit(
    kb: KnowledgeBase,
    index: Path,
    reviewed: ReviewedNames,
    spellings: Mapping[str, str],
    n_unknown: int,
) -> LearningReport:
    """Fit weights and a calibration, in this order; keep those that answer other terms better."""
    decisions = reviewed.decisions
    keys = [*decisions.approved, *(k for k in decisions.nil if k not in decisions.approved)]
    texts = [spellings[key] for key in keys]
    gold = [decisions.approved.get(key, ()) for key in keys]
    terms = _Terms(kb, index, texts, gold, reviewed.similar(texts))
    before = after = _f1([terms.answer(n) for n in terms.numbers], gold)

    lexical, f1 = _lexical_weight(terms)
    if lexical is not None and f1 > after:
        after, terms = f1, terms.searched(terms.numbers, lexical)
        reviewed.weights = {"lexical": lexical, "dense": 1 - lexical}
    else:
        lexical = None
    weight, f1 = _name_weight(terms)
    reviewed.weight, after = (weight, f1) if f1 > after else (0.0, after)
    calibration, after = _calibration(terms, reviewed.weight, after)
    reviewed.calibration = calibration
    return LearningReport(
        n_approved=sum(map(len, decisions.approved.values())),
        n_rejected=sum(map(len, decisions.rejected.values())),
        n_nil=len(decisions.nil),
        n_unknown=n_unknown,
        weight=reviewed.weight,
        lexical_weight=lexical,
        threshold=None if calibration is None else calibration.threshold,
        f1_before=before,
        f1_after=after,
    )


class _Terms:
    """Decided terms with what they mean, and what search and reviewed names give for each.

    The index is searched without what it learned before.

    Args:
        kb: Knowledge base of the index.
        index: Folder of the index.
        texts: The terms.
        gold: Concepts of each term, the best first; none where it has no concept.
        similar: Reviewed names that are like each term, best first.
        lexical_weight: Weight of lexical search; None: that of the index.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        index: Path,
        texts: Sequence[str],
        gold: Sequence[tuple[str, ...]],
        similar: Sequence[Sequence[SimilarName]],
        lexical_weight: float | None = None,
    ) -> None:
        self.kb, self.index, self.texts, self.gold, self.similar = kb, index, texts, gold, similar
        self.keys, self.numbers = list(map(term_key, texts)), range(len(texts))
        config = LinkerConfig(lexical_weight=lexical_weight)
        opened = open_index(kb, index, config, with_reviewed=False)
        self.calibration = opened.calibration
        self.linker = Linker(kb, opened.search, names=opened.names)  # scores, no probabilities
        self.ranked = list(self.linker.link_mentions(texts, 1)) if texts else []

    def searched(self, numbers: Sequence[int], lexical_weight: float | None) -> _Terms:
        """Search some of the terms with another weight of lexical search."""
        texts, gold = [self.texts[n] for n in numbers], [self.gold[n] for n in numbers]
        similar = [self.similar[n] for n in numbers]
        return _Terms(self.kb, self.index, texts, gold, similar, lexical_weight)

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

    def answer(
        self,
        n: int,
        weight: float = 0.0,
        held_out: Collection[str] = (),
        calibration: Calibration | None = None,
    ) -> str | None:
        """Return the concept that a linker answers for a term, None for NIL."""
        first, calibration = self.first(n, weight, held_out), calibration or self.calibration
        if first is None:
            return None
        if calibration is None or calibration.keeps_nil:
            is_nil = self.linker.nil.is_nil(self.texts[n], first)
        else:
            is_nil = float(calibration(first.score)) < (calibration.threshold or 0.0)
        return None if is_nil else first.concept

    def cross_validated(
        self, answers_of: Callable[[list[int], list[int], frozenset[str]], list[str | None]]
    ) -> float:
        """Return the F1 of the answers to all terms, each by what was fitted without its fold.

        Args:
            answers_of: Returns answers, given the terms to fit to, those to answer, and the keys of
                the latter.
        """
        order = np.random.default_rng(0).permutation(len(self.keys)).tolist()
        answers: list[str | None] = [None] * len(order)
        for start in range(min(_FOLDS, len(order))):
            answered = order[start::_FOLDS]
            held_out = frozenset(self.keys[n] for n in answered)
            fitted = [n for n in order if self.keys[n] not in held_out]
            found = answers_of(fitted, answered, held_out)
            for n, answer in zip(answered, found, strict=True):
                answers[n] = answer
        return _f1(answers, self.gold)


def _f1(answers: Sequence[str | None], gold: Sequence[tuple[str, ...]]) -> float:
    """Return the F1 of answers, micro-averaged over terms."""
    right = sum(answer in concepts for answer, concepts in zip(answers, gold, strict=True))
    total = sum(answer is not None for answer in answers) + sum(map(bool, gold))
    return 2 * right / total if total else 0.0


def _lexical_weight(terms: _Terms) -> tuple[float | None, float]:
    """Fit the weight of lexical search on terms that are no names of their concepts."""
    kb, search = terms.kb, terms.linker.search
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

    def answers_of(fitted: list[int], answered: list[int], _: object) -> list[str | None]:
        part = terms.searched(answered, fit(fitted, _MIN_IN_FOLDS))
        return [part.answer(n) for n in part.numbers]

    weight = fit(terms.numbers, _MIN_FITTED)
    return weight, 0.0 if weight is None else terms.cross_validated(answers_of)


def _name_weight(terms: _Terms) -> tuple[float, float]:
    """Choose the weight of reviewed names with which other terms are answered best."""

    def fit(numbers: Sequence[int], held_out: Collection[str] = ()) -> float:
        gold = [terms.gold[n] for n in numbers]
        values = [
            _f1([terms.answer(n, weight, held_out) for n in numbers], gold) for weight in _GRID
        ]
        best = [weight for weight, f1 in zip(_GRID, values, strict=True) if f1 == max(values)]
        return best[len(best) // 2]

    def answers_of(
        fitted: list[int], answered: list[int], held_out: frozenset[str]
    ) -> list[str | None]:
        weight = fit(fitted, held_out)
        return [terms.answer(n, weight, held_out) for n in answered]

    return fit(terms.numbers), terms.cross_validated(answers_of)


def _calibration(terms: _Terms, weight: float, f1: float) -> tuple[Calibration | None, float]:
    """Fit probabilities to the first candidates of terms without what was decided about them.

    Its NIL threshold is applied where it raises the F1, its probabilities where they are better
    than the share of right answers.
    """

    def firsts(
        numbers: Iterable[int], held_out: Collection[str]
    ) -> list[tuple[Candidate, tuple[str, ...]]]:
        found = [(terms.first(n, weight, held_out), terms.gold[n]) for n in numbers]
        return [(candidate, concepts) for candidate, concepts in found if candidate]

    def fit(
        numbers: Iterable[int], least: int, held_out: Collection[str] = ()
    ) -> Calibration | None:
        first = firsts(numbers, held_out)
        scores = np.array([candidate.score for candidate, _ in first])
        right = np.array([candidate.concept in concepts for candidate, concepts in first])
        if len(first) < least or right.all() or not right.any():
            return None
        calibration = fit_calibration(
            scores,
            right,
            "isotonic" if len(first) >= _MIN_ISOTONIC else "platt",
            search=terms.linker.score_source,
            store=store_fingerprint(terms.kb),
        )
        nil = np.array([not concepts for _, concepts in first])
        if nil.sum() < _MIN_NIL:
            return replace(calibration, keeps_nil=True)
        return replace(calibration, threshold=choose_threshold(calibration(scores), right, nil))

    calibration = fit(terms.numbers, _MIN_FITTED)
    if calibration is None:
        return None, f1
    outcomes: list[tuple[float, bool]] = []

    def answers_of(
        fitted: list[int], answered: list[int], held_out: frozenset[str]
    ) -> list[str | None]:
        fold = fit(fitted, _MIN_IN_FOLDS, held_out)
        if fold is not None:
            outcomes.extend(
                (float(fold(candidate.score)), candidate.concept in concepts)
                for candidate, concepts in firsts(answered, held_out)
            )
        return [terms.answer(n, weight, held_out, fold) for n in answered]

    calibrated = terms.cross_validated(answers_of)
    if calibrated > f1:
        return calibration, calibrated
    probabilities, right = np.array(outcomes, np.float64).reshape(-1, 2).T
    is_better = right.size > 0 and np.square(probabilities - right).mean() < right.var()
    if terms.calibration is None and is_better:
        return replace(calibration, threshold=None, keeps_nil=True), f1
    return None, f1


def write_pairs(path: Path, decisions: Iterable[Decision], *, overwrite: bool = False) -> int:
    """Write approved terms as training pairs, of the gold format ``aap``; return their number.

    A line is the id of a concept, its name and the term, with tabs between.

    Args:
        path: File to write.
        decisions: Decisions.
        overwrite: Replace an existing file.
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

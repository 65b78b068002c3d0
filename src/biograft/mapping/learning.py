"""Learning from decisions: reviewed names, rejected pairs, weights and a calibration of an index.

Nothing is trained; all of it is fitted in seconds. Each part that changes the answers to other
terms is applied only where cross-validation supports it: fitted to four fifths of the terms, it
must answer the others better, by more than the standard error of the gain. What was decided about a
term itself always holds.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np

from biograft.artifacts import new_file, new_folder, sole_writer
from biograft.errors import ConfigError
from biograft.evaluation.gold import to_queries
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.kb.names import term_key
from biograft.linking import Candidate, Linker, fit_calibration
from biograft.linking.calibration import Calibration, choose_threshold
from biograft.linking.config import LinkerConfig
from biograft.linking.index import REVIEWED_NAMES, open_index
from biograft.linking.learned import LEARNED_FORMS
from biograft.linking.outputs.output import encoded
from biograft.linking.queries import is_name_of
from biograft.linking.reviewed import ReviewedNames, SimilarName, TermDecisions
from biograft.linking.search_weights import fit_lexical_weight
from biograft.mapping.decisions import Decision
from biograft.mapping.omop_tables import VALUE
from biograft.mapping.term_parts import read_term
from biograft.metrics import Counts, Difference, Interval, paired_counts
from biograft.text.documents import Document, Mention

_MIN_FITTED = 50
"""Decisions from which the weight of lexical search and a calibration are fitted."""
_MIN_IN_FOLDS = _MIN_FITTED // 2
"""Least number of decisions outside a fold."""
_MIN_ISOTONIC = 300
_MIN_NIL = 20
"""Terms without a concept from which the threshold of NIL is chosen."""
_GRID = (0.0, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
_FOLDS = 5
_STANDARD_ERROR = 0.32
"""Two-sided p of a gain of one standard error."""
_MAX_RESAMPLED = 10_000_000
"""Terms that are drawn for an interval, in all resamples."""
_SYNONYMS = ("exact", "close")
"""Relations of a term that is a name of its concept."""


LEXICAL, SIMILAR, THRESHOLD = "weight of lexical search", "similar names", "threshold of NIL"
"""Parts that are learned for other terms, in this order."""


@dataclass(frozen=True, slots=True)
class LearnedPart:
    """A part of what is learned for other terms, and whether it is applied."""

    name: str
    applied: bool
    reason: str
    """Why it is applied, or not."""
    f1_before: float | None = None
    """F1 without it, cross-validated; None if there are too few decisions to fit it."""
    f1_after: float | None = None
    interval: tuple[float, float] | None = None
    """95 % interval of the gain, over terms."""


@dataclass(frozen=True, slots=True)
class LearningReport:
    """Result of learning."""

    n_approved: int
    """Number of approved suggestions."""
    n_rejected: int
    """Number of rejected suggestions."""
    n_nil: int
    """Number of terms that reviewers found no concept for."""
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
    interval: tuple[float, float] = (0.0, 0.0)
    """95 % interval of the gain of all that is applied, over terms."""
    parts: tuple[LearnedPart, ...] = ()
    """A learned part, with its gain."""

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
    of_entry: defaultdict[tuple[str, str, str, str, int], set[str]] = defaultdict(set)
    of_term: defaultdict[str, set[str]] = defaultdict(set)
    for each in decisions:
        of_term[term_key(each.term)].add(each.part)
    # of a term of several concepts the parts are learned
    told = [
        replace(d, term=d.part if d.part and len(of_term[term_key(d.term)]) > 1 else d.term)
        for d in decisions
        if d.is_decided and d.term and not d.part.startswith(VALUE)
    ]
    for each in sorted(told, key=lambda d: d.time):
        row = kb.find_row(each.concept) if each.concept else None
        if each.concept and row is None:
            n_unknown += 1
            continue
        key = term_key(each.term)
        texts.setdefault(key, each.term)
        concept = "" if row is None else kb.id_at(row)
        of_entry[key, each.code, each.context, each.time, each.frequency].add(concept)
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
    combined = {
        key: standing[key]
        for (key, *_), each in of_entry.items()
        if len(each.intersection(standing.get(key, ()))) > 1
    }
    for text, named in groupby(sorted(pairs), key=itemgetter(0)):
        key, concepts = term_key(text), [concept for _, concept in named]
        read = read_term(text, lambda part: bool(kb.rows_by_name(part)), every_mark=True)
        wording = term_key(read.whole)
        if wording not in texts:  # terms like it are read before they are compared with it
            pairs += [(read.whole, each) for each in concepts]
        if key in combined:
            combined.setdefault(wording, combined[key])
            pairs += _aligned(kb, read.forms, concepts)
    return TermDecisions(standing, wrong, frozenset(nil), combined), texts, pairs, n_unknown


def _aligned(
    kb: KnowledgeBase, parts: Sequence[str], concepts: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the parts of a term with their concepts, by the pairs of characters in common."""
    if len(parts) != len(concepts):
        return
    names = {each: " ".join(kb.name_texts_at(kb.row(each))).lower() for each in concepts}
    shared = {
        (part, concept): sum(a + b in name for a, b in pairwise(part.lower())) / len(part)
        for part in parts
        for concept, name in names.items()
    }
    while shared:
        part, concept = max(shared, key=shared.__getitem__)
        yield part, concept
        shared = {key: n for key, n in shared.items() if part != key[0] and concept != key[1]}


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
    gate = _Gate(gold, [terms.answer(n) for n in terms.numbers])
    before = gate.answers
    lexical, answers, reason = _lexical_weight(terms)
    if gate.passes(LEXICAL, answers, reason) and lexical is not None:
        terms = terms.searched(terms.numbers, lexical)
        reviewed.weights = {"lexical": lexical, "dense": 1 - lexical}
    weight, answers = _name_weight(terms)
    reviewed.weight = weight if gate.passes(SIMILAR, answers) else 0.0
    calibration, answers, is_better = _calibration(terms, reviewed.weight)
    needs = f"needs {_MIN_FITTED} terms, of which {_MIN_NIL} have no concept"
    if gate.passes(THRESHOLD, answers, needs):
        reviewed.calibration = calibration
    elif calibration is not None and terms.calibration is None and is_better:
        reviewed.calibration = replace(calibration, threshold=None, keeps_nil=True)
    gain = _gain(gate.answers, before, gold)
    threshold = None if reviewed.calibration is None else reviewed.calibration.threshold
    return LearningReport(
        n_approved=sum(map(len, decisions.approved.values())),
        n_rejected=sum(map(len, decisions.rejected.values())),
        n_nil=len(decisions.nil),
        n_unknown=n_unknown,
        weight=reviewed.weight,
        lexical_weight=None if reviewed.weights is None else reviewed.weights["lexical"],
        threshold=threshold,
        f1_before=_f1(before, gold),
        f1_after=_f1(gate.answers, gold),
        interval=(gain.interval.low, gain.interval.high),
        parts=tuple(gate.parts),
    )


class _Gate:
    """Lets a part of what is learned pass if it answers other terms better.

    Args:
        gold: Concepts of each term.
        answers: Answers to the terms before anything is learned.
    """

    def __init__(self, gold: Sequence[tuple[str, ...]], answers: list[str | None]) -> None:
        self.gold, self.answers, self.parts = gold, answers, list[LearnedPart]()

    def passes(self, name: str, answers: list[str | None] | None, reason: str = "") -> bool:
        """Return whether a part is applied; its answers are then those to improve.

        Args:
            name: Name of the part.
            answers: Cross-validated answers with it; None if it cannot be fitted.
            reason: Why it cannot be fitted.
        """
        if answers is None:
            self.parts.append(LearnedPart(name, False, reason))
            return False
        gain = _gain(answers, self.answers, self.gold)
        applied = gain.difference > 0 and gain.p < _STANDARD_ERROR
        reason = (
            "gains" if applied else "gain within its error" if gain.difference > 0 else "no gain"
        )
        before, after = _f1(self.answers, self.gold), _f1(answers, self.gold)
        bounds = (gain.interval.low, gain.interval.high)
        self.parts.append(LearnedPart(name, applied, reason, before, after, bounds))
        if applied:
            self.answers = answers
        return applied


def _gain(
    after: Sequence[str | None], before: Sequence[str | None], gold: Sequence[tuple[str, ...]]
) -> Difference:
    """Return the gain of F1 with its interval over terms."""
    if not gold:
        return Difference(0.0, Interval(0.0, 0.0), 1.0)

    def counts(answers: Sequence[str | None]) -> list[Counts]:
        return [
            Counts(a in g, a is not None and a not in g, bool(g) and a not in g)
            for a, g in zip(answers, gold, strict=True)
        ]

    n_resamples = max(100, min(1000, _MAX_RESAMPLED // len(gold)))
    return paired_counts(counts(after), counts(before), n_resamples=n_resamples)[0]


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
        self.decided = frozenset(self.keys)
        config = LinkerConfig(lexical_weight=lexical_weight)
        opened = open_index(kb, index, config, with_reviewed=False)
        self.calibration = opened.calibration
        self.linker = Linker(
            kb,
            opened.search,
            names=opened.names,  # scores, no probabilities
            config=LinkerConfig(k=1, composites=False, assertions=False, mentions="given"),
        )
        documents = [Document(str(n), t, (Mention(0, len(t), t),)) for n, t in enumerate(texts)]
        self.mentions = [linked.mentions[0] for linked in self.linker.pipe(documents)]

    def searched(self, numbers: Sequence[int], lexical_weight: float | None) -> _Terms:
        """Search some of the terms with another weight of lexical search."""
        texts, gold = [self.texts[n] for n in numbers], [self.gold[n] for n in numbers]
        similar = [self.similar[n] for n in numbers]
        return _Terms(self.kb, self.index, texts, gold, similar, lexical_weight)

    def first(self, n: int, weight: float, held_out: Collection[str] = ()) -> Candidate | None:
        """Return the first candidate of a term that had not been decided, nor others held out."""
        found = next(iter(self.mentions[n].candidates), None)
        for near in self.similar[n] if weight else ():
            key = term_key(near.name)
            if key == self.keys[n] or key in held_out or key not in self.decided:
                continue  # parts of terms are names of others only
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
        is_nil = True
        if first is not None:
            if calibration is None or calibration.keeps_nil:
                is_nil = self.linker.nil.is_nil(self.mentions[n].form, first)
            else:
                is_nil = float(calibration(first.score)) < (calibration.threshold or 0.0)
        return None if first is None or is_nil else first.concept

    def cross_validated(
        self, answers_of: Callable[[list[int], list[int], frozenset[str]], list[str | None]]
    ) -> list[str | None]:
        """Return the answers to all terms, each by what was fitted without its fold.

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
        return answers


def _f1(answers: Sequence[str | None], gold: Sequence[tuple[str, ...]]) -> float:
    """Return the F1 of answers, micro-averaged over terms."""
    right = sum(answer in concepts for answer, concepts in zip(answers, gold, strict=True))
    total = sum(answer is not None for answer in answers) + sum(map(bool, gold))
    return 2 * right / total if total else 0.0


def _lexical_weight(terms: _Terms) -> tuple[float | None, list[str | None] | None, str]:
    """Fit the weight of lexical search on terms that are no names of their concepts."""
    kb, search = terms.kb, terms.linker.search
    if search is None or len(search.generators) < 2:
        return None, None, "the index has one kind of search"

    def fit(numbers: Iterable[int], least: int) -> float | None:
        pairs = [
            (terms.texts[n], terms.gold[n][0])
            for n in numbers
            if terms.gold[n] and not is_name_of(kb, terms.texts[n], terms.gold[n])
        ]
        if len(pairs) < least:
            return None
        return fit_lexical_weight(kb, search, to_queries(pairs)).lexical

    def answers_of(fitted: list[int], answered: list[int], _: object) -> list[str | None]:
        part = terms.searched(answered, fit(fitted, _MIN_IN_FOLDS))
        return [part.answer(n) for n in part.numbers]

    weight = fit(terms.numbers, _MIN_FITTED)
    if weight is None:
        return None, None, f"needs {_MIN_FITTED} terms that are no names of their concepts"
    return weight, terms.cross_validated(answers_of), ""


def _name_weight(terms: _Terms) -> tuple[float, list[str | None]]:
    """Choose the weight of reviewed names with which other terms are answered best."""
    return _choose(terms, _GRID, terms.answer)


def _choose(
    terms: _Terms,
    grid: Sequence[float],
    answer: Callable[[int, float, Collection[str]], str | None],
) -> tuple[float, list[str | None]]:
    """Choose a number with which terms are answered best; of equal ones the middle.

    Args:
        terms: The terms.
        grid: The numbers.
        answer: Returns the answer to a term, given a number and the keys that are held out.
    """

    def fit(numbers: Sequence[int], held_out: Collection[str] = ()) -> float:
        gold = [terms.gold[n] for n in numbers]
        values = [_f1([answer(n, each, held_out) for n in numbers], gold) for each in grid]
        best = [each for each, f1 in zip(grid, values, strict=True) if f1 == max(values)]
        return best[len(best) // 2]

    def answers_of(
        fitted: list[int], answered: list[int], held_out: frozenset[str]
    ) -> list[str | None]:
        chosen = fit(fitted, held_out)
        return [answer(n, chosen, held_out) for n in answered]

    return fit(terms.numbers), terms.cross_validated(answers_of)


def _calibration(
    terms: _Terms, weight: float
) -> tuple[Calibration | None, list[str | None] | None, bool]:
    """Fit probabilities to the first candidates of terms without what was decided about them.

    Returns:
        The calibration; cross-validated answers with its threshold, if it has one; and whether its
        probabilities are better than the share of right answers.
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
        return None, None, False
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

    answers = terms.cross_validated(answers_of)
    probabilities, right = np.array(outcomes, np.float64).reshape(-1, 2).T
    is_better = right.size > 0 and np.square(probabilities - right).mean() < right.var()
    return calibration, None if calibration.keeps_nil else answers, bool(is_better)


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

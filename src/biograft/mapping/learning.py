"""Learning from decisions: reviewed names, rejected pairs, weights and a calibration of an index.

Nothing is trained; all of it is fitted in seconds. Each term is measured as if it had not been
reviewed: a reviewed name does not count for its own term.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from biograft.artifacts import new_file, new_folder, sole_writer
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking import Candidate, Linker, fit_calibration
from biograft.linking.calibration import Calibration, choose_threshold
from biograft.linking.config import LinkerConfig
from biograft.linking.index import REVIEWED_NAMES, open_index
from biograft.linking.nil import default_threshold
from biograft.linking.outputs.output import encoded
from biograft.linking.queries import is_name_of, label_examples
from biograft.linking.reviewed import DEFAULT_WEIGHT, ReviewedNames, TermDecisions
from biograft.linking.search_weights import fit_lexical_weight
from biograft.mapping.decisions import Decision
from biograft.text import term_key

_MIN_FITTED = 50
"""Decisions from which weights and a calibration are fitted; below, those of the index stay."""
_MIN_ISOTONIC = 300
_MIN_NIL = 20
"""Terms without a concept from which the threshold of NIL is chosen."""
_GRID = (0.0, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
_DEPTH = 64
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
    """Weight of a reviewed name relative to a name of the store."""
    lexical_weight: float | None = None
    """Weight of lexical search beside dense search; None if it was not fitted."""
    threshold: float | None = None
    """Probability below which the answer is NIL; None if no calibration was fitted."""

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
    """Fit the weights and the calibration of reviewed names, in this order."""
    decisions = known.decisions
    linker = _linker(kb, index, None)
    lexical = _lexical_weight(kb, linker, known)
    weights = None
    if lexical is not None and linker.search is not None:
        weights = {"lexical": lexical, "dense": 1 - lexical}
        linker = _linker(kb, index, lexical)
    keys = [*decisions.approved, *(k for k in decisions.nil if k not in decisions.approved)]
    texts = [known.texts[key] for key in keys]
    gold = [frozenset(decisions.approved.get(key, ())) for key in keys]
    base = linker.link_mentions(texts, _DEPTH) if texts else []
    reviewed.weight = weight = _name_weight(reviewed, texts, base, gold)
    reviewed.weights = weights
    reviewed.calibration = calibration = _calibration(linker, reviewed, texts, base, gold)
    return LearningReport(
        n_approved=sum(map(len, decisions.approved.values())),
        n_rejected=sum(map(len, decisions.rejected.values())),
        n_nil=len(decisions.nil),
        n_unknown=known.n_unknown,
        weight=weight,
        lexical_weight=lexical,
        threshold=None if calibration is None else calibration.threshold,
    )


def _linker(kb: KnowledgeBase, index: Path, lexical_weight: float | None) -> Linker:
    """Return a linker without what was learned before."""
    opened = open_index(kb, index, LinkerConfig(lexical_weight=lexical_weight), with_reviewed=False)
    return Linker(kb, opened.search, names=opened.names)


def _lexical_weight(kb: KnowledgeBase, linker: Linker, known: _Known) -> float | None:
    """Fit the weight of lexical search on terms that are no names of their concepts."""
    search = linker.search
    if search is None or len(search.generators) < 2:
        return None
    pairs = [
        (known.texts[key], concepts[0])
        for key, concepts in known.decisions.approved.items()
        if not is_name_of(kb, known.texts[key], concepts)
    ]
    if len(pairs) < _MIN_FITTED:
        return None
    return fit_lexical_weight(kb, search, label_examples(pairs)).lexical


def _name_weight(
    reviewed: ReviewedNames,
    texts: Sequence[str],
    base: Sequence[Sequence[Candidate]],
    gold: Sequence[frozenset[str]],
) -> float:
    """Choose the weight of reviewed names with which most terms are right without their own."""
    approved = [n for n, concepts in enumerate(gold) if concepts]
    if len(approved) < _MIN_FITTED:
        return DEFAULT_WEIGHT
    chosen = [texts[n] for n in approved]
    right = []
    for weight in _GRID:
        reviewed.weight = weight
        found = reviewed.apply(chosen, [base[n] for n in approved], 1, held_out=True)
        right.append(sum(
            bool(each) and each[0].concept in gold[n]
            for each, n in zip(found, approved, strict=True)
        ))  # fmt: skip
    best = [weight for weight, n in zip(_GRID, right, strict=True) if n == max(right)]
    return best[len(best) // 2]


def _calibration(
    linker: Linker,
    reviewed: ReviewedNames,
    texts: Sequence[str],
    base: Sequence[Sequence[Candidate]],
    gold: Sequence[frozenset[str]],
) -> Calibration | None:
    """Fit probabilities to the first candidates of terms without what was decided about them."""
    found = reviewed.apply(texts, base, 1, held_out=True)
    first = [(each[0], concepts) for each, concepts in zip(found, gold, strict=True) if each]
    if len(first) < _MIN_FITTED:
        return None
    scores = np.array([candidate.score for candidate, _ in first])
    right = np.array([candidate.concept in concepts for candidate, concepts in first])
    if right.all() or not right.any():
        return None
    method = "isotonic" if len(first) >= _MIN_ISOTONIC else "platt"
    calibration = fit_calibration(
        scores, right, method, search=linker.score_source, store=store_fingerprint(linker.kb)
    )
    nil = np.array([not concepts for _, concepts in first])
    if nil.sum() >= _MIN_NIL:
        threshold = choose_threshold(calibration(scores), right, nil)
    else:  # what was NIL by its score stays so
        score = default_threshold("", list(linker.search.weights) if linker.search else [])
        threshold = 0.0 if score is None else float(calibration(score))
    return replace(calibration, threshold=threshold)


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

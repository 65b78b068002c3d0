"""Concepts of two ontologies matched: fit the weights of the matching, and measure it.

Gold are cross-references, which are hidden from the matching. The weights are fitted to HPO and two
releases of the Disease Ontology, whose concepts have a UMLS id in common; the measure is the
Disease Ontology of 2015 against MEDIC, by its MeSH and OMIM ids, to which nothing is fitted. Pairs
of a peer are scored in the same way: ``--peer NAME=FILE``, SSSOM with ``confidence``.

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.match_ontologies [--fit]
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking.lexical.index import LexicalIndex
from biograft.mapping import MappingSet
from biograft.mapping.config import MatchConfig
from biograft.mapping.matching import find_pairs, match_stores, pair_features
from biograft.mapping.sssom import concept_of
from biograft_lab.scripts import new_parser, run

OBO = "ontologies/obo"
FILES = {
    "HPO": f"{OBO}/hp_2025-01-16.obo.gz",
    "DO": f"{OBO}/HumanDO_2015.obo.gz",
    "DO-NCIt": f"{OBO}/NCIthesaurus_DO_subset.obo.gz",
    "MEDIC": "entity_linking/medic/medic_06Jul2012.txt.gz",
}
FITTED = (("HPO", "DO"), ("HPO", "DO-NCIt"))
SUBJECTS, TARGETS = "DO", "MEDIC"
THRESHOLDS = (0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5)
_RESAMPLES = 2000
_CUI = re.compile(r"(?:UMLS(?:_CUI)?:)?(C\d{7})")
Gold = dict[int, set[int]]


def build(data: Path, folder: Path, name: str) -> KnowledgeBase:
    """Build the store of one ontology."""
    if not (folder / name).exists():
        sources = (SourceConfig(path=data / FILES[name]),)
        build_store(BuildConfig(sources=sources), folder / name)
    return KnowledgeBase.open(folder / name)


def by_umls(first: KnowledgeBase, second: KnowledgeBase) -> Gold:
    """Return the pairs that have a UMLS id in common."""

    def ids(kb: KnowledgeBase) -> dict[int, set[str]]:
        found: dict[int, set[str]] = defaultdict(set)
        for row in range(len(kb)):
            matched = (_CUI.fullmatch(each.id) for each in kb.concept_at(row).ids)
            found[row].update(match[1] for match in matched if match)
        return found

    owners: dict[str, set[int]] = defaultdict(set)
    for row, known in ids(second).items():
        for each in known:
            owners[each].add(row)
    gold = {row: set().union(*(owners[i] for i in known)) for row, known in ids(first).items()}
    return {row: targets for row, targets in gold.items() if targets}


def by_reference(first: KnowledgeBase, second: KnowledgeBase) -> Gold:
    """Return the pairs that a cross-reference of the first names; OMIM ids of MEDIC are bare."""
    gold: Gold = defaultdict(set)
    for row in range(len(first)):
        for each in first.concept_at(row).ids:
            if each.kind == "xref":
                gold[row].update(second.rows_of([each.id, each.id.removeprefix("OMIM:")]))
    return {row: targets for row, targets in gold.items() if targets}


def fit(stores: dict[str, KnowledgeBase]) -> dict[str, float]:
    """Fit the weights of the logistic model to the pairs of subjects with gold."""
    from sklearn.linear_model import LogisticRegression

    rows, right = [], []
    for first, second in FITTED:
        one, other = stores[first], stores[second]
        gold = by_umls(one, other)
        pairs = find_pairs(one, other, LexicalIndex.build(other), MatchConfig().k)
        for (subject, target), features in pair_features(pairs, one, other):
            if subject in gold:
                rows.append(features)
                right.append(target in gold[subject])
    names = list(rows[0])
    model = LogisticRegression(C=10, max_iter=5000)
    model.fit([[row[name] for name in names] for row in rows], right)
    weights = {"intercept": model.intercept_[0], **dict(zip(names, model.coef_[0], strict=True))}
    return {name: round(float(weight), 3) for name, weight in weights.items()}


def score(gold: Gold, found: dict[int, tuple[int, float]]) -> list[dict[str, Any]]:
    """Return precision and recall of subjects with gold from each confidence on."""
    subjects = sorted(gold)
    known = [found.get(row, (-1, 0.0)) for row in subjects]
    right = np.array(
        [target in gold[row] for row, (target, _) in zip(subjects, known, strict=True)]
    )
    confidence = np.array([value for _, value in known])
    rng = np.random.default_rng(0)
    draws = rng.integers(len(subjects), size=(_RESAMPLES, len(subjects)))
    rows = []
    for threshold in THRESHOLDS:
        answered = confidence >= threshold
        hits = right & answered
        precision = hits[draws].sum(1) / np.maximum(answered[draws].sum(1), 1)
        recall = hits[draws].mean(1)
        rows.append(
            {
                "threshold": threshold,
                "precision": _percent(hits.sum() / max(answered.sum(), 1)),
                "precision_interval": [_percent(p) for p in np.percentile(precision, [2.5, 97.5])],
                "recall": _percent(hits.mean()),
                "recall_interval": [_percent(r) for r in np.percentile(recall, [2.5, 97.5])],
            }
        )
    return rows


def _percent(value: float) -> float:
    return round(100 * float(value), 2)


def labels(first: KnowledgeBase, second: KnowledgeBase) -> dict[int, tuple[int, float]]:
    """Return the matches of equal labels and exact synonyms, the baseline of a few lines."""
    owners: dict[str, int] = {}
    for kind in ("preferred", "synonym"):
        for row in range(len(second)):
            for name in second.names_at(row):
                if name.kind == kind:
                    owners.setdefault(name.text.lower(), row)
    found: dict[int, tuple[int, float]] = {}
    for kind, confidence in (("preferred", 0.99), ("synonym", 0.9)):
        for row in range(len(first)):
            for name in first.names_at(row):
                if name.kind == kind and row not in found and name.text.lower() in owners:
                    found[row] = (owners[name.text.lower()], confidence)
    return found


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Fit, or match and score, and print the result."""
    with tempfile.TemporaryDirectory() as work:
        names = FILES if options.fit else (SUBJECTS, TARGETS)
        stores = {name: build(options.data, Path(work), name) for name in names}
        if options.fit:
            return {"weights": fit(stores)}
        subjects, targets = stores[SUBJECTS], stores[TARGETS]
        gold = by_reference(subjects, targets)
        config = MatchConfig(threshold=0.0, xrefs=False, broader=False)
        match_stores(subjects, targets, LexicalIndex.build(targets), config)  # compiles
        started = time.process_time()
        matches = match_stores(subjects, targets, LexicalIndex.build(targets), config)
        seconds = round(time.process_time() - started, 2)
        matched = {each.subject: (each.target, each.confidence) for each in matches}
        found = {
            "biograft match": score(gold, matched),
            "labels": score(gold, labels(subjects, targets)),
        }
        for name, _, file in (peer.partition("=") for peer in options.peer):
            found[name] = score(gold, _peer(Path(file), subjects, targets))
    return {
        "found": found,
        "n_subjects": len(gold),
        "processor_seconds": seconds,
    }


def _peer(
    file: Path, subjects: KnowledgeBase, targets: KnowledgeBase
) -> dict[int, tuple[int, float]]:
    found: dict[int, tuple[int, float]] = {}
    for row in MappingSet.read(file).rows:
        subject = subjects.find_row(concept_of(row.subject_id))
        target = targets.find_row(concept_of(row.object_id))
        confidence = 0.99 if row.confidence is None else row.confidence
        if subject is None or target is None or found.get(subject, (0, -1.0))[1] >= confidence:
            continue
        found[subject] = (target, confidence)
    return found


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("--fit", action="store_true", help="fit the weights and print them")
    parser.add_argument("--peer", action="append", default=[], help="matches of another tool")
    run(measure, parser)


if __name__ == "__main__":
    main()

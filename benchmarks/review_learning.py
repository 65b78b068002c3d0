"""What an index learns from reviews: accuracy and coverage on terms that nobody has reviewed.

Simulated: a column of phrases of AskAPatient's train split is mapped, and a reviewer who knows the
gold concepts decides about its first terms, in the order of the queue (frequency x doubt) or at
random: the gold concept is approved, and a wrong suggestion rejected. Then `biograft learn`, and
the phrases of the validation split that are not in the column are linked. The test split is not
read. The dictionary has one name a concept.

    python benchmarks/review_learning.py --json
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from machine import describe_command, describe_commit
from script_options import add_data, start_parser

from biograft.compute import describe_machine
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.names import term_key
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, build_index
from biograft.linking.dense.encoders import default_encoder
from biograft.mapping import (
    Decision,
    ReviewTerm,
    SourceTerm,
    SuggestedConcept,
    learn,
    map_terms,
)
from biograft.mapping.learning import forget

_AIM = 0.95


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Review columns of several seeds, and measure after each number of reviews."""
    folder = options.data / "entity_linking" / "askapatient"
    with tempfile.TemporaryDirectory() as work:
        kb = build_dictionary(folder, Path(work))
        build_index(kb, Path(work) / "INDEX", default_encoder(kb, ()))
        rows = [
            row
            for seed in range(options.seeds)
            for row in _measure_seed(kb, folder, Path(work) / "INDEX", seed, options)
        ]
    return {
        "rows": rows,
        "means": _means(rows),
        "column": options.column,
        "seeds": options.seeds,
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("review_learning.py", sys.argv[1:]),
    }


def build_dictionary(folder: Path, work: Path) -> KnowledgeBase:
    """Build the store of AskAPatient's concepts."""
    names = json.loads((folder / "ontology_askapatient.json").read_text("utf-8"))
    lines = (
        json.dumps({"id": f"AAP:{concept}", "names": list(dict.fromkeys(t for _, t in own))})
        for concept, own in names.items()
    )
    (work / "names.jsonl").write_text("\n".join(lines), "utf-8")
    source = SourceConfig(path=work / "names.jsonl", format="jsonl")
    build_store(BuildConfig(sources=(source,)), work / "KB")
    return KnowledgeBase.open(work / "KB")


def read_phrases(folder: Path, split: str) -> tuple[dict[str, str], Counter[str]]:
    """Return the concept of each distinct phrase, and how often it occurs."""
    gold: dict[str, str] = {}
    counts: Counter[str] = Counter()
    text = (folder / f"AskAPatient.fold-0.{split}.txt").read_text("cp1252")
    for line in text.splitlines():
        concept, _, phrase = line.split("\t")
        key = term_key(phrase)
        gold.setdefault(key, f"AAP:{concept}")
        counts[key] += 1
    return gold, counts


def _measure_seed(
    kb: KnowledgeBase, folder: Path, index: Path, seed: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    gold, counts = read_phrases(folder, "train")
    others, _ = read_phrases(folder, "validation")
    column = rng.sample(sorted(gold), min(options.column, len(gold)))
    held_out = sorted(set(others) - set(column))
    forget(index)
    linker = Linker.open(kb, index)
    terms = [SourceTerm(text, frequency=counts[text]) for text in column]
    queue = [review_term(each) for each in map_terms(linker, terms)]
    orders = {
        "queue": sorted(queue, key=lambda term: -term.priority),
        "random": rng.sample(queue, len(queue)),
    }
    rows = [_row(kb, index, held_out, others, seed=seed, order="none", n=0)]
    for order, ordered in orders.items():
        for n in options.reviews:
            started = time.process_time()
            learn(kb, index, [d for term in ordered[:n] for d in _decide(term, gold[term.text])])
            seconds = round(time.process_time() - started, 2)
            row = _row(kb, index, held_out, others, seed=seed, order=order, n=n)
            rows.append({**row, "learn_cpu_seconds": seconds})
            print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def review_term(mapping: Any) -> ReviewTerm:
    """Make a term of a review of a mapping."""
    found = ([mapping.concept] if mapping.concept else []) + [c.concept for c in mapping.others]
    candidates = tuple(
        SuggestedConcept(concept, "", mapping.score if rank == 0 else None, mapping.probability)
        for rank, concept in enumerate(found)
    )
    term = mapping.term
    return ReviewTerm(term.text, "", "", term.frequency, mapping.flag, candidates)


def _decide(term: ReviewTerm, gold: str) -> list[Decision]:
    """Decide as a reviewer does who knows the concept."""
    decided = [Decision(term=term.text, concept=gold, verdict="approved", author="simulated")]
    first = term.candidates[0].concept if term.candidates else gold
    if first != gold and term.flag != "nil":
        decided.append(
            Decision(term=term.text, concept=first, verdict="rejected", author="simulated")
        )
    return decided


def _row(
    kb: KnowledgeBase, index: Path, texts: list[str], gold: dict[str, str], **what: Any
) -> dict[str, Any]:
    linker = Linker.open(kb, index)
    found = linker.link_mentions(texts, 5)
    right = np.array(
        [bool(f) and f[0].concept == gold[t] for f, t in zip(found, texts, strict=True)]
    )
    in_five = [any(c.concept == gold[t] for c in f) for f, t in zip(found, texts, strict=True)]
    scores = np.array([f[0].score if f else -1.0 for f in found])
    probable = np.array([bool(f) and (f[0].probability or 0) >= _AIM for f in found])
    return {
        **what,
        "n_held_out": len(texts),
        "accuracy": round(float(right.mean()), 4),
        "in_five": round(mean(map(float, in_five)), 4),
        "coverage_at_precision_0.95": round(_coverage(scores, right), 4),
        "probable": round(float(probable.mean()), 4),
        "precision_of_probable": (
            round(float(right[probable].mean()), 4) if probable.any() else None
        ),
    }


def _coverage(scores: Any, right: Any) -> float:
    """Return the largest part of the terms, best scores first, of which 95 % are right."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(scores[order][1:] != scores[order][:-1], True)  # equal ones stay together
    n = np.arange(1, len(order) + 1)
    good = (np.cumsum(right[order]) / n >= _AIM) & last
    return float(n[good].max(initial=0) / len(order))


def _means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: defaultdict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["order"], row["n"]].append(row)
    keys = (
        "accuracy",
        "in_five",
        "coverage_at_precision_0.95",
        "probable",
        "precision_of_probable",
        "learn_cpu_seconds",
    )
    means = []
    for (order, n), own in groups.items():
        values = {key: [row[key] for row in own if row.get(key) is not None] for key in keys}
        means.append(
            {
                "order": order,
                "n": n,
                **{key: round(mean(found), 4) for key, found in values.items() if found},
                "accuracy_range": [min(values["accuracy"]), max(values["accuracy"])],
            }
        )
    return means


def main() -> None:
    """Measure, and print the result."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--column", type=int, default=1500)
    parser.add_argument("--reviews", type=int, nargs="*", default=[50, 200, 500])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.column, options.reviews = 1, 300, [60]
    result = measure(options)
    if options.json:
        print(json.dumps(result))
        return
    for row in result["means"]:
        print(row)


if __name__ == "__main__":
    main()

"""What `biograft verify` finds: six kinds of faults made with fixed seeds, and pairs as published.

Faults are put into pairs of id and preferred name of HPO, ICD-10-CM, MEDIC and a Chinese table of
procedures. Natural pairs are the labels of HPO of 2013 against HPO of 2025: each accusation is
listed, to be looked at. The rate is that of one process, median of several runs,
by the clock and by the time of its processor, which other processes do not change.

    python benchmarks/verify_faults.py --json >benchmarks/results/verify_faults.json
    python benchmarks/verify_faults.py --quick
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit

from biograft.compute import describe_machine
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.records import RETIRED
from biograft.kb.sources import SourceConfig
from biograft.kb.verify import FileVerifier, VerifyConfig

DATA = Path(__file__).parents[2] / "shared" / "data"
SOURCES: dict[str, tuple[str, dict[str, str], str]] = {
    "hpo": ("ontologies/obo/hp_2025-01-16.obo.gz", {}, "HP:0000118"),
    "icd10cm": ("ontologies/icd10cm/icd10cm-tabular-April-1-2026.xml.gz", {}, "ICD10CM:A00-B99"),
    "medic": ("entity_linking/medic/medic_06Jul2012.txt.gz", {}, ""),
    "procedures": (
        "zh/term_normalisation/procedure_codes.tsv",
        {"id": "#1", "name": "#2"},
        "",
    ),
}
"""Name -> file, columns, and a branch for faults of a wrong branch."""
OLD = "ontologies/obo/hp.obo.gz"
PAIRS, FAULTS = 10_000, 100
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Fault = tuple[str, str]


def build(path: Path, columns: dict[str, str], folder: Path) -> KnowledgeBase:
    """Build a knowledge base of one file."""
    source = SourceConfig(path=path, columns=columns, language="zh" if columns else "")
    build_store(BuildConfig(sources=(source,)), folder)
    return KnowledgeBase.open(folder)


def unknown_id(kb: KnowledgeBase, pair: Fault, rng: random.Random) -> Fault | None:
    """Change a digit of the id so that no concept has it."""
    local = pair[0].find(":") + 1
    digits = [k for k, sign in enumerate(pair[0]) if k >= local and sign.isdigit()]
    for _ in range(50):
        k = rng.choice(digits)
        identifier = f"{pair[0][:k]}{rng.randrange(10)}{pair[0][k + 1 :]}"
        if identifier not in kb and not kb.replacement(identifier):
            return identifier, pair[1]
    return None


def label_of_another(kb: KnowledgeBase, pair: Fault, rng: random.Random) -> Fault | None:
    """Take the name of another concept."""
    for _ in range(50):
        label = kb.name_at(rng.randrange(len(kb)))
        if pair[0] not in {match.concept for match in kb.find(label)}:
            return pair[0], label
    return None


def misspelt_label(kb: KnowledgeBase, pair: Fault, rng: random.Random) -> Fault | None:
    """Leave out, double, exchange or swap letters within a word of five letters and more."""
    words = pair[1].split(" ")
    long = [k for k, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    if not long:
        return None
    for _ in range(50):
        k = rng.choice(long)
        word = words[k]
        at = rng.randrange(1, len(word) - 1)
        wrong = rng.choice(
            [
                word[:at] + word[at + 1 :],
                word[:at] + word[at] + word[at:],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                word[:at]
                + (rng.choice(LETTERS) if word.isascii() else rng.choice(pair[1]))
                + word[at + 1 :],
            ]
        )
        label = " ".join([*words[:k], wrong, *words[k + 1 :]])
        if wrong != word and not kb.find(label):
            return pair[0], label
    return None


def retired_id(kb: KnowledgeBase, pair: Fault, rng: random.Random) -> Fault | None:
    """Take an id that this concept, or another, replaces."""
    del pair
    for _ in range(500):
        concept = kb.concept_at(rng.randrange(len(kb)))
        own = concept.id.partition(":")[0]
        old = [
            each.id
            for each in concept.ids
            if each.kind in RETIRED or (each.kind == "alternate" and each.id.startswith(f"{own}:"))
        ]
        if old:
            return rng.choice(old), concept.name
    return None


def wrong_vocabulary(kb: KnowledgeBase, pair: Fault, rng: random.Random) -> Fault | None:
    """Take an id of another vocabulary."""
    del kb
    return f"MONDO:{rng.randrange(10**7):07}", pair[1]


KINDS: dict[str, Callable[[KnowledgeBase, Fault, random.Random], Fault | None]] = {
    "unknown_id": unknown_id,
    "retired": retired_id,
    "label_of_another": label_of_another,
    "misspelt_label": misspelt_label,
    "wrong_vocabulary": wrong_vocabulary,
}


def pairs_of(kb: KnowledgeBase, rng: random.Random, below: str) -> list[Fault]:
    """Draw concepts with their preferred names."""
    rows = range(len(kb))
    if below:
        rows = [row for row in rows if kb.hierarchy.is_a(row, kb.row(below))]  # type: ignore[assignment]
    drawn = rng.sample(rows, min(PAIRS, len(rows)))
    return [(kb.id_at(row), kb.name_at(row)) for row in drawn]


def measure(kb: KnowledgeBase, below: str, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Put faults of each kind into pairs, and count those that are found."""
    rng = random.Random(seed)
    prefixes = {kb.id_at(row).partition(":")[0] for row in range(len(kb)) if ":" in kb.id_at(row)}
    kinds = [kind for kind in KINDS if kind != "wrong_vocabulary" or len(prefixes) == 1]
    kinds += ["wrong_branch"] if below else []
    for kind in kinds:
        branch = below if kind == "wrong_branch" else ""
        pairs = pairs_of(kb, rng, branch)
        places = rng.sample(range(len(pairs)), min(FAULTS, len(pairs) // 2))
        made = {}
        for place in places:
            if kind == "wrong_branch":
                row = rng.randrange(len(kb))
                outside = not kb.hierarchy.is_a(row, kb.row(below))
                fault = (kb.id_at(row), kb.name_at(row)) if outside else None
            else:
                fault = KINDS[kind](kb, pairs[place], rng)
            if fault is not None:
                made[place] = fault
        rows = [made.get(n, pair) for n, pair in enumerate(pairs)]
        path = folder / "pairs.tsv"
        path.write_text("".join(f"{a}\t{b}\n" for a, b in [("id", "label"), *rows]), "utf-8")
        config = VerifyConfig(
            columns={"id": "id", "label": "label"},
            vocabularies=tuple(prefixes) if kind == "wrong_vocabulary" else (),
            below=(branch,) if branch else (),
        )
        verifier = FileVerifier(kb, config)
        findings = list(verifier.verify(path))
        errors = {each.line - 2: each for each in findings if each.level == "error"}
        warned = {each.line - 2 for each in findings} - set(errors)
        yield {
            "kind": kind,
            "seed": seed,
            "pairs": len(rows),
            "faults": len(made),
            "errors": sum(place in errors for place in made),
            "of_this_kind": sum(place in errors and errors[place].status == kind for place in made),
            "warnings": sum(place in warned for place in made),
            "false": len(set(errors) - set(made)),
            "missed": [made[place] for place in made if place not in errors][:5],
        }


def natural(kb: KnowledgeBase, old: KnowledgeBase, folder: Path) -> dict[str, Any]:
    """Verify the labels of the HPO of 2013 by that of 2025."""
    path = folder / "old.tsv"
    path.write_text(
        "id\tlabel\n" + "".join(f"{concept.id}\t{concept.name}\n" for concept in old), "utf-8"
    )
    verifier = FileVerifier(kb)
    findings = list(verifier.verify(path))
    shown = ("misspelt_label", "label_of_another", "unknown_id")
    return {
        "pairs": verifier.done.n_pairs,
        "counts": {str(status): n for status, n in Counter(verifier.done.counts).items()},
        "accusations": [
            [f.id, f.label, str(f.status), f.message] for f in findings if f.status in shown
        ],
    }


def speed(kb: KnowledgeBase, folder: Path, runs: int) -> dict[str, Any]:
    """Verify all ids with their names, and with their last names: pairs that are all different."""
    path = folder / "speed.tsv"
    rows = dict.fromkeys(
        f"{concept.id}\t{name}\n"
        for concept in kb
        for name in (concept.name, concept.names[-1].text)
    )
    path.write_text("id\tlabel\n" + "".join(rows), "utf-8")
    seconds, processor = [], []
    for _ in range(runs):
        verifier = FileVerifier(kb)
        start, started = time.perf_counter(), time.process_time()
        list(verifier.verify(path))
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - started)
    return {
        "pairs": len(rows),
        "runs": runs,
        "pairs_per_second": len(rows) / statistics.median(seconds),
        "pairs_per_processor_second": len(rows) / statistics.median(processor),
    }


def main() -> None:
    """Measure, print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="HPO with one seed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seeds = (1,) if options.quick else (1, 2, 3)
    names = ("hpo",) if options.quick else tuple(SOURCES)
    found: dict[str, Any] = {"faults": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source in names:
            path, columns, below = SOURCES[source]
            kb = build(options.data / path, columns, folder / source)
            found["faults"][source] = [
                row for seed in seeds for row in measure(kb, below, seed, folder)
            ]
            if not options.json:
                for row in found["faults"][source]:
                    print(source, row)
            if source == "hpo":
                found["natural"] = natural(
                    kb, build(options.data / OLD, {}, folder / "old"), folder
                )
                found["speed"] = speed(kb, folder, 3 if options.quick else 9)
    if options.json:
        about = {
            "command": describe_command("verify_faults.py", sys.argv[1:]),
            "commit": describe_commit(),
            "machine": describe_machine(),
        }
        print(json.dumps({**about, **found}, ensure_ascii=False))
    else:
        print(found["natural"]["counts"], found["speed"])


if __name__ == "__main__":
    main()

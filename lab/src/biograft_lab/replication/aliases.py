"""Linking of aliases that a store was not given, in several spellings (Chinese diseases).

One alias of each disease of the graph is sampled and held out; the store is built from the rest.
The held-out names are linked as they are, in traditional characters, in full-width characters, and
with a space in the middle. Names that are still a name of the store are left out. Names mixed with
Latin letters or digits are also reported apart.
"""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from biograft.artifacts import new_file
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.kb.sources.files import read_lines
from biograft.linking import Linker, build_index
from biograft.linking.index import open_index
from biograft.progress import Progress
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.runner import (
    ExperimentJob,
    missing_data,
    parse_settings,
    parse_variants,
)

TRIPLES = "zh/medical_kg/triples_derived.tsv.gz"
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
Held = list[tuple[str, str]]


@cache
def _converter() -> Any:
    from opencc import OpenCC

    return OpenCC("s2t")


SPELLINGS: dict[str, Callable[[str], str]] = {
    "unchanged": lambda text: text,
    "traditional": lambda text: str(_converter().convert(text)),
    "full width": lambda text: text.translate(_FULL_WIDTH),
    "with a space": lambda text: f"{text[: len(text) // 2]} {text[len(text) // 2 :]}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasSettings:
    """There is nothing to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasVariant:
    """The search: lexical, and dense too if an encoder is given."""

    encoder: str = ""


class Aliases:
    """Runs experiments of kind ``aliases``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings and variants that are not known."""
        parse_settings(experiment, AliasSettings)
        parse_variants(experiment, AliasVariant)

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        return experiment.smaller({}, {})

    def run(self, job: ExperimentJob) -> None:
        """Hold names out, build the store, link."""
        results = job.results()
        for seed in job.experiment.seeds:
            for label, variant in parse_variants(job.experiment, AliasVariant).items():
                key = {"set": "chinese-aliases", "split": "test", "seed": seed, "config": label}
                if not results.has(key):
                    job.add(results, key, _measure(job, seed, label, variant))


def _measure(job: ExperimentJob, seed: int, label: str, variant: AliasVariant) -> dict[str, Any]:
    work = job.work / f"aliases-{seed}"
    held = _hold_out(job.data / TRIPLES, work, seed)
    kb = KnowledgeBase.open(_store(work))
    queries = [(alias, concept) for alias, concept in held if not kb.find(alias)]
    encoder = None
    if variant.encoder:
        from biograft.models import TextEncoder

        encoder = TextEncoder.from_pretrained(str(job.input(variant.encoder)))
    index = work / f"index-{label}"
    if not index.exists():
        build_index(kb, index, encoder, progress=Progress())
    linker = Linker(kb, open_index(kb, index).search)
    spellings = {name: _link(linker, kb, queries, spell) for name, spell in SPELLINGS.items()}
    return {
        "acc@1": spellings["unchanged"]["all"]["acc@1"],
        "n_concepts": len(kb),
        "n_names": kb.n_names,
        "n_held_out": len(held),
        "spellings": spellings,
    }


def _hold_out(path: Path, work: Path, seed: int) -> Held:
    """Sample an alias of each disease and write the triples without it."""
    if not path.exists():
        raise missing_data(path)
    rows = list(csv.DictReader([line for _, line in read_lines(path)], delimiter="\t"))
    aliases = defaultdict(list)
    for row in rows:
        if row["relation"] == "alias" and row["head"] != row["tail"]:
            aliases[row["head"]].append(row["tail"])
    rng = random.Random(seed)
    held = {name: rng.choice(sorted(set(group))) for name, group in sorted(aliases.items())}
    pairs = set(held.items())
    if not (work / "triples.tsv").exists():
        work.mkdir(parents=True, exist_ok=True)
        left = [row for row in rows if not _is_held_out(row, pairs)]
        with new_file(work / "triples.tsv") as file:
            for cells in (list(rows[0]), *(list(row.values()) for row in left)):
                file.write(("\t".join(cells) + "\n").encode())
    return [(alias, name) for name, alias in held.items()]


def _is_held_out(row: dict[str, str], pairs: set[tuple[str, str]]) -> bool:
    return row["relation"] == "alias" and (row["head"], row["tail"]) in pairs


def _store(work: Path) -> Path:
    if not (work / "kb").exists():
        source = SourceConfig(
            path=work / "triples.tsv", format="triples", language="zh", same_as=("alias",)
        )
        build_store(BuildConfig(sources=(source,)), work / "kb")
    return work / "kb"


def _link(
    linker: Linker, kb: KnowledgeBase, queries: Held, spell: Callable[[str], str]
) -> dict[str, Any]:
    """Return how often the disease is among the first concepts, of all and of mixed names."""
    linked = linker.link_mentions([spell(alias) for alias, _ in queries], 5)
    ranks = []
    for (_, name), candidates in zip(queries, linked, strict=True):
        gold = {match.concept for match in kb.find(name)}
        ids = [candidate.concept for candidate in candidates]
        ranks.append(next((rank for rank, each in enumerate(ids) if each in gold), None))
    mixed = [any(char.isascii() and char.isalnum() for char in alias) for alias, _ in queries]
    of_mixed = [rank for rank, is_mixed in zip(ranks, mixed, strict=True) if is_mixed]
    return {"all": _accuracy(ranks), "mixed": _accuracy(of_mixed)}


def _accuracy(ranks: Sequence[int | None]) -> dict[str, Any]:
    hits = {k: sum(rank is not None and rank < k for rank in ranks) for k in (1, 5)}
    n = max(1, len(ranks))
    return {"n": len(ranks), **{f"acc@{k}": round(100 * hit / n, 2) for k, hit in hits.items()}}

"""Linking by generation with a small model: what pre-training on names gives, and what else does.

For each set a small BART is made from scratch. It learns the names of the train dictionary
(``genbioel-pretrain-cpu``) or nothing, then the mentions of the train part
(``genbioel-finetune-SET-cpu``, the model of the last step), and is asked the test part with the
test dictionary, whose names it is kept to. Nothing is chosen on a test part; the share of
generation beside a search is fitted on the dev part.

    python benchmarks/genbioel_linking.py --sets ncbi-disease-text --seeds 0,1,2
    python benchmarks/genbioel_linking.py --variants targets --sets ncbi-disease-text
    python benchmarks/genbioel_linking.py --variants ensemble --encoder DIR

Variants: ``start`` (the model before it learns from mentions), ``main`` (with and without
pre-training), ``targets`` (the paper's table: which name is learned, which may be generated,
with the prompt or without), ``ensemble`` (beside letters, vectors, and both). What is there is
not done again, and a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from command_line import RESULTS, ROOT, add_data, run_with, seeds, some_of, start_parser
from linking_accuracy import figures_of
from linking_sets import SETS, LinkingSet
from linking_supervised import read_resolved
from machine import describe_command, describe_commit
from result_rows import Results

from biograft.evaluation import EvaluationConfig, LinkQuery, evaluate_linking, sub_populations
from biograft.kb import KnowledgeBase
from biograft.linking import Linker, build_index
from biograft.linking.fusion import FusedSearch
from biograft.linking.generative import GenerativeRanker
from biograft.linking.generative.training import fit_mixing, measure
from biograft.linking.index import open_index
from biograft.linking.rankers import open_model
from biograft.linking.recipes import Lesson, LinkingRecipe, finetune
from biograft.pretraining.recipe import Recipe
from biograft.pretraining.run import pretrain
from biograft.progress import Progress

VARIANTS = ("start", "main", "targets", "ensemble")
RECIPES = {
    "ncbi-disease-text": "ncbi",
    "bc5cdr-disease-text": "bc5cdr",
    "bc5cdr-chemical": "bc5cdr",
    "ncbi-disease": "ncbi",
    "bc5cdr-disease": "bc5cdr",
}
KNOWN = tuple(name for name in SETS if name in RECIPES or name.startswith("askapatient"))


@dataclass(frozen=True, slots=True)
class Variant:
    """How a linker is trained."""

    start: str = "pretrained"
    target: str = "similar"
    names: str = "all"
    prompt: bool = True

    @property
    def changes(self) -> list[str]:
        """Say it as changes of a recipe."""
        return [
            f'config.target="{self.target}"',
            f'config.names.per_concept="{self.names}"',
            f"config.prompt={str(self.prompt).lower()}",
        ]

    def __str__(self) -> str:
        return f"{self.start}-{self.target}-{self.names}-{'prompt' if self.prompt else 'bare'}"


MAIN = (Variant("new"), Variant())
TARGETS = (
    Variant(),
    Variant(target="shortest"),
    Variant(target="random"),
    Variant(target="shortest", names="shortest"),
    Variant(target="random", names="random"),
    Variant(prompt=False),
)


class Bench:
    """One set: its stores, its models, and what they are asked."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.asked: LinkingSet = SETS[name]
        self.options, self.work = options, Path(options.work) / name
        self.base = self.asked.open_store(options.data, "train", options.work)
        self.store = self.asked.open_store(options.data, "test", options.work)
        self.recipe = f"genbioel-finetune-{RECIPES.get(name, 'aap')}-cpu"

    def queries(self, split: str, store: KnowledgeBase) -> list[LinkQuery]:
        """Read the queries of a part."""
        return read_resolved(self.asked, split, store, self.options.data)

    def pretrained(self) -> Path:
        """Give the model that has learned the names of the train dictionary, or the one told."""
        if self.options.pretrained:
            return Path(self.options.pretrained)
        out = self.work / "pretrained"
        if not (out / "done").exists():
            recipe = Recipe.load("genbioel-pretrain-cpu", self.options.pretrain_changes)
            resume = (out / "run.json").exists()
            pretrain(recipe, self.base, out, resume=resume, progress=Progress())
            (out / "done").touch()
        return out / "encoder"

    def finetuned(self, variant: Variant, seed: int) -> Path:
        """Give the linker that has learned the mentions of the train part."""
        out = self.work / str(variant) / f"seed-{seed}"
        if not (out / "done").exists():
            changes = [*variant.changes, f"config.training.seed={seed}", *self.options.changes]
            start = str(self.pretrained()) if variant.start == "pretrained" else ""
            recipe = LinkingRecipe.load(self.recipe, changes, start)
            lesson = Lesson(
                kb=self.base,
                train=self.queries("train", self.base),
                out=out,
                resume=(out / "run.json").exists(),
                progress=Progress(),
            )
            finetune(recipe, lesson)
            (out / "done").touch()
        return out / "model"

    def ask(self, linker: Linker) -> dict[str, Any]:
        """Ask the test part."""
        queries = self.asked.read_gold(self.options.data, "test").queries
        found = evaluate_linking(
            linker, self.store, queries, "lenient", EvaluationConfig(seed=0), Progress()
        )
        learned = self.asked.read_gold(self.options.data, "train").queries
        parts = sub_populations(found, self.store, learned)
        return {**figures_of(found), "populations": [part.to_json() for part in parts]}

    def searches(self) -> dict[str, FusedSearch]:
        """Give letters, vectors and both, over the test dictionary."""
        from biograft.nn import TextEncoder

        folder = self.work / "index"
        if not folder.exists():
            encoder = TextEncoder.from_pretrained(self.options.encoder)
            build_index(self.store, folder, encoder, progress=Progress())
        search = open_index(self.store, folder).search
        alone = {g.name: FusedSearch([g]) for g in search.generators}
        return {**alone, "lexical+dense": search}


def run(options: argparse.Namespace) -> None:
    """Train and ask what has no result yet."""
    results = Results(options.out)
    for name in options.sets:
        bench = Bench(name, options)
        for seed in options.seeds:
            for key, row in _rows(bench, seed, results, options.variants):
                about = {
                    "note": bench.asked.note,
                    "pretrained": Path(options.pretrained).name,
                    "changes": [*options.pretrain_changes, *options.changes],
                    "command": describe_command("genbioel_linking.py", sys.argv[1:]),
                    "commit": describe_commit(),
                }
                results.add(key, {**row, **about})
                told = {k: row[k] for k in ("n", "acc@1", "acc@5")}
                print(json.dumps({**key, **told}), flush=True)


def _rows(
    bench: Bench, seed: int, results: Results, variants: Sequence[str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    key = {"set": bench.asked.name, "split": "test", "scorer": "lenient", "seed": seed}
    if "start" in variants and not results.has(own := {**key, "config": "pretrained alone"}):
        yield own, _asked(bench, _without_context(bench.pretrained(), bench.store))
    wanted = [*(MAIN if "main" in variants else ()), *(TARGETS if "targets" in variants else ())]
    for variant in dict.fromkeys(wanted):
        if not results.has(own := {**key, "config": str(variant)}):
            yield own, _asked(bench, _open(bench.finetuned(variant, seed), bench.store))
    if "ensemble" in variants:
        yield from _ensembles(bench, key, seed, results)


def _asked(bench: Bench, ranker: GenerativeRanker) -> dict[str, Any]:
    """Ask a linker that generates names."""
    started = time.perf_counter()
    figures = bench.ask(Linker(bench.store, None, ranker=ranker))
    seconds = time.perf_counter() - started
    # names that concepts share count once here, as in the paper
    by_name = measure(ranker, None, bench.queries("test", bench.store))
    return {
        **figures,
        **{name: 100 * by_name[name] for name in ("recall@1", "recall@5")},
        "n_names": bench.store.n_names,
        "n_concepts": len(bench.store),
        "trie_bytes": ranker.names.nbytes,
        "seconds": seconds,
    }


def _open(model: Path, store: KnowledgeBase) -> GenerativeRanker:
    ranker = open_model(model, store)
    if not isinstance(ranker, GenerativeRanker):
        raise TypeError(f"{model}: expected a linker that writes names")
    return ranker


def _without_context(model: Path, store: KnowledgeBase) -> GenerativeRanker:
    """Open what has learned names alone: it has never seen a mention in a text."""
    opened = _open(model, store)
    config = replace(opened.config, context_words=0)
    return GenerativeRanker(store, opened.namer, opened.names, config)


def _ensembles(
    bench: Bench, key: dict[str, Any], seed: int, results: Results
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Ask searches by themselves, and generation beside each of them."""
    searches = bench.searches()
    vectors = sum(file.stat().st_size for file in (bench.work / "index" / "dense").glob("*.npy"))
    for name, search in searches.items():
        if not results.has(own := {**key, "config": name}):
            yield own, {**bench.ask(Linker(bench.store, search)), "vectors_bytes": vectors}
    ranker = _open(bench.finetuned(Variant(), seed), bench.store)
    dev = bench.queries("dev", bench.store)
    for name, search in searches.items():
        if results.has(own := {**key, "config": f"generative+{name}"}):
            continue
        mixing, told = fit_mixing(ranker, search, dev)
        mixed = GenerativeRanker(ranker.kb, ranker.namer, ranker.names, ranker.config, mixing)
        yield own, {**bench.ask(Linker(bench.store, search, ranker=mixed)), "dev": told}


def main() -> None:
    """Parse the command line and run."""
    parser = start_parser(__doc__)
    add = parser.add_argument
    add(
        "--sets",
        type=some_of(KNOWN),
        default=["ncbi-disease-text"],
        help=f"some of {','.join(KNOWN)}",
    )
    add("--variants", type=some_of(VARIANTS), default=["start", "main"])
    add("--seeds", type=seeds, default=[0], metavar="0,1,2")
    add("--encoder", metavar="DIR", default="", help="what makes vectors, for the ensemble")
    add("--pretrained", metavar="DIR", default="", help="begin with this, not with the set's names")
    add("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE",
        help="change a value of the fine-tuning recipe")  # fmt: skip
    add("--pretrain-set", dest="pretrain_changes", action="append", default=[],
        metavar="KEY=VALUE", help="change a value of genbioel-pretrain-cpu")  # fmt: skip
    add_data(parser)
    add("--work", type=Path, default=ROOT / "build" / "genbioel", help="for stores and models")
    add("--out", type=Path, default=RESULTS / "genbioel_linking.json")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()

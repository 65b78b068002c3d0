"""What mentions with known concepts add: everything trained together, several seeds.

For each set and seed: the encoder is fine-tuned on the train part (``linker-encoder-cpu``), and
the ranker learns from the dev part, whose mentions the encoder has not seen (``linker-ranker``).
The test part is asked once, with the published test dictionary, which holds mentions of train and
dev as names; where there is none, with the dictionary that the ranker's run grew by them. Vectors
alone, and letters and vectors without the ranker, are told too.

    python benchmarks/linking_supervised.py --encoder DIR --sets ncbi-disease --seeds 0,1,2

What is there is not done again, and a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command_line import RESULTS, ROOT, add_data, run_with, seeds, some_of, start_parser
from linking_accuracy import figures_of
from linking_sets import SETS, LinkingSet
from machine import describe_command, describe_commit
from result_rows import Results

from biograft.evaluation import (
    EvaluationConfig,
    LinkQuery,
    StoreIds,
    evaluate_linking,
    resolve_gold,
)
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.fusion import FusedSearch
from biograft.linking.index import open_index, update_index
from biograft.linking.rankers import open_model
from biograft.linking.recipes import Lesson, LinkingRecipe, finetune
from biograft.progress import Progress

TRAINED = tuple(name for name, asked in SETS.items() if "train" in asked.gold)
CONFIGURATIONS = ("dense", "both", "ranked")


def run(options: argparse.Namespace) -> None:
    """Train and ask every set with every seed that has no result yet."""
    results = Results(options.out)
    for seed in options.seeds:
        for name in options.sets:
            key = {"set": name, "split": "test", "scorer": "lenient", "seed": seed}
            if all(results.has({**key, "config": each}) for each in CONFIGURATIONS):
                continue
            started = time.perf_counter()
            for configuration, figures in _measure(SETS[name], seed, options).items():
                row = {
                    **figures,
                    "note": SETS[name].note,
                    "changes": options.changes,
                    "seconds": time.perf_counter() - started,
                    "command": describe_command("linking_supervised.py", sys.argv[1:]),
                    "commit": describe_commit(),
                }
                results.add({**key, "config": configuration}, row)
                told = {k: row[k] for k in ("n", "acc@1", "acc@5")}
                print(json.dumps({**key, "config": configuration, **told}), flush=True)


def _measure(asked: LinkingSet, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Train what is not there yet, and ask the test part."""
    work = options.work / asked.name / f"seed-{seed}"
    base = asked.open_store(options.data, "train", options.work)
    known = {split: read_resolved(asked, split, base, options.data) for split in ("train", "dev")}
    encoder = _finetune_encoder(base, known["train"], work / "encoder", seed, options)
    ranked = work / "ranker"
    changes = [f"config.seed={seed}", "config.epochs=60", "config.weight_decay=0.1"]
    recipe = LinkingRecipe.load("linker-ranker", changes, str(encoder))
    lesson = Lesson(
        kb=base,
        train=known["dev"],
        known=known["train"],
        out=ranked,
        resume=(ranked / "run.json").exists(),
        progress=Progress(),
    )
    finetune(recipe, lesson)
    store, index = KnowledgeBase.open(ranked / "kb"), ranked / "index"
    if asked.own_dictionaries:
        store, index = asked.open_store(options.data, "test", options.work), work / "index"
        _take_over(ranked / "index", store, index)
    search = open_index(store, index).search
    dense = FusedSearch([g for g in search.generators if g.name == "dense"])
    linkers = {
        "dense": Linker(store, dense),
        "both": Linker(store, search),
        "ranked": Linker(store, search, ranker=open_model(ranked / "model", store)),
    }
    gold = asked.read_gold(options.data, "test").queries
    config = EvaluationConfig(seed=0)
    return {
        name: figures_of(evaluate_linking(linker, store, gold, "lenient", config))
        for name, linker in linkers.items()
    }


def _take_over(made: Path, store: KnowledgeBase, folder: Path) -> None:
    """Make the index of a store, taking over the vectors of names that another holds."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(made, folder)
    update_index(store, folder, progress=Progress())


def _finetune_encoder(
    base: KnowledgeBase,
    train: Sequence[LinkQuery],
    out: Path,
    seed: int,
    options: argparse.Namespace,
) -> Path:
    changes = [f"config.training.seed={seed}", *options.changes]
    recipe = LinkingRecipe.load("linker-encoder-cpu", changes, options.encoder)
    if not (out / "done").exists():
        resume = (out / "checkpoints").exists()
        lesson = Lesson(kb=base, train=train, out=out, resume=resume, progress=Progress())
        finetune(recipe, lesson)
        (out / "done").touch()
    return out / "encoder"


def read_resolved(
    asked: LinkingSet, split: str, base: KnowledgeBase, data: Path
) -> list[LinkQuery]:
    """Read queries, their ids spelled as the store does."""
    gold = asked.read_gold(data, split)
    return list(resolve_gold(gold.queries, StoreIds(base)).queries)


def _parse() -> argparse.Namespace:
    parser = start_parser(__doc__)
    add = parser.add_argument
    add("--sets", type=some_of(TRAINED), default=list(TRAINED), help=f"some of {','.join(TRAINED)}")
    add("--encoder", required=True, metavar="DIR", help="what fine-tuning starts from")
    add("--seeds", type=seeds, default=[0, 1, 2], metavar="0,1,2")
    add("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE",
        help="change a value of linker-encoder-cpu")  # fmt: skip
    add_data(parser)
    add("--work", type=Path, default=ROOT / "build" / "supervised", help="for stores and models")
    add("--out", type=Path, default=RESULTS / "linking_supervised.json")
    return parser.parse_args()


def main() -> None:
    """Parse the command line and run."""
    run_with(run, _parse())


if __name__ == "__main__":
    main()

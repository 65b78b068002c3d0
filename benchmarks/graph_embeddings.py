"""Speed and ranking accuracy of graph embeddings, beside PyKEEN's.

quality  TransE and TransR on UMLS-135 at equal settings (dim, epochs, batch, margin loss, one
         negative, Adam, its rate), mean of seeds; ours with sparse Adagrad beside them
speed    one epoch of synthetic triples: sparse Adagrad and dense Adam against PyKEEN's Adam
chinese  TransE on the Chinese disease graph, with a seeded random split
pharmkg  TransE trained on PharmKG's valid split (the train split is not available), ranked on test

    python benchmarks/graph_embeddings.py --quick --json
    python benchmarks/graph_embeddings.py --pykeen-python other/bin/python --json

PyKEEN runs in an environment of its own: pip install torch==2.13.0 pykeen==1.11.1. Without one
its side is reported as skipped. MRR and hits are in percent.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from graph_triples import number_rows, read_rows, read_splits, sample_triples
from machine import describe_command, describe_commit, peak_gib
from script_options import add_data, run_with, some_of, start_parser

from biograft.compute import describe_machine, n_cores
from biograft.graph.embedding import GraphRecipe, predict_links
from biograft.graph.embedding.steps import EmbeddingRun, new_run
from biograft.graph.embedding.training import train_epochs
from biograft.graph.triples import SPLITS, Triples

PARTS = ("quality", "speed", "chinese", "pharmkg")
EQUAL = {"dim": 50, "batch": 256, "margin": 1.0, "negatives": 1, "learning_rate": 0.01}
EPOCHS = 100
SPEED = {"dim": 100, "batch": 4096, "margin": 1.0, "negatives": 1, "learning_rate": 0.001}
SIZES = {"transe": 1_000_000, "transr": 100_000}
"""Triples timed; seconds are reported for a million."""
_SCRIPT = Path(__file__).with_name("pykeen_embeddings.py")
_NO_PYKEEN = {"skipped": "PyKEEN: name an interpreter that has it with --pykeen-python"}


def run(options: argparse.Namespace) -> None:
    """Measure the parts and print the result."""
    measures = {
        "quality": _quality,
        "speed": _speed,
        "chinese": _chinese,
        "pharmkg": _pharmkg,
    }
    results = {name: measures[name](options) for name in options.parts}
    result = {
        "benchmark": "graph_embeddings",
        "command": describe_command("graph_embeddings.py", sys.argv[1:]),
        "commit": describe_commit(),
        **describe_machine(),
        **results,
        "peak_gib": round(peak_gib(), 3),
    }
    print(json.dumps(result, ensure_ascii=False) if options.json else json.dumps(result, indent=1))


def _recipe(model: str, settings: dict[str, Any], kind: str, rate: float) -> GraphRecipe:
    bounds = {"transe": ("unit", "none"), "transr": ("ball", "ball")}[model]
    values = {
        "model.kind": model,
        "model.dim": settings["dim"],
        "model.entity_bound": bounds[0],
        "model.relation_bound": bounds[1],
        "sampling.kind": "uniform",
        "sampling.filtered": False,
        "sampling.negatives": settings["negatives"],
        "loss.kind": "margin",
        "loss.margin": settings["margin"],
        "optimiser.kind": kind,
        "optimiser.learning_rate": rate,
        "training.batch": settings["batch"],
        "training.epochs": settings["epochs"],
        "training.seed": settings["seed"],
    }
    return GraphRecipe.load("transe", [f"{k}={json.dumps(v)}" for k, v in values.items()])


def _train(triples: Triples, recipe: GraphRecipe) -> tuple[EmbeddingRun, float]:
    train = triples.of_split("train")
    started = new_run(train, recipe)
    start = time.perf_counter()
    done = train_epochs(train, recipe, started, lambda _: False)
    return done, time.perf_counter() - start


def _ours(
    triples: Triples, model: str, settings: dict[str, Any], how: tuple[str, float]
) -> dict[str, Any]:
    recipe = _recipe(model, settings, *how)
    done, seconds = _train(triples, recipe)
    result = {"seconds": seconds, "loss": done.losses[-1]}
    if (triples.splits == SPLITS.index("test")).any():
        metrics = predict_links(done.tables, recipe.model, triples).to_json()
        result |= {name: metrics[name] for name in ("mrr", "hits@10")}
    return result


def _pykeen(python: str, triples: Triples, model: str, settings: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        for split in SPLITS:
            part = triples.of_split(split)
            if len(part):
                rows = np.stack([part.heads, part.relations, part.tails], 1)
                np.save(Path(folder) / f"{split}.npy", rows)
        sizes = {"n_entities": triples.n_entities, "n_relations": len(triples.relation_names)}
        request = {**settings, **sizes, "model": model, "folder": folder}
        request |= {"optimiser": "Adam", "threads": n_cores()}
        done = subprocess.run(
            [python, str(_SCRIPT)],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"skipped": f"PyKEEN failed: {last}"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _mean(runs: list[dict[str, Any]]) -> dict[str, Any]:
    skipped = [run for run in runs if "skipped" in run]
    if skipped:
        return skipped[0]
    means = {key: round(statistics.mean(run[key] for run in runs), 4) for key in runs[0]}
    if len(runs) > 1 and "mrr" in means:
        means["mrr_deviation"] = round(statistics.stdev(run["mrr"] for run in runs), 4)
    return means


def _quality(options: argparse.Namespace) -> dict[str, Any]:
    triples = read_splits(options.data / "kg/umls135", ".txt")
    if triples is None:
        return {"skipped": "kg/umls135 is not there"}
    seeds = range(1 if options.quick else options.seeds)
    epochs = 20 if options.quick else EPOCHS
    result: dict[str, Any] = {"settings": {**EQUAL, "epochs": epochs}}
    for model in options.models:
        each = [{**EQUAL, "epochs": epochs, "seed": seed} for seed in seeds]
        result[model] = {
            "seeds": len(seeds),
            "adam": _mean([_ours(triples, model, s, ("adam", s["learning_rate"])) for s in each]),
            "adagrad": _mean([_ours(triples, model, s, ("adagrad", 0.1)) for s in each]),
            "pykeen": _NO_PYKEEN,
        }
        if options.pykeen_python:
            python = options.pykeen_python
            result[model]["pykeen"] = _mean([_pykeen(python, triples, model, s) for s in each])
    return result


def _speed(options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"settings": SPEED}
    settings = {**SPEED, "epochs": 1, "seed": 0}
    for model in options.models:
        size = SIZES[model]
        n = size // 10 if options.quick else size
        triples = sample_triples(n)
        _ours(sample_triples(5000), model, settings, ("adagrad", 0.1))  # compiles
        _ours(sample_triples(5000), model, settings, ("adam", 0.001))
        scale = 1_000_000 / n
        part: dict[str, Any] = {"n_triples": n}
        for kind, rate in (("adagrad", 0.1), ("row-adagrad", 0.1), ("adam", 0.001)):
            runs = [_ours(triples, model, settings, (kind, rate)) for _ in range(options.runs)]
            part[kind] = round(scale * statistics.median(run["seconds"] for run in runs), 3)
        part["pykeen"] = "skipped"
        if options.pykeen_python:
            theirs = _pykeen(options.pykeen_python, triples, model, settings)
            part["pykeen"] = round(scale * theirs["seconds"], 3) if "seconds" in theirs else theirs
        if isinstance(part["pykeen"], float):
            for kind in ("adagrad", "row-adagrad", "adam"):
                part[f"{kind}_over_pykeen"] = round(part["pykeen"] / part[kind], 2)
        result[model] = part
    return result


def _chinese(options: argparse.Namespace) -> dict[str, Any]:
    path = options.data / "zh/medical_kg/triples_derived.tsv.gz"
    if not path.exists():
        return {"skipped": "zh/medical_kg is not there"}
    rows = list(dict.fromkeys(read_rows(path)))
    splits = np.random.default_rng(0).choice(3, len(rows), p=[0.9, 0.05, 0.05])
    return _train_by_recipe(number_rows(rows, splits), options)


def _pharmkg(options: argparse.Namespace) -> dict[str, Any]:
    folder = options.data / "kg/pharmkg8k"
    if not folder.exists():
        return {"skipped": "kg/pharmkg8k is not there"}
    learned = list(dict.fromkeys(read_rows(folder / "valid.tsv.gz")))
    queries = [row for row in read_rows(folder / "test.tsv.gz") if row not in set(learned)]
    splits = np.repeat([0, 2], [len(learned), len(queries)])
    return _train_by_recipe(number_rows(learned + queries, splits), options)


def _train_by_recipe(triples: Triples, options: argparse.Namespace) -> dict[str, Any]:
    """Train by the recipe ``transe`` and rank the test split."""
    epochs = 2 if options.quick else 30
    recipe = GraphRecipe.load("transe", [f"training.epochs={epochs}", "training.batch=4096"])
    done, seconds = _train(triples, recipe)
    start = time.perf_counter()
    result = predict_links(done.tables, recipe.model, triples).to_json()
    return {
        "n_train": len(triples.of_split("train")),
        "n_entities": triples.n_entities,
        "epochs": epochs,
        "seconds": round(seconds, 1),
        "ranking_seconds": round(time.perf_counter() - start, 1),
        **{key: result[key] for key in ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank", "n")},
    }


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--parts", type=some_of(PARTS), default=list(PARTS))
    parser.add_argument("--models", type=some_of(SIZES), default=list(SIZES))
    parser.add_argument("--pykeen-python", default="", help="an interpreter that has PyKEEN")
    parser.add_argument("--seeds", type=int, default=3, help="seeds for the mean")
    parser.add_argument("--runs", type=int, default=3, help="runs for the median")
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--json", action="store_true", help="one line")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()

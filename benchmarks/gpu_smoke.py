"""Whether every shipped recipe trains on this machine's GPU, at the size of BERT and BART base.

Each family of pre-training and fine-tuning recipes makes some steps on synthetic data (see
synthetic_corpus.py), with random weights, in a temporary folder. Recipes are loaded as a user loads
them, with the encoder and the number of steps changed; of recipes that differ only in size the one
for a GPU runs. For each: whether all losses are finite, the peak memory (of the device, on a
processor of the process so far), and tokens per second, padding included, without the first batch.
A family that fails is reported with its error, and the exit status is 1.

Without a GPU the script says so and exits with 0, unless --device cpu is given.

    python benchmarks/gpu_smoke.py --json >benchmarks/results/gpu_smoke.json       minutes on a GPU
    python benchmarks/gpu_smoke.py --device cpu --quick --json                     tiny models
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit, peak_gib
from script_options import run_with, start_parser

from biograft.compute import describe_machine
from biograft.errors import ConfigError
from biograft.recipe import shipped_recipes

KINDS = ("pretrain", "task", "linker", "graph")
_BASE: dict[str, Any] = {
    "width": 768,
    "layers": 12,
    "heads": 12,
    "feed_forward": 3072,
    "max_length": 512,
}
_TINY: dict[str, Any] = {"width": 32, "layers": 3, "heads": 2, "feed_forward": 64, "max_length": 64}
_MAX_TOKENS, _BATCH_SIZE = 48, 32
"""Tokens of a sequence, and sequences of an update of pre-training, in a quick run."""


def families() -> dict[str, str]:
    """Return the kind of each recipe that stands for a family: those without a larger form."""
    found = {name: kind for kind in KINDS for name in shipped_recipes(kind)}
    return {
        name: kind
        for name, kind in found.items()
        if name.removesuffix("-cpu") == name or name.removesuffix("-cpu") not in found
        if not name.startswith("genbioel-finetune-")  # for one data set each
    }


class Meter:
    """Counts the tokens that models embed, and the time between their first and last batch."""

    def __init__(self, vocabularies: Sequence[int]) -> None:
        self._vocabularies = vocabularies
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.n_tokens, self.first, self.last = 0, 0.0, 0.0

    def __call__(self, module: Any, inputs: tuple[Any, ...]) -> None:
        """Count a call of a module; a task may have added some tokens to the vocabulary."""
        size = getattr(module, "num_embeddings", 0)
        if not any(0 <= size - known <= 64 for known in self._vocabularies):
            return
        now = time.perf_counter()
        if self.first:
            self.n_tokens += inputs[0].numel()
        self.first, self.last = self.first or now, now

    @property
    def per_second(self) -> float | None:
        """Tokens per second, without the first batch."""
        return self.n_tokens / (self.last - self.first) if self.last > self.first else None


class Smoke:
    """The data, the untrained models, and one run of each family."""

    def __init__(self, folder: Path, options: argparse.Namespace, device: str) -> None:
        from synthetic_corpus import SyntheticCorpus

        self.folder, self.quick, self.steps = folder, options.quick, options.steps
        self.device = device
        sizes = (60, 40, 16) if self.quick else (5000, 1500, 200)
        self.corpus = SyntheticCorpus(folder / "corpus", *sizes)
        self.size = _TINY if self.quick else _BASE
        self.bert, n_bert = self._make_bert()
        self.bart, n_bart = self._make_bart()
        self.meter = Meter((n_bert, n_bart))

    def _make_bert(self) -> tuple[str, int]:
        from biograft.models.scratch_configs import NewBert

        config = NewBert(**self.size, n_tokens=600 if self.quick else 30_000)
        made = config.create(self.corpus.texts, 0)
        made.model.save_pretrained(self.folder / "bert")
        made.tokenizer.save_pretrained(self.folder / "bert")
        return str(self.folder / "bert"), len(made.tokenizer)

    def _make_bart(self) -> tuple[str, int]:
        from biograft.models.scratch_configs import NewSeq2Seq

        size = {**self.size, "layers": self.size["layers"] // 2}
        made = NewSeq2Seq(**size, n_tokens=700 if self.quick else 50_000).create(
            self.corpus.texts, 0
        )
        made.model.save_pretrained(self.folder / "bart")
        made.tokenizer.save_pretrained(self.folder / "bart")
        return str(self.folder / "bart"), len(made.tokenizer)

    def pretrain(self, name: str, out: Path) -> None:
        """Run a recipe of pre-training."""
        from biograft.training.pretraining.recipe import PretrainingRecipe, pretrain

        _, values = PretrainingRecipe.resolve(name)
        stream, knowledge = values["stream"], values.get("knowledge", {})
        changes = self._training("training.")
        changes += [f"training.batch_size={_BATCH_SIZE}"] * self.quick
        if stream.get("kind") == "annotated_text":
            changes.append(self._path("stream.shards", "shards"))
            changes += [f"stream.max_length={_MAX_TOKENS}"] * self.quick
        if "segmentation" in stream:
            changes.append(self._path("stream.segmentation", "segmentation"))
        changes += [
            self._path(f"knowledge.{key}", key)
            for key in ("vectors", "neighbours")
            if key in knowledge
        ]
        layers = knowledge.get("layers", {})
        changes += [f"knowledge.layers.{layer}.after=2" for layer in layers if self.quick]
        writes = stream.get("kind") == "name_templates"
        changes += [f"encoder.max_length={_MAX_TOKENS}"] * (self.quick and writes)
        recipe = PretrainingRecipe.load(name, changes, encoder=self.bart if writes else self.bert)
        pretrain(recipe, self.corpus.kb, out)

    def task(self, name: str, out: Path) -> None:
        """Run a recipe of a task, one epoch of as many examples as the steps take."""
        from biograft.models.tasks.task import TaskExamples
        from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task

        changes = ["search.seeds=[1]", "config.training.epochs=1"]
        if self.quick:
            changes.append(f"encoder.max_length={_MAX_TOKENS}")
            changes += ["config.overlap=8"] * name.startswith("ner")
        recipe = TaskRecipe.load(name, changes, encoder=self.bert)
        n = self.steps * recipe.config.training.batch_size
        train, dev = (
            TaskExamples(tuple(self.corpus.examples(recipe.task, count))) for count in (n, 8)
        )
        finetune_task(recipe, TaskTrainingData(train=train, dev=dev, out=out))

    def linker(self, name: str, out: Path) -> None:
        """Run a recipe of a linker."""
        from biograft.linking import build_index
        from biograft.training.linkers.recipes import LinkerRecipe, LinkerTrainingData, finetune

        _, values = LinkerRecipe.resolve(name)
        kind, small = values["linker"], ["config.epochs=2", "config.folds=2", "config.ensemble=1"]
        changes = small if kind == "ranker" else self._training("config.training.")
        bart = kind == "generative" and "decoder" not in values["config"]
        encoder = self.bart if bart else "" if kind == "ranker" else self.bert
        if self.quick:
            context = {
                "generative": ["config.context_words=8", "config.beam.beams=2"],
                "rerank": [f"config.max_length={_MAX_TOKENS}"],
                "static": ["config.width=16", "config.hidden=16"],
            }
            changes += context.get(kind, [])
        index = None
        if kind in ("ranker", "rerank"):
            index = out.with_name(f"{out.name}-index")
            build_index(self.corpus.kb, index)
        recipe = LinkerRecipe.load(name, changes, encoder=encoder)
        queries = self.corpus.queries(60 if self.quick else 600)
        finetune(recipe, LinkerTrainingData(kb=self.corpus.kb, train=queries, out=out, index=index))

    def graph(self, name: str, out: Path) -> None:
        """Run a recipe of graph embeddings, one epoch."""
        from biograft.graph.embedding import EmbeddingExecution, GraphRecipe, embed_graph

        recipe = GraphRecipe.load(name, ["training.epochs=1"])
        on_gpu = recipe.model.kind == "transe" and self.device == "cuda"
        execution = EmbeddingExecution(device="cuda" if on_gpu else "cpu")
        result = embed_graph(self.corpus.kb, recipe, out, execution=execution)
        out.joinpath("metrics.jsonl").write_text(json.dumps({"loss": result.run.losses[-1]}))

    def _training(self, table: str) -> list[str]:
        shortened = {"steps": self.steps, "save_every": self.steps, "warmup_steps": 0}
        shortened["log_every"] = 1
        return [f"{table}{key}={value}" for key, value in shortened.items()]

    def _path(self, key: str, name: str) -> str:
        return f"{key}={json.dumps(str(self.corpus.path(name)))}"


def measure(smoke: Smoke, name: str, kind: str, device: str) -> dict[str, Any]:
    """Run one family; return its result, or its error."""
    import torch

    out, started = smoke.folder / "runs" / name, time.perf_counter()
    out.parent.mkdir(exist_ok=True)
    smoke.meter.reset()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    run: Callable[[str, Path], None] = getattr(smoke, kind)
    try:
        run(name, out)
    except Exception as error:
        traceback.print_exc()
        return {"ok": False, "error": f"{type(error).__name__}: {error}".partition("\n")[0]}
    losses = _losses(out)
    used = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else peak_gib()
    speed = smoke.meter.per_second
    return {
        "ok": all(map(math.isfinite, losses)),
        "n_losses": len(losses),
        "loss": losses[-1] if losses else None,
        "peak_gib": round(used, 3),
        "tokens_per_second": round(speed) if speed else None,
        "seconds": round(time.perf_counter() - started, 1),
    }


def _losses(out: Path) -> list[float]:
    """Read the losses that a run has logged."""
    lines = [line for path in out.rglob("metrics.jsonl") for line in path.read_text().splitlines()]
    return [float(row["loss"]) for row in map(json.loads, lines) if row.get("loss") is not None]


def run(options: argparse.Namespace) -> None:
    """Run all families and print the result."""
    if options.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and options.device != "cpu":
        print("no GPU here; --device cpu --quick runs tiny models instead", file=sys.stderr)
        print(json.dumps({"gpu": None, "families": {}}) if options.json else "nothing was run")
        return
    options.steps = options.steps or (2 if options.quick else 20)
    chosen = families()
    for name in (wanted := options.families.split(",") if options.families else []):
        if name not in chosen:
            raise ConfigError(f"--families: no {name!r}; known: {', '.join(chosen)}")
    torch.manual_seed(0)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        smoke = Smoke(Path(temporary), options, device)
        torch.nn.modules.module.register_module_forward_pre_hook(smoke.meter)
        for name in wanted or chosen:
            results[name] = measure(smoke, name, chosen[name], device)
            print(f"{name}: {results[name]}", file=sys.stderr)
    result = {
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
        "steps": options.steps,
        "model": smoke.size,
        "families": results,
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("gpu_smoke.py", sys.argv[1:]),
    }
    print(json.dumps(result) if options.json else f"{_count(results)} of {len(results)} run")
    if _count(results) < len(results):
        raise SystemExit(1)


def _count(results: dict[str, Any]) -> int:
    return sum(result["ok"] for result in results.values())


def main() -> None:
    """Run as a script."""
    parser = start_parser(__doc__)
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto", help="default: a GPU")
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="default: 20; quick: 2")
    parser.add_argument("--families", default="", metavar="NAME,...", help="some recipes only")
    parser.add_argument("--quick", action="store_true", help="tiny models and data")
    parser.add_argument("--json", action="store_true", help="the last line is one JSON object")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()

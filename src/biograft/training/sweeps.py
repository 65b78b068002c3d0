"""Sweeps: one run for each combination of values of a recipe; the best by dev is tested.

``run-1``, ``run-2`` ... are the runs; ``sweep.json`` and ``sweep.tsv`` have the values and the dev
score of each, ``best`` links to the best. It alone is trained with all seeds of a task, and tested.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biograft.artifacts import ArtifactKind, new_file
from biograft.display import Shown, table
from biograft.errors import BiograftError, ConfigError
from biograft.evaluation import EvaluationConfig, TextIndex, evaluate_linking, read_queries
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.index import build_encoder_index
from biograft.progress import Progress
from biograft.recipe import Overrides, Recipe, RecipeSource, check_kind
from biograft.text.tasks.rows import is_files, plain_rows
from biograft.training.finetune import finetune, split_data
from biograft.training.pretraining.recipe import pretrain
from biograft.training.run_folder import RUN

SWEEP = ArtifactKind(
    format="biograft-sweep",
    version=1,
    called="sweep",
    remedy="start it again in another folder",
    absent="start it without --resume",
    file="sweep.json",
    keys=("described", "rows"),
)
_ACCURACY, _BEST = "acc@1", "best"


@dataclass(frozen=True, slots=True, repr=False)
class SweepResult(Shown):
    """The runs of a sweep: the values and the dev score of each."""

    folder: Path
    """Folder of the sweep."""
    metric: str
    """Name of the dev score."""
    rows: Sequence[Mapping[str, Any]]
    """Values, score and folder of each run."""
    best: Mapping[str, Any]
    """The row with the highest dev score; the first of several."""
    test: float | None = None
    """The metric of the best run on the test set, if there is one."""

    def to_json(self) -> dict[str, Any]:
        """Return the sweep as plain values."""
        parts = {"metric": self.metric, "rows": self.rows, "best": self.best, "test": self.test}
        return {"folder": str(self.folder), **parts}

    def lines(self) -> list[list[str]]:
        """Return the cells of the table, the head first."""
        rows = [[*self.rows[0]], *(row.values() for row in self.rows)]
        return [[f"{x:.6g}" if isinstance(x, float) else str(x) for x in row] for row in rows]

    def _repr_html_(self) -> str:
        head, *rows = self.lines()
        return table(rows, head)


def sweep(
    recipe: RecipeSource,
    out: str | Path,
    grid: Mapping[str, Sequence[Any]],
    *,
    kb: KnowledgeBase | str | Path | None = None,
    data: Mapping[str, Any] | None = None,
    overrides: Overrides = (),
    encoder: str = "",
    resume: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> SweepResult:
    """Train with each combination of values, and name the best by its dev score.

    The score of a task is its main metric with the first ``search.choosing_seeds`` seeds, that of a
    linker acc@1 on the dev mentions, that of an alignment acc@1 on ``stream.dev``.

    Args:
        recipe: Name of a recipe, a TOML file, or a dictionary.
        out: Folder of the sweep.
        grid: Values by key; ``training.seed`` and others mean ``config.training`` where a recipe
            has it there.
        kb: Knowledge base, or its folder.
        data: As of ``finetune``; ``test`` is measured for the best run only.
        overrides: Changes of the recipe for all runs, as of ``Recipe.load``.
        encoder: Name or folder of an encoder, in place of the recipe's.
        resume: Continue an interrupted sweep; finished runs are not repeated.
        progress: Progress of training.
        options: Further options of ``finetune``.

    >>> rates = {"training.learning_rate": [1e-5, 3e-5]}
    >>> sweep("ner-cpu", "SWEEP", rates, data=files).best  # doctest: +SKIP
    {'training.learning_rate': 3e-05, 'run': 'run-2', 'dev f1': 0.81}
    """
    out, empty = Path(out), [key for key, values in grid.items() if not values]
    if empty or not grid:
        raise ConfigError(f"sweep: expected values of {', '.join(empty) or 'a key'}, found none")
    combined = [dict(zip(grid, each, strict=True)) for each in itertools.product(*grid.values())]
    tables = overrides if isinstance(overrides, Mapping) else {}
    changes = [] if tables else [*overrides]
    kind = Recipe.load(recipe, changes, encoder=encoder, **tables)
    recipes = [
        Recipe.load(recipe, [*changes, *_changes(kind, each)], encoder=encoder, **tables)
        for each in combined
    ]  # all are checked before the first is trained
    data = {
        key: value if is_files(value) else plain_rows(value) for key, value in (data or {}).items()
    }
    runs = _Runs(kb, data, progress or Progress(), options)
    described = {"recipe": kind.to_json(), "grid": {key: [*each] for key, each in grid.items()}}
    rows: list[dict[str, Any]] = []
    if resume and SWEEP.is_at(out):
        before = SWEEP.read(out)
        if before["described"] != json.loads(json.dumps(described)):
            raise ConfigError(
                f"{out}: was started with another recipe or grid; resume with the same"
            )
        rows = before["rows"]
    elif SWEEP.is_at(out):
        raise ConfigError(f"{out}: holds a sweep already; resume it (--resume)")
    for number in range(len(rows), len(combined)):
        name = f"run-{number + 1}"
        metric, score = runs.train(recipes[number], out / name)
        rows.append({**combined[number], "run": name, f"dev {metric}": score})
        SWEEP.write(out, {"described": described, "rows": rows}, overwrite=True)
        with new_file(out / "sweep.tsv", overwrite=True) as file:
            lines = _result(out, rows).lines()
            file.write("".join("\t".join(line) + "\n" for line in lines).encode())
    result = _result(out, rows)
    best = recipes[[*result.rows].index(result.best)]
    link = out / _BEST
    link.unlink(missing_ok=True)
    link.symlink_to(result.best["run"])
    return replace(result, test=runs.finish(best, out / result.best["run"]))


def _result(out: Path, rows: list[dict[str, Any]]) -> SweepResult:
    score = [*rows[0]][-1]
    best = max(rows, key=lambda row: row[score])
    return SweepResult(out, score.removeprefix("dev "), rows, best)


def _changes(recipe: Recipe, values: Mapping[str, Any]) -> list[str]:
    """Return the overrides of one combination, with the keys of this kind of recipe."""
    changes = []
    for key, value in values.items():
        written = json.dumps(value, ensure_ascii=False)
        if recipe.kind == "task" and key == "training.seed":
            changes += [f"search.seeds=[{written}]", "search.choosing_seeds=1"]
        else:
            inner = key.startswith("training.") and recipe.kind != "pretrain"
            changes.append(f"{'config.' if inner else ''}{key}={written}")
    return changes


def read_grid(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``key=value,value`` as the values of each key; what is not valid TOML is a string.

    >>> read_grid(["training.learning_rate=1e-5,3e-5", "encoder.pooling=cls,mean"])
    {'training.learning_rate': [1e-05, 3e-05], 'encoder.pooling': ['cls', 'mean']}
    """
    grid: dict[str, list[Any]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not (equals and "." in key):
            raise ConfigError(f"--sweep: expected table.key=value,value, found {text!r}")
        try:
            grid[key.strip()] = tomllib.loads(f"values = [{values}]")["values"]
        except tomllib.TOMLDecodeError:
            grid[key.strip()] = [value.strip() for value in values.split(",")]
    return grid


class _Runs:
    """Trains the runs of a sweep, and measures them."""

    def __init__(
        self, kb: Any, data: Mapping[str, Any], progress: Progress, options: Mapping[str, Any]
    ) -> None:
        self._kb, self._data, self._progress = kb, data, progress
        self._options = {**options, "kb": kb, "progress": progress}

    def train(self, recipe: Any, folder: Path) -> tuple[str, float]:
        """Train, or go on with what was interrupted; return metric and score on dev."""
        options = {"resume": RUN.is_at(folder), "data": {**self._data, "test": ()}}
        if recipe.kind == "task":
            options["seeds"] = self._seeds(recipe)[: recipe.search.choosing_seeds]
            return self._task(recipe, folder, "dev", **options)
        if recipe.kind == "linker":
            if not split_data(recipe.data, self._data)[1]["dev"]:
                raise ConfigError("dev: a sweep chooses by it; name a file")
            if self._options.get("seeds"):
                raise ConfigError("seeds: for a linker, sweep over training.seed")
            done: Any = finetune(recipe, folder, **{**self._options, **options})
            _check_finished(folder, done.finished)
            return _ACCURACY, self._link(recipe, folder, "dev")
        check_kind(recipe.name, recipe.kind, "pretrain", "linker", "task")
        if getattr(recipe.stream, "dev", None) is None:
            raise ConfigError("stream.dev: a sweep of pre-training chooses by it; name a file")
        trained = pretrain(
            recipe, self._kb, folder, resume=RUN.is_at(folder), progress=self._progress
        ).training
        _check_finished(folder, trained.finished)
        return _ACCURACY, float(json.loads((folder / "best.json").read_bytes())[_ACCURACY])

    def finish(self, recipe: Any, folder: Path) -> float | None:
        """Train the best run with all seeds, and measure it on the test set, if there is one."""
        tests = recipe.kind != "pretrain" and bool(split_data(recipe.data, self._data)[1]["test"])
        if recipe.kind == "task" and (
            tests or len(self._seeds(recipe)) > recipe.search.choosing_seeds
        ):
            split = "test" if tests else "dev"
            score = self._task(recipe, folder, split, data=self._data, resume=True)[1]
            return score if tests else None
        return self._link(recipe, folder, "test") if tests else None

    def _seeds(self, recipe: Any) -> Sequence[int]:
        seeds: Sequence[int] = self._options.get("seeds") or recipe.search.seeds
        return seeds

    def _task(self, recipe: Any, folder: Path, split: str, **options: Any) -> tuple[str, float]:
        done: Any = finetune(recipe, folder, **{**self._options, **options})
        metric = done.results["metric"]
        return metric, done.results[split][metric]["mean"]

    def _link(self, recipe: Any, folder: Path, split: str) -> float:
        """Compute acc@1 of a trained linker on a split."""
        index, kb = self._options.get("index"), KnowledgeBase.open(self._kb)
        if (folder / "encoder").is_dir():
            if not (folder / "index").is_dir():
                similarity = getattr(recipe.config, "similarity", "cosine")
                build_encoder_index(kb, folder / "index", folder / "encoder", similarity=similarity)
            linker = Linker.open(kb, folder / "index")
        else:
            own = (folder / "kb").is_dir()
            linker = Linker.from_pretrained(folder, None if own else kb, None if own else index)
        table, splits = split_data(recipe.data, self._data)
        gold = read_queries(
            kb, splits[split], table.format, table.types, TextIndex.read(table.text)
        )
        config = EvaluationConfig(ks=(1,), n_resamples=1)
        return evaluate_linking(linker, linker.kb, gold.queries, config=config)[_ACCURACY]


def _check_finished(folder: Path, finished: bool) -> None:
    if not finished:
        raise BiograftError(f"{folder}: the time is over; go on with --resume")

"""Fine-tuning runs of a task recipe: training with each seed, dev, test.

``runs/seed-1/`` holds one training: ``result.json``, the loop's ``metrics.jsonl``, the predictions
on dev and on test. Finished trainings are not repeated.
``model/`` is the model of the best seed by dev; ``results.json`` has the mean and standard
deviation over the seeds.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from biograft.artifacts import peek
from biograft.display import Shown
from biograft.models.model_card import write_card
from biograft.models.tasks.folder import MODEL, TASK_MODEL, open_task, write_model
from biograft.models.tasks.model import TaskModel
from biograft.models.tasks.task import TASKS, TaskExamples
from biograft.progress import Progress
from biograft.training.processes import join_processes
from biograft.training.run_folder import check_run, sole_run, start_run
from biograft.training.tasks.card import task_card
from biograft.training.tasks.recipe import TaskRecipe
from biograft.training.tasks.results import RESULT, RESULTS, chance_of, keep_test, summarise
from biograft.training.tasks.training import Fit, fit


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTrainingData:
    """The examples to train and evaluate on, and the folder of the run."""

    train: TaskExamples
    """Examples to train on."""
    dev: TaskExamples
    """Examples to choose the best epoch on."""
    test: TaskExamples | None = None
    """Examples to evaluate the result on; None: no test."""
    out: Path
    """Folder of the run."""
    resume: bool = False
    """Continue an interrupted run."""
    progress: Progress = field(default_factory=Progress)
    """Receives the progress."""


@dataclass(frozen=True, slots=True, repr=False)
class TaskResult(Shown):
    """The folders of a run and its model, and the content of ``results.json``."""

    run: Path
    """Folder of the run."""
    model: Path
    """Folder of the model."""
    results: Mapping[str, Any]
    """Settings and metrics of every seed."""

    def shown(self) -> dict[str, Any]:
        """Return the run and the means of its main metric."""
        main = self.results["metric"]
        means = {
            f"{split} {main}": self.results[split][main]["mean"]
            for split in ("dev", "test")
            if split in self.results
        }
        return {"run": self.run, "model": self.model, **means}


@dataclass(frozen=True, slots=True)
class _Trial:
    """The training with one seed."""

    seed: int
    folder: Path

    def dev(self) -> dict[str, Any]:
        """Return the report on dev of a finished trial."""
        report: dict[str, Any] = RESULT.read(self.folder)["dev"]
        return report


def finetune_task(recipe: TaskRecipe, data: TaskTrainingData) -> TaskResult:
    """Train and evaluate a task model by a recipe.

    Args:
        recipe: The recipe.
        data: Examples, output folder, and whether to resume, which does only what is still missing.
    """
    with sole_run(data.out):
        return _finetune(recipe, data)


def _finetune(recipe: TaskRecipe, data: TaskTrainingData) -> TaskResult:
    run = _Run(recipe, data)
    main = TASKS.load(recipe.task).main_metric
    trials = [run.train(seed) for seed in recipe.search.seeds]
    tested = [run.test(trial) for trial in trials] if data.test else []
    best = max(trials, key=lambda trial: trial.dev()[main])
    run.keep_best(best)
    return run.finish(trials, best, tested)


class _Run:
    """The folder of a run, and the steps that fill it."""

    def __init__(self, recipe: TaskRecipe, data: TaskTrainingData) -> None:
        self._recipe, self._data, self._processes = recipe, data, join_processes()
        self._kind = TASKS.load(recipe.task)
        splits = {"train": data.train, "dev": data.dev, "test": data.test}
        self._splits = {name: split for name, split in splits.items() if split is not None}
        self._hashes = {name: split.fingerprint() for name, split in self._splits.items()}
        described = {
            k: v for k, v in recipe.to_json().items() if k in ("task", "encoder", "config")
        }
        self._provenance = {
            "encoder": self._recipe.encoder.load().fingerprint(),
            "train": self._hashes["train"],
            "dev": self._hashes["dev"],
        }
        if data.resume:
            check_run(data.out, described, self._provenance)
        elif self._processes.is_main_process:
            start_run(data.out, described, self._provenance)
        self._processes.wait_for_everyone()

    def train(self, seed: int) -> _Trial:
        """Train with a seed, unless that is finished."""
        trial = _Trial(seed, self._data.out / "runs" / f"seed-{seed}")
        if RESULT.is_at(trial.folder):
            return trial
        main = self._processes.is_main_process
        self._processes.wait_for_everyone()
        if main:
            shutil.rmtree(trial.folder, ignore_errors=True)  # left by an interrupt
        model = self._create_model(seed)
        dev = self._data.dev.examples
        fitted = self._fit(model, trial)
        if main:
            result = {"seed": seed, **fitted.to_json()}
            write_model(trial.folder / MODEL, model, {**result, "provenance": self._provenance})
            model.write(dev, fitted.predictions, trial.folder / "predictions-dev.jsonl")
            RESULT.write(trial.folder, result, overwrite=True)
        self._processes.wait_for_everyone()
        return trial

    def _fit(self, model: TaskModel[Any, Any], trial: _Trial) -> Fit:
        """Train; the message of an interrupt says how to resume the run."""
        data = self._data
        try:
            return fit(
                model,
                data.train.examples,
                data.dev.examples,
                trial.folder,
                seed=trial.seed,
                progress=data.progress,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"seed {trial.seed} is not finished; with --resume it begins anew, and what is "
                f"finished in {data.out} stays"
            ) from None

    def test(self, trial: _Trial) -> dict[str, Any]:
        """Evaluate a trial on the test set, unless that is finished; return the report."""
        known = RESULT.read(trial.folder)
        test = self._data.test
        self._processes.wait_for_everyone()  # all have read the result
        if test is None or known.get("test_examples") == self._hashes["test"]:
            return dict(known.get("test", {}))
        model = self._reopen(trial)
        self._data.progress.start("test")
        predictions = model.predict(test.examples, model.config.training.precision)
        report = model.report(test.examples, predictions).to_json()
        if self._processes.is_main_process:
            model.write(test.examples, predictions, trial.folder / "predictions-test.jsonl")
            result = RESULT.read(trial.folder)  # retraining may have replaced it
            tested = {"test": report, "test_examples": self._hashes["test"]}
            RESULT.write(trial.folder, {**result, **tested}, overwrite=True)
        self._processes.wait_for_everyone()
        return report

    def keep_best(self, best: _Trial) -> None:
        """Make the model of the best trial the model of the run, and remove all others."""
        is_model = self._is_model_of(best)
        is_missing = not is_model and not TASK_MODEL.is_at(best.folder / MODEL)
        self._processes.wait_for_everyone()  # all have looked
        if is_missing:
            self._retrain(best)
            self.test(best)
        if self._processes.is_main_process and not is_model:
            shutil.rmtree(self._model, ignore_errors=True)
            (best.folder / MODEL).rename(self._model)
        if self._processes.is_main_process:
            for other in (self._data.out / "runs").glob(f"*/{MODEL}"):
                shutil.rmtree(other)
        self._processes.wait_for_everyone()

    def finish(
        self,
        trials: Sequence[_Trial],
        best: _Trial,
        tested: Sequence[Mapping[str, Any]],
    ) -> TaskResult:
        """Write the results over all seeds."""
        first = RESULT.read(trials[0].folder)
        metrics, main = self._kind.metrics, self._kind.main_metric
        reports = {"dev": [trial.dev() for trial in trials], "test": tested}
        content = {
            "task": self._recipe.task,
            "metric": main,
            "counting": list(self._kind.counting),
            "recipe": self._recipe.to_json(),
            "seeds": [trial.seed for trial in trials],
            "best_seed": best.seed,
            **{name: summarise(each, metrics) for name, each in reports.items() if each},
            **chance_of(reports),
            "lost": first["lost"],
            "n_sequences": first["n_sequences"],
            "n_examples": {name: len(split.examples) for name, split in self._splits.items()},
            "data": self._hashes,
            "data_sets": {name: split.name for name, split in self._splits.items() if split.name},
            "languages": self._data.train.languages(),
            "provenance": self._provenance,
        }
        if not tested and RESULTS.is_at(self._data.out):
            content = keep_test(content, RESULTS.read(self._data.out))
        self._processes.wait_for_everyone()  # all have read the results before
        if self._processes.is_main_process:
            RESULTS.write(self._data.out, content, overwrite=True)
            manifest = TASK_MODEL.read(self._model)
            write_card(self._model, task_card(self._model, manifest, content))
        self._data.progress.finish()
        return TaskResult(self._data.out, self._model, content)

    @property
    def _model(self) -> Path:
        return self._data.out / MODEL

    def _is_model_of(self, trial: _Trial) -> bool:
        """Whether the model of the run is that of a trial."""
        if not TASK_MODEL.is_at(self._model):
            return False
        return bool(peek(self._model / TASK_MODEL.file).get("seed") == trial.seed)

    def _reopen(self, trial: _Trial) -> TaskModel[Any, Any]:
        """Open the model of a trial; if it was removed, train it again."""
        if self._is_model_of(trial):
            return open_task(self._model)
        if not TASK_MODEL.is_at(trial.folder / MODEL):
            self._retrain(trial)
        return open_task(trial.folder / MODEL)

    def _retrain(self, trial: _Trial) -> None:
        """Train a removed model again; all processes take part."""
        self._processes.wait_for_everyone()  # all have seen that it is missing
        if self._processes.is_main_process:
            shutil.rmtree(trial.folder, ignore_errors=True)
        self._processes.wait_for_everyone()
        self.train(trial.seed)

    def _create_model(self, seed: int) -> TaskModel[Any, Any]:
        """Create an untrained model; its random weights depend only on the seed."""
        config = self._recipe.config
        config = replace(config, training=replace(config.training, seed=seed))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = self._kind.create(
                self._recipe.encoder.load(), config, self._data.train.examples
            )
        model.kind = self._recipe.task
        return model

"""Run a recipe of a task: rates compared on dev, the chosen one with all seeds, then the test.

``runs/lr-3e-05/seed-1/`` holds one training: ``result.json``, the loop's ``metrics.jsonl``, the
predictions on dev and (of the chosen rate alone) on test. What is finished is not done again.
``model/`` is the best seed's by dev, ``results.json`` the mean and deviation over the seeds.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from biograft.artifacts import peek
from biograft.progress import Progress
from biograft.tasks.folder import MODEL, TASK_MODEL, open_task, write_model
from biograft.tasks.model import TaskModel
from biograft.tasks.recipe import TaskRecipe
from biograft.tasks.results import RESULT, RESULTS, chance_of, keep_test, summarise
from biograft.tasks.task import TASKS, TaskExamples
from biograft.tasks.training import Fit, fit
from biograft.training.processes import join_processes
from biograft.training.run_folder import check_run, sole_run, start_run


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLesson:
    """What is learned from and measured on, and where the run is written."""

    train: TaskExamples
    dev: TaskExamples
    test: TaskExamples | None = None
    out: Path
    resume: bool = False
    progress: Progress = field(default_factory=lambda: Progress(enabled=False))


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Where the model is, and what was found."""

    run: Path
    model: Path
    results: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Trial:
    """One learning rate with one seed."""

    rate: float
    seed: int
    folder: Path

    def dev(self) -> dict[str, Any]:
        """Give the report on dev of a finished trial."""
        report: dict[str, Any] = RESULT.read(self.folder)["dev"]
        return report


def finetune_task(recipe: TaskRecipe, lesson: TaskLesson) -> TaskResult:
    """Train and measure what a recipe says; with ``resume``, what is still to do."""
    with sole_run(lesson.out):
        return _finetune(recipe, lesson)


def _finetune(recipe: TaskRecipe, lesson: TaskLesson) -> TaskResult:
    run = _Run(recipe, lesson)
    rates = recipe.search.learning_rates or (recipe.config.training.learning_rate,)
    choosing = recipe.search.seeds[: recipe.search.choosing_seeds if len(rates) > 1 else 1]
    main = TASKS.load(recipe.kind).main
    scores = {rate: fmean(run.train(rate, seed).dev()[main] for seed in choosing) for rate in rates}
    chosen = max(rates, key=lambda rate: (scores[rate], -rate))
    trials = [run.train(chosen, seed) for seed in recipe.search.seeds]
    tested = [run.measure(trial) for trial in trials] if lesson.test else []
    best = max(trials, key=lambda trial: trial.dev()[main])
    run.keep(best)
    return run.finish(scores, trials, best, tested)


class _Run:
    """The folder of a run and what is done in it."""

    def __init__(self, recipe: TaskRecipe, lesson: TaskLesson) -> None:
        self._recipe, self._lesson, self._processes = recipe, lesson, join_processes()
        self._kind = TASKS.load(recipe.kind)
        parts = {"train": lesson.train, "dev": lesson.dev, "test": lesson.test}
        self._data = {name: part.fingerprint() for name, part in parts.items() if part is not None}
        described = {
            k: v for k, v in recipe.to_json().items() if k in ("kind", "encoder", "config")
        }
        self._provenance = {
            "encoder": self._recipe.encoder.load().fingerprint(),
            "train": self._data["train"],
            "dev": self._data["dev"],
        }
        if lesson.resume:
            check_run(lesson.out, described, self._provenance)
        elif self._processes.is_main_process:
            start_run(lesson.out, described, self._provenance)
        self._processes.wait_for_everyone()

    def train(self, rate: float, seed: int) -> _Trial:
        """Train with a rate and a seed, unless that is done."""
        trial = _Trial(rate, seed, self._lesson.out / "runs" / f"lr-{rate:g}" / f"seed-{seed}")
        if RESULT.is_at(trial.folder):
            return trial
        main = self._processes.is_main_process
        self._processes.wait_for_everyone()
        if main:
            shutil.rmtree(trial.folder, ignore_errors=True)  # what an interrupt left
        model = self._start(rate, seed)
        dev = self._lesson.dev.examples
        fitted = self._fit(model, trial)
        if main:
            said = {"learning_rate": rate, "seed": seed, **fitted.to_json()}
            write_model(trial.folder / MODEL, model, {**said, "provenance": self._provenance})
            model.write(dev, fitted.answers, trial.folder / "predictions-dev.jsonl")
            RESULT.write(trial.folder, said, overwrite=True)
        self._processes.wait_for_everyone()
        return trial

    def _fit(self, model: TaskModel[Any, Any], trial: _Trial) -> Fit:
        """Train; an interrupt says what it means to the whole run."""
        lesson = self._lesson
        try:
            return fit(
                model,
                lesson.train.examples,
                lesson.dev.examples,
                trial.folder,
                seed=trial.seed,
                progress=lesson.progress,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"seed {trial.seed} is not finished; with --resume it begins anew, and what is "
                f"finished in {lesson.out} stays"
            ) from None

    def measure(self, trial: _Trial) -> dict[str, Any]:
        """Measure a trial on the test set, unless that is done; give the report."""
        known = RESULT.read(trial.folder)
        test = self._lesson.test
        self._processes.wait_for_everyone()  # until all have looked
        if test is None or known.get("test_examples") == self._data["test"]:
            return dict(known.get("test", {}))
        model = self._reopen(trial)
        self._lesson.progress.start("test")
        answers = model.predict(test.examples, model.config.training.precision)
        report = model.report(test.examples, answers).to_json()
        if self._processes.is_main_process:
            model.write(test.examples, answers, trial.folder / "predictions-test.jsonl")
            said = {"test": report, "test_examples": self._data["test"]}
            result = RESULT.read(trial.folder)  # training again wrote it anew
            RESULT.write(trial.folder, {**result, **said}, overwrite=True)
        self._processes.wait_for_everyone()
        return report

    def keep(self, best: _Trial) -> None:
        """Make the best trial's model that of the run, and remove all others."""
        kept = self._is_kept(best)
        gone = not kept and not TASK_MODEL.is_at(best.folder / MODEL)
        self._processes.wait_for_everyone()  # until all have looked
        if gone:
            self._train_again(best)
            self.measure(best)
        if self._processes.is_main_process and not kept:
            shutil.rmtree(self._model, ignore_errors=True)
            (best.folder / MODEL).rename(self._model)
        if self._processes.is_main_process:
            for other in (self._lesson.out / "runs").glob(f"*/*/{MODEL}"):
                shutil.rmtree(other)
        self._processes.wait_for_everyone()

    def finish(
        self,
        scores: Mapping[float, float],
        trials: Sequence[_Trial],
        best: _Trial,
        tested: Sequence[Mapping[str, Any]],
    ) -> TaskResult:
        """Write the results over all seeds."""
        first = RESULT.read(trials[0].folder)
        figures, main = self._kind.figures, self._kind.main
        reports = {"dev": [trial.dev() for trial in trials], "test": tested}
        content = {
            "task": self._recipe.kind,
            "figure": main,
            "recipe": self._recipe.to_json(),
            "rates": [{"learning_rate": r, f"dev_{main}": s} for r, s in scores.items()],
            "learning_rate": best.rate,
            "seeds": [trial.seed for trial in trials],
            "best_seed": best.seed,
            **{part: summarise(found, figures) for part, found in reports.items() if found},
            **chance_of(reports),
            "lost": first["lost"],
            "n_sequences": first["n_sequences"],
            "n_examples": {
                name: len(part.examples)
                for name in ("train", "dev", "test")
                if (part := getattr(self._lesson, name)) is not None
            },
            "data": self._data,
            "provenance": self._provenance,
        }
        if not tested and RESULTS.is_at(self._lesson.out):
            content = keep_test(content, RESULTS.read(self._lesson.out))
        self._processes.wait_for_everyone()  # until all have read the results before
        if self._processes.is_main_process:
            RESULTS.write(self._lesson.out, content, overwrite=True)
        self._lesson.progress.finish()
        return TaskResult(self._lesson.out, self._model, content)

    @property
    def _model(self) -> Path:
        return self._lesson.out / MODEL

    def _is_kept(self, trial: _Trial) -> bool:
        """Whether the model of the run is that of a trial."""
        if not TASK_MODEL.is_at(self._model):
            return False
        manifest = peek(self._model / TASK_MODEL.file)
        return (manifest.get("learning_rate"), manifest.get("seed")) == (trial.rate, trial.seed)

    def _reopen(self, trial: _Trial) -> TaskModel[Any, Any]:
        """Open a trial's model; one that was not kept is trained again."""
        if self._is_kept(trial):
            return open_task(self._model)
        if not TASK_MODEL.is_at(trial.folder / MODEL):
            self._train_again(trial)
        return open_task(trial.folder / MODEL)

    def _train_again(self, trial: _Trial) -> None:
        """Train a model that was not kept once more; all processes take part."""
        self._processes.wait_for_everyone()  # until all have found it gone
        if self._processes.is_main_process:
            shutil.rmtree(trial.folder, ignore_errors=True)
        self._processes.wait_for_everyone()
        self.train(trial.rate, trial.seed)

    def _start(self, rate: float, seed: int) -> TaskModel[Any, Any]:
        """Make a model whose random weights follow from the seed."""
        config = self._recipe.config
        config = replace(config, training=replace(config.training, learning_rate=rate, seed=seed))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self._kind.start(
                self._recipe.encoder.load(), config, self._lesson.train.examples
            )

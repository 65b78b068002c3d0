"""Encoders on tasks: pre-trained by a recipe and its ablations, then fine-tuned and compared.

All variants of an experiment start with the same weights and see the same text for as many
updates with the same seed; each differs in what its label says. A variant may also be an encoder
that exists. They are fine-tuned on each set with the same settings and seeds; nothing is chosen on
test. A row reports the main metric of a task (F1, or acc@1 for ranking), the metrics on held-out
text, and differences with the p of Welch's test and of the paired one (two-sided, over seeds).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from biograft.config import set_value
from biograft.corpus.tasks.records import RelationExample
from biograft.kb import KnowledgeBase
from biograft.nn.knowledge.entities import ENTITIES
from biograft.pretraining.recipe import PretrainingRecipe
from biograft.pretraining.run import pretrain
from biograft.progress import Progress
from biograft.recipes.recipe import remove_value
from biograft.replication.experiment import Experiment
from biograft.replication.results import Row
from biograft.replication.runner import Job, check_names, no_smoke, parse_settings, parse_variants
from biograft.replication.task_sets import TASK_SETS
from biograft.tasks import TaskRecipe, TaskTrainingData, finetune_task
from biograft.tasks.results import compare_runs, main_metric_of
from biograft.tasks.task import TaskExamples
from biograft.training.run_folder import check_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How encoders are pre-trained and fine-tuned.

    ``paths`` maps keys of the pre-training recipe to inputs. With ``coverage_of``, an input with
    an entity table, a row tells how many mentions the store ``kb`` and that table know.
    """

    recipe: str = ""
    changes: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    encoder: str = "encoder"
    kb: str = "kb"
    epochs: int = 3
    max_examples: int = 0
    task_changes: tuple[str, ...] = ()
    coverage_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """An encoder: an input, or how its pre-training differs from the others'.

    ``changes`` set values of the recipe, ``without`` removes tables and keys; ``recipe`` names
    another recipe; ``task_changes`` are changes of fine-tuning.
    """

    encoder: str = ""
    recipe: str = ""
    changes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    task_changes: tuple[str, ...] = ()


class EncoderTasks:
    """Runs experiments of kind ``encoder_tasks``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets and variants that are not known."""
        check_names("sets", experiment.sets, [*TASK_SETS])
        for name in experiment.sets:
            parse_settings(experiment, Settings, name)
        for label, variant in parse_variants(experiment, Variant).items():
            names = [variant.encoder] if variant.encoder else pretraining_inputs(experiment)
            check_names(f"variants.{label}", names, [*experiment.inputs])

    def smoke(self, job: Job) -> Job:
        """Toy data are still to be written."""
        raise no_smoke(job)

    def run(self, job: Job) -> None:
        """Pre-train every variant, then fine-tune each on every set."""
        results, variants = job.results(), parse_variants(job.experiment, Variant)
        common = parse_settings(job.experiment, Settings)
        key = {"pretraining": list(common.changes), "labels": list(variants)}
        encoders: dict[str, Path] = {}
        held_out: dict[str, Any] = {}
        for name in job.experiment.sets:
            settings = parse_settings(job.experiment, Settings, name)
            own = {"set": name, "seeds": list(job.experiment.seeds_of(name)), **key}
            own |= {
                "epochs": settings.epochs,
                "max_examples": settings.max_examples,
                "task_changes": list(settings.task_changes),
            }
            if results.has(own):
                continue
            for label, variant in variants.items():
                if label not in encoders:
                    encoders[label] = _encoder_of(label, variant, job, held_out)
            row = FineTuning(name, job, settings, encoders, variants).measure()
            job.add(results, own, {"held_out": held_out, **row})


def _encoder_of(label: str, variant: Variant, job: Job, held_out: dict[str, Any]) -> Path:
    if variant.encoder:
        return job.input(variant.encoder)
    return pretrain_variant(label, variant, job, held_out)


def pretraining_inputs(experiment: Experiment) -> list[str]:
    """Return the inputs that the pre-training of an experiment needs."""
    settings = parse_settings(experiment, Settings)
    return ["corpus", settings.encoder, settings.kb, *settings.paths.values()]


def pretrain_variant(label: str, variant: Variant, job: Job, held_out: dict[str, Any]) -> Path:
    """Pre-train one variant if needed; note its metrics on held-out text at the end."""
    settings = parse_settings(job.experiment, Settings)
    places = {name: job.input(name) for name in pretraining_inputs(job.experiment)}
    out = job.work / "pretrained" / label.replace(" ", "-").replace(",", "")
    recipe = variant_recipe(variant, settings, places)
    if (out / "done").exists():
        check_config(out, recipe.to_json())
    else:
        kb = KnowledgeBase.open(job.input(settings.kb))
        pretrain(recipe, kb, out, resume=(out / "run.json").exists(), progress=Progress())
        (out / "done").touch()
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    evaluations = [row["evaluation"] for row in map(json.loads, lines) if "evaluation" in row]
    held_out[label] = dict(evaluations[-1])
    return out / "encoder"


def variant_recipe(
    variant: Variant, settings: Settings, places: Mapping[str, Path]
) -> PretrainingRecipe:
    """Return the pre-training recipe of a variant, its inputs at the given places."""
    name, values = PretrainingRecipe.resolve(variant.recipe or settings.recipe)
    values.pop("new", None)
    paths = {"encoder.name": settings.encoder, "stream.shards": "corpus", **settings.paths}
    for key, chosen in paths.items():
        set_value(values, f"{key}={json.dumps(str(places[chosen]))}")
    for change in (*variant.changes, *settings.changes):
        set_value(values, change)
    for key in variant.without:
        remove_value(values, key)
    return PretrainingRecipe.from_values(name, values)


@dataclass(frozen=True, slots=True)
class FineTuning:
    """The fine-tuning of all encoders on one set."""

    name: str
    job: Job
    settings: Settings
    encoders: Mapping[str, Path]
    variants: Mapping[str, Variant]

    def measure(self) -> Row:
        """Fine-tune every encoder; return scores, and tests of their differences."""
        started = time.perf_counter()
        limit = self.settings.max_examples
        examples = TASK_SETS[self.name].read(self.recipe(), self.job.data, limit)
        rows = {label: self._finetune(label, examples) for label in self.encoders}
        return {
            "n_examples": {split: len(given.examples) for split, given in examples.items()},
            "encoders": rows,
            "differences": list(self._differences()),
            **self._coverage(examples["test"]),
            "seconds": round(time.perf_counter() - started, 1),
        }

    def recipe(self, *more: str) -> TaskRecipe:
        """Return the recipe of the task, with the settings of the experiment."""
        chosen, seeds = TASK_SETS[self.name], list(self.job.experiment.seeds_of(self.name))
        changes = [text.format(data=self.job.data) for text in chosen.changes]
        changes += self.settings.task_changes
        changes += [f"search.seeds={seeds}", f"config.training.epochs={self.settings.epochs}"]
        return TaskRecipe.load(chosen.recipe, [*changes, *more])

    def _finetune(self, label: str, examples: Mapping[str, TaskExamples]) -> Row:
        out = self.job.work / self.name / label
        encoder = json.dumps(str(self.encoders[label]))
        recipe = self.recipe(f"encoder.name={encoder}", *self.variants[label].task_changes)
        data = TaskTrainingData(
            train=examples["train"], dev=examples["dev"], test=examples["test"],
            out=out, resume=out.exists(), progress=Progress(),
        )  # fmt: skip
        results = finetune_task(recipe, data).results
        metric, values = main_metric_of(results), {}
        for split in ("dev", "test"):
            found = results[split][metric]
            values[split] = {
                "mean": 100 * found["mean"],
                "deviation": found["deviation"] and 100 * found["deviation"],  # none of one run
                "values": [100 * value for value in found["values"]],
            }
        return {"metric": metric, **values}

    def _differences(self) -> Iterator[Row]:
        if len(self.job.experiment.seeds_of(self.name)) < 2:
            return
        folder = self.job.work / self.name
        for before, after in combinations(self.encoders, 2):
            compared = compare_runs(folder / after, folder / before)
            tests = {name: compared[name]["p"] for name in ("welch", "paired")}
            difference = 100 * compared["difference"]
            yield {"of": after, "against": before, "by": difference, "p": tests}

    def _coverage(self, examples: TaskExamples) -> Row:
        """Return the fraction of mentions that the store, and the entity table, know by name."""
        if not self.settings.coverage_of:
            return {}
        texts = [text for example in examples.examples for text in _mention_texts(example)]
        if not texts or any(text.startswith("@") for text in texts):
            return {}
        kb = KnowledgeBase.open(self.job.input(self.settings.kb))
        path = self.job.input(self.settings.coverage_of) / ENTITIES
        table = {json.loads(line)["id"] for line in path.read_text(encoding="utf-8").splitlines()}
        found = {text: {match.concept for match in kb.find(text)} for text in set(texts)}
        return {
            "coverage": {
                "n_mentions": len(texts),
                "in_store": sum(bool(found[text]) for text in texts) / len(texts),
                "in_table": sum(bool(found[text] & table) for text in texts) / len(texts),
            }
        }


def _mention_texts(example: Any) -> list[str]:
    """Return the texts of an example's mentions, whether it is a document or a relation."""
    if isinstance(example, RelationExample):
        return [example.first.text, example.second.text]
    return [mention.text for mention in example.mentions]

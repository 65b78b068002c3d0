"""Fine-tune encoders on task sets: variants of pre-training side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from biograft.config import remove_value, set_value
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.models.knowledge.entities import read_entities
from biograft.models.tasks import TASKS
from biograft.models.tasks.task import TaskExamples
from biograft.progress import Progress
from biograft.text.tasks.summary import count_known
from biograft.training.pretraining.recipe import PretrainingRecipe, pretrain
from biograft.training.run_folder import RUN, check_config
from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task
from biograft.training.tasks.results import compare_runs, main_metric_of
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.populations import POPULATIONS, Populations, recall_pairs
from biograft_lab.replication.results import Row
from biograft_lab.replication.runner import (
    TOY_PRETRAINING,
    TOY_TASK,
    ExperimentJob,
    check_names,
    missing_data,
    parse_settings,
    parse_variants,
)
from biograft_lab.replication.task_counts import BIGRAMS, count_bigrams, count_documents, pack_pairs

SPLITS = ("train", "dev", "test")
Cut = Callable[[Sequence[Any]], dict[str, Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """A set of labelled examples: its recipe, its files, and how they are read."""

    recipe: str
    folder: str
    train: str
    dev: str
    test: str
    changes: tuple[str, ...] = ()
    cut: Cut | None = None
    """Makes splits from the examples of the train file, where they are not files of their own."""

    def path(self, split: str, data: Path) -> str:
        """Return the file of a split, compressed or not."""
        path = data / self.folder / str(getattr(self, split))
        packed = path.with_name(f"{path.name}.gz")
        if not path.exists() and not packed.exists():
            raise missing_data(path)
        return str(path if path.exists() else packed)

    def read(self, recipe: TaskRecipe, data: Path, limit: int) -> dict[str, TaskExamples]:
        """Read the splits; of train and dev at most ``limit`` examples (0: all), evenly spaced."""
        kind = TASKS.load(recipe.task)
        examples = {
            split: kind.read([self.path(split, data)], split, recipe.data)
            for split in SPLITS
            if getattr(self, split)
        }
        if self.cut is not None:
            cut = self.cut(examples["train"].examples)
            examples |= {split: TaskExamples(tuple(given)) for split, given in cut.items()}
        for split in ("train", "dev"):
            given = examples[split].examples
            if limit and len(given) > limit:
                examples[split] = TaskExamples(given[:: -(-len(given) // limit)])
        return examples


def _fold(fold: int, examples: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Return one fifth as test, and of the others one tenth as dev."""
    order = np.random.default_rng(0).permutation(len(examples)).tolist()
    test, others = order[fold::5], [n for k in range(5) if k != fold for n in order[k::5]]
    splits = {
        "train": others[len(others) // 10 :],
        "dev": others[: len(others) // 10],
        "test": test,
    }
    return {name: [examples[n] for n in sorted(rows)] for name, rows in splits.items()}


def _four_fifths(examples: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Return one fifth as dev, the others as train; test is another file."""
    splits = _fold(0, examples)
    return {"train": [*splits["train"], *splits["dev"]], "dev": splits["test"]}


def _entities(folder: str) -> EvaluationSet:
    return EvaluationSet("ner-cpu", f"ner_en/{folder}", "train.tsv", "devel.tsv", "test.tsv")


_DDI, _BLUE = "DDICorpus-2013.zip", "zh/chineseblue"
TASK_SETS: Mapping[str, EvaluationSet] = {
    "ncbi": _entities("NCBI-disease"),
    "bc5cdr-disease": _entities("BC5CDR-disease"),
    "bc5cdr-chemical": _entities("BC5CDR-chem"),
    "bc5cdr-text": EvaluationSet(
        "ner-cpu",
        "entity_linking/bc5cdr/pubtator",
        "CDR_TrainingSet.PubTator.txt",
        "CDR_DevelopmentSet.PubTator.txt",
        "CDR_TestSet.PubTator.txt",
        ('config.types="keep"',),
    ),
    "bc2gm": _entities("BC2GM"),
    "jnlpba": _entities("JNLPBA_untyped"),
    "gad": EvaluationSet("relation-cpu", "re_en/gad", "train.tsv", "dev.tsv", "test.tsv"),
    "ddi": EvaluationSet(
        "relation-cpu",
        "re_en/ddi2013",
        _DDI,
        _DDI,
        _DDI,
        ('data.format="ddi"', 'data.dev_list="{data}/re_en/ddi2013/blurb_dev.tsv"'),
    ),
    "chemprot": EvaluationSet(
        "relation-cpu", "re_en/chemprot", "train.jsonl", "dev.jsonl", "test.jsonl"
    ),
    "cmedqq": EvaluationSet(
        "matching-cpu",
        f"{_BLUE}/cMedQQ",
        "train.txt",
        "dev.txt",
        "test.txt",
        ('data.format="cmedqq"',),
    ),
    "cmedqaner": EvaluationSet(
        "ner-cpu",
        f"{_BLUE}/cMedQANER",
        "train.json",
        "dev.json",
        "test.json",
        ('data.format="cmedqaner"',),
    ),
    "cmedqa": EvaluationSet(
        "ranking-cpu",
        f"{_BLUE}/cMedQA",
        "dev.txt",
        "",
        "test.txt",
        ('data.format="cmedqa"', 'config.questions="single"'),
        _four_fifths,
    ),
    **{
        f"cmdd-{part}": EvaluationSet(
            "ranking-cpu",
            "zh/cmdd",
            "train.jsonl",
            "dev.jsonl",
            "test.jsonl",
            (f'data.format="cmdd-{part}"', 'config.questions="single"'),
        )
        for part in ("replies", "symptoms")
    },
    **{
        f"cmeee-{fold}": EvaluationSet(
            "ner-cpu",
            "zh/cmeee_v2",
            "CMeEE-V2_dev.json",
            "",
            "",
            ('data.format="cmeee"', 'config.head="spans"'),
            partial(_fold, fold),
        )
        for fold in range(5)
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderTaskSettings:
    """Settings of pre-training and fine-tuning the encoders.

    ``paths`` maps keys of the pre-training recipe to inputs. Every variant that the experiment
    pre-trains is pre-trained with each of ``pretraining_seeds``; without any, once, with the seed
    of the recipe. With ``coverage_of``, an input with
    an entity table, a row tells how many mentions the store ``kb`` and that table know. With
    ``table_of``, a variant with an entity table, a row has the recall of mentions by what training
    and the table know of their concept (``populations``).
    """

    recipe: str = ""
    changes: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    encoder: str = "encoder"
    kb: str = "kb"
    epochs: int = 3
    max_examples: int = 0
    task_changes: tuple[str, ...] = ()
    pretraining_seeds: tuple[int, ...] = ()
    coverage_of: str = ""
    table_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderVariant:
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
            if table := parse_settings(experiment, EncoderTaskSettings, name).table_of:
                check_names("settings.table_of", [table], [*experiment.variants])
        for label, variant in parse_variants(experiment, EncoderVariant).items():
            names = [variant.encoder] if variant.encoder else pretraining_inputs(experiment)
            check_names(f"variants.{label}", names, [*experiment.inputs])
        experiment.check_one_base(encoder_inputs(experiment))

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        changes = {"changes": TOY_PRETRAINING, "task_changes": TOY_TASK}
        small = experiment.smaller({"epochs": 1}, changes)
        first = experiment.sets[0]  # with two seeds, which are compared
        own = {**small.set_settings.get(first, {}), "seeds": experiment.seeds_of(first)[:2]}
        return replace(small, set_settings={**small.set_settings, first: own})

    def pretrain(self, job: ExperimentJob) -> None:
        """Pre-train every variant, without fine-tuning."""
        settings = parse_settings(job.experiment, EncoderTaskSettings)
        for seed in settings.pretraining_seeds or (None,):
            seeded = with_seed(job, seed)
            for label, variant in parse_variants(job.experiment, EncoderVariant).items():
                encoder_of(label, variant, seeded, {}, seed)

    def run(self, job: ExperimentJob) -> None:
        """Pre-train every variant, then fine-tune each on every set."""
        check_starts(job)
        seeds = parse_settings(job.experiment, EncoderTaskSettings).pretraining_seeds
        for seed in seeds or (None,):
            self._run_seed(job, seed)

    def _run_seed(self, job: ExperimentJob, seed: int | None) -> None:
        """Measure every set with the encoders of one seed of pre-training."""
        results, variants = job.results(), parse_variants(job.experiment, EncoderVariant)
        common = parse_settings(job.experiment, EncoderTaskSettings)
        key: dict[str, Any] = {"pretraining": list(common.changes), "labels": list(variants)}
        if seed is not None:
            key["pretraining_seed"] = seed
        job = with_seed(job, seed)
        encoders: dict[str, Path] = {}
        held_out: dict[str, Any] = {}
        for name in job.experiment.sets:
            settings = parse_settings(job.experiment, EncoderTaskSettings, name)
            own: dict[str, Any] = {"set": name, "seeds": list(job.experiment.seeds_of(name)), **key}
            own |= {
                "epochs": settings.epochs,
                "max_examples": settings.max_examples,
                "task_changes": list(settings.task_changes),
            }
            if results.has(own):
                continue
            for label, variant in variants.items():
                if label not in encoders:
                    encoders[label] = encoder_of(label, variant, job, held_out, seed)
            row = FineTuning(name, job, settings, encoders, variants).measure()
            job.add(results, own, {"held_out": held_out, **row})


def with_seed(job: ExperimentJob, seed: int | None) -> ExperimentJob:
    """Return the job of one seed of pre-training, which has a folder of its own."""
    if seed is None:
        return job
    return replace(job, work=job.work / f"seed-{seed}", inputs=job.all_inputs())


def encoder_inputs(experiment: Experiment) -> dict[str, str]:
    """Return the input of each variant: its encoder, or the start of its pre-training."""
    start = parse_settings(experiment, EncoderTaskSettings).encoder
    variants = parse_variants(experiment, EncoderVariant)
    return {label: variant.encoder or start for label, variant in variants.items()}


def check_starts(job: ExperimentJob) -> None:
    """Refuse trained encoders whose runs say that they started from different encoders."""
    starts: dict[str, str] = {}
    for label, name in encoder_inputs(job.experiment).items():
        run = job.inputs.get(name, job.work / name).parent
        if name in job.experiment.bases and RUN.is_at(run):
            described = RUN.read(run)["config"]["encoder"] or {}
            starts.setdefault(str(described.get("name")), label)
    if len(starts) > 1:
        found = ", ".join(f"{label!r} from {start}" for start, label in starts.items())
        raise ConfigError(
            f"{job.experiment.name}: the runs of the encoders started from several: {found}; "
            "pre-train all from one (--encoder)"
        )


def encoder_of(
    label: str,
    variant: EncoderVariant,
    job: ExperimentJob,
    held_out: dict[str, Any],
    seed: int | None = None,
) -> Path:
    """Return the encoder of a variant, pre-trained with a seed unless it is an input."""
    if variant.encoder:
        return job.input(variant.encoder)
    if seed is not None:
        variant = replace(variant, changes=(*variant.changes, f"training.seed={seed}"))
    return pretrain_variant(label, variant, job, held_out)


def pretraining_inputs(experiment: Experiment) -> list[str]:
    """Return the inputs that the pre-training of an experiment needs."""
    settings = parse_settings(experiment, EncoderTaskSettings)
    return ["corpus", settings.encoder, settings.kb, *settings.paths.values()]


def pretrain_variant(
    label: str, variant: EncoderVariant, job: ExperimentJob, held_out: dict[str, Any]
) -> Path:
    """Pre-train one variant if needed; note its metrics on held-out text at the end."""
    settings = parse_settings(job.experiment, EncoderTaskSettings)
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
    variant: EncoderVariant, settings: EncoderTaskSettings, places: Mapping[str, Path]
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
    job: ExperimentJob
    settings: EncoderTaskSettings
    encoders: Mapping[str, Path]
    variants: Mapping[str, EncoderVariant]

    def measure(self) -> Row:
        """Fine-tune every encoder; return scores, and tests of their differences."""
        started = time.perf_counter()
        limit = self.settings.max_examples
        examples = TASK_SETS[self.name].read(self.recipe(), self.job.data, limit)
        rows = {label: self._finetune(label, examples) for label in self.encoders}
        rows |= self._bigrams(examples["test"].examples)
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
            train=examples["train"],
            dev=examples["dev"],
            test=examples["test"],
            out=out,
            resume=out.exists(),
            progress=Progress(),
        )
        results = finetune_task(recipe, data).results
        metric, values = main_metric_of(results), {}
        counts = self._counts(recipe, examples["test"].examples, out, results, metric)
        recall = self._recall(recipe, examples, out, results)
        for split in ("dev", "test"):
            found = results[split][metric]
            values[split] = {
                "mean": 100 * found["mean"],
                "deviation": found["deviation"] and 100 * found["deviation"],  # none of one run
                "values": [100 * value for value in found["values"]],
            }
        return {"metric": metric, **values, "counts": counts, **recall}

    def _bigrams(self, examples: Sequence[Any]) -> dict[str, Row]:
        """Return what the overlap of bigrams would answer, of a ranking task."""
        recipe = self.recipe()
        if recipe.task != "ranking":
            return {}
        pairs = count_bigrams(examples, recipe.config.questions)
        accuracy = 100 * sum(right for right, _ in pairs) / max(1, sum(n for _, n in pairs))
        score = {"mean": accuracy, "deviation": None, "values": [accuracy]}
        counts = dict.fromkeys(map(str, recipe.search.seeds), pack_pairs(pairs))
        return {BIGRAMS: {"metric": "acc@1", "test": score, "counts": counts}}

    def _counts(
        self,
        recipe: TaskRecipe,
        examples: Sequence[Any],
        out: Path,
        results: Mapping[str, Any],
        metric: str,
    ) -> dict[str, str]:
        """Return what every test document adds to the metric, by seed."""
        values = results["test"][metric]["values"]
        return {
            seed: pack_pairs(count_documents(recipe.task, recipe.config, examples, path, value))
            for (seed, path), value in zip(_predictions(out, results).items(), values, strict=True)
        }

    def _recall(
        self,
        recipe: TaskRecipe,
        examples: Mapping[str, TaskExamples],
        out: Path,
        results: Mapping[str, Any],
    ) -> Row:
        """Return the recall of each population of mentions, by document and seed."""
        if not self.settings.table_of:
            return {}
        kb = KnowledgeBase.open(self.job.input(self.settings.kb))
        encoder = self.encoders[self.settings.table_of]
        populations = Populations.read(examples["train"].examples, encoder, kb)
        recall: dict[str, dict[str, str]] = {name: {} for name in POPULATIONS}
        for seed, path in _predictions(out, results).items():
            found = recall_pairs(populations, recipe.config, examples["test"].examples, path)
            for name, pairs in found.items():
                recall[name][seed] = pack_pairs(pairs)
        return {"recall": recall}

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
        kb = KnowledgeBase.open(self.job.input(self.settings.kb))
        table = {each.id for each in read_entities(self.job.input(self.settings.coverage_of))}
        try:
            counts = count_known(examples.examples, kb, table)
        except ConfigError:  # placeholders in place of mentions
            return {}
        n = counts["mentions"]
        if not n:
            return {}
        ratios = {"in_store": counts["in_kb"] / n, "in_table": counts["in_table"] / n}
        return {"coverage": {"n_mentions": n, **ratios}}


def _predictions(out: Path, results: Mapping[str, Any]) -> dict[str, Path]:
    """Return the file of the predictions on test of each seed."""
    folder = out / "runs" / f"lr-{results['learning_rate']:g}"
    return {
        str(seed): folder / f"seed-{seed}" / "predictions-test.jsonl" for seed in results["seeds"]
    }

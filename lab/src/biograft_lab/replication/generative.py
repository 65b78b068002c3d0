"""Generative linking (GenBioEL): what pre-training on names gives, and which names to learn.

For each set a small BART is made from scratch. It learns the names of the train dictionary
(``genbioel-pretrain-cpu``) or nothing, then the mentions of the train split
(``genbioel-finetune-SET-cpu``, the model of the last step), and links the test split, constrained
to the names of the test dictionary.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from biograft.config import check_choice
from biograft.evaluation import EvaluationConfig, LinkQuery, evaluate_linking, sub_populations
from biograft.evaluation.analysis import population_flags
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.generative import Seq2SeqLinker
from biograft.linking.rankers import load_ranker
from biograft.progress import Progress
from biograft.training.linkers.generative import measure
from biograft.training.linkers.recipes import LinkerRecipe, LinkerTrainingData, finetune
from biograft.training.pretraining.recipe import PretrainingRecipe, pretrain
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.linking import missing_split, read_resolved
from biograft_lab.replication.linking_sets import SETS, LinkingSet
from biograft_lab.replication.protocols import answers_of, metrics_of
from biograft_lab.replication.results import Row
from biograft_lab.replication.runner import (
    ExperimentJob,
    check_names,
    parse_settings,
    parse_variants,
)

RECIPES = {
    "bc5cdr-chemical": "bc5cdr",
    "ncbi-disease": "ncbi",
    "bc5cdr-disease": "bc5cdr",
}

UNSEEN = ("unseen mention", "unseen concept")
"""Populations of which each row has the queries, so that arms are compared on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeSettings:
    """Changes of pre-training on the names of the set's own dictionary, and of fine-tuning."""

    pretrain_changes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeVariant:
    """A way to train a linker.

    ``start`` is ``pretrained`` or ``new``; ``target`` the name of a concept that is learned;
    ``names`` those that may be generated. With ``text``, the documents' text around the
    mentions is read where the set has it in other files; without, such mentions stand alone.
    """

    start: str = "pretrained"
    finetuned: bool = True
    target: str = "similar"
    names: str = "all"
    prompt: bool = True
    text: bool = False
    sets: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_choice("start", self.start, ("pretrained", "new"))

    def changes(self, chosen: LinkingSet) -> list[str]:
        """Return the changes of the fine-tuning recipe for a set."""
        return [
            f'config.target="{self.target}"',
            f'config.names.per_concept="{self.names}"',
            f'config.prompt="{"mention" if self.prompt else "none"}"',
            *(["config.context_words=0"] if chosen.texts and not self.text else []),
        ]

    @property
    def folder(self) -> str:
        """The name of the folder of its runs."""
        prompt = "prompt" if self.prompt else "bare"
        text = "-text" if self.text else ""
        return f"{self.start}-{self.target}-{self.names}-{prompt}{text}"


class GenerativeLinking:
    """Runs experiments of kind ``generative_linking``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets and variants that are not known."""
        known = [name for name in SETS if name in RECIPES or name.startswith("askapatient")]
        check_names("sets", experiment.sets, known)
        for name in experiment.sets:
            parse_settings(experiment, GenerativeSettings, name)
        parse_variants(experiment, GenerativeVariant)

    def run(self, job: ExperimentJob) -> None:
        """Train and link every variant with every set and seed."""
        results, variants = job.results(), parse_variants(job.experiment, GenerativeVariant)
        for name, seed in job.runs():
            if reason := missing_split(SETS[name], job.data, "test"):
                job.warn(f"{name}: skipped, {reason}")
                continue
            models = None
            for label, variant in variants.items():
                if (variant.sets and name not in variant.sets) or (
                    variant.seeds and seed not in variant.seeds
                ):
                    continue
                key = {"set": name, "split": "test", "scorer": "lenient", "seed": seed}
                key["config"] = label
                if not results.has(key):
                    models = models or _Models(name, job)
                    job.add(results, key, models.measure(variant, seed))


class _Models:
    """The stores and models of one set."""

    def __init__(self, name: str, job: ExperimentJob) -> None:
        self.chosen: LinkingSet = SETS[name]
        self.job, self.work = job, job.work / name
        self.settings = parse_settings(job.experiment, GenerativeSettings, name)
        self.train_kb = self.chosen.open_store(job.data, "train", job.work)
        self.kb = self.chosen.open_store(job.data, "test", job.work)
        self.recipe = f"genbioel-finetune-{RECIPES.get(name, 'aap')}-cpu"

    def measure(self, variant: GenerativeVariant, seed: int) -> Row:
        """Train what is missing and link the test split; return metrics, also of parts of it."""
        model = self._finetuned(variant, seed) if variant.finetuned else self._pretrained()
        ranker = load_ranker(model, self.kb)
        if not isinstance(ranker, Seq2SeqLinker):
            raise TypeError(f"{model}: expected a generative linker")
        if not variant.finetuned:  # it has never seen a mention in a text
            alone = replace(ranker.config, context_words=0)
            ranker = Seq2SeqLinker(self.kb, ranker.seq2seq, ranker.names, alone)
        started = time.perf_counter()
        linker = Linker(self.kb, None, ranker=ranker)
        gold = self.chosen.read_gold(self.job.data, "test", with_texts=variant.text)
        config = EvaluationConfig(seed=0)
        result = evaluate_linking(linker, self.kb, gold.queries, "lenient", config, Progress())
        seconds = time.perf_counter() - started
        learned = self.chosen.read_gold(self.job.data, "train").queries
        flags = population_flags(result, self.kb, learned)
        # names that concepts share count once here, as in the paper
        by_name = measure(ranker, None, self._read("test", self.kb, variant))
        return {
            **metrics_of(result),
            **({"n_without_text": gold.n_without_text} if variant.text else {}),
            "populations": [each.to_json() for each in sub_populations(result, self.kb, learned)],
            **answers_of(result, {part: flags[part] for part in UNSEEN}),
            **{name: 100 * by_name[name] for name in ("recall@1", "recall@5")},
            "n_names": self.kb.n_names,
            "n_concepts": len(self.kb),
            "trie_bytes": ranker.names.nbytes,
            "seconds": seconds,
            "note": self.chosen.note,
            "changes": [*self.settings.pretrain_changes, *self.settings.changes],
        }

    def _pretrained(self) -> Path:
        out = self.work / "pretrained"
        if not (out / "done").exists():
            recipe = PretrainingRecipe.load("genbioel-pretrain-cpu", self.settings.pretrain_changes)
            resume = (out / "run.json").exists()
            pretrain(recipe, self.train_kb, out, resume=resume, progress=Progress())
            (out / "done").touch()
        return out / "encoder"

    def _finetuned(self, variant: GenerativeVariant, seed: int) -> Path:
        out = self.work / variant.folder / f"seed-{seed}"
        if not (out / "done").exists():
            changes = [
                *variant.changes(self.chosen),
                f"config.training.seed={seed}",
                *self.settings.changes,
            ]
            start = str(self._pretrained()) if variant.start == "pretrained" else ""
            recipe = LinkerRecipe.load(self.recipe, changes, encoder=start)
            training_data = LinkerTrainingData(
                kb=self.train_kb,
                train=self._read("train", self.train_kb, variant),
                out=out,
                resume=(out / "run.json").exists(),
                progress=Progress(),
            )
            finetune(recipe, training_data)
            (out / "done").touch()
        return out / "model"

    def _read(
        self, split: str, kb: KnowledgeBase, variant: GenerativeVariant
    ) -> Sequence[LinkQuery]:
        """Read the mentions of a split as a variant reads them."""
        return read_resolved(self.chosen, split, kb, self.job.data, with_texts=variant.text)

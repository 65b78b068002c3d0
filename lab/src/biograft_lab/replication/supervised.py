"""Supervised linking: an encoder and a ranker trained on labelled mentions, over several seeds.

For each set and seed the encoder is fine-tuned on the train split, and the ranker learns from the
dev split, whose mentions the encoder has not seen. The test split is linked once, with the
published test dictionary, which holds the mentions of train and dev as names; where there is
none, with the dictionary to which the ranker's run added them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from biograft.evaluation import EvaluationConfig, LinkQuery, evaluate_linking
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.config import LinkerConfig
from biograft.linking.index import open_index
from biograft.linking.rankers import load_ranker
from biograft.progress import Progress
from biograft.training.linkers.recipes import LinkerRecipe, LinkerTrainingData, finetune
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.linking import (
    copy_index,
    missing_split,
    read_resolved,
)
from biograft_lab.replication.linking_sets import SETS, LinkingSet
from biograft_lab.replication.protocols import metrics_of
from biograft_lab.replication.results import Row
from biograft_lab.replication.runner import TOY_LINKER, ExperimentJob, check_names, parse_settings

CONFIGURATIONS = ("dense", "lexical+dense", "ranked")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedSettings:
    """Changes of the recipes of the encoder and the ranker, and the encoder to start from."""

    encoder: str = "encoder"
    changes: tuple[str, ...] = ()
    ranker_changes: tuple[str, ...] = ("config.epochs=60", "config.weight_decay=0.1")


class SupervisedLinking:
    """Runs experiments of kind ``supervised_linking``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings and sets that are not known."""
        trained = [name for name, each in SETS.items() if "train" in each.gold]
        check_names("sets", experiment.sets, trained)
        for name in experiment.sets:
            parse_settings(experiment, SupervisedSettings, name)

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        changes = {
            "changes": (*TOY_LINKER, "config.reach=2"),
            "ranker_changes": ("config.epochs=2",),
        }
        return experiment.smaller({}, changes)

    def run(self, job: ExperimentJob) -> None:
        """Train and link every set with every seed."""
        results = job.results()
        for name, seed in job.runs():
            key = {"set": name, "split": "test", "scorer": "lenient", "seed": seed}
            if all(results.has({**key, "config": each}) for each in CONFIGURATIONS):
                continue
            if reason := missing_split(SETS[name], job.data, "train"):
                job.warn(f"{name}: skipped, {reason}")
                continue
            started = time.perf_counter()
            settings = parse_settings(job.experiment, SupervisedSettings, name)
            for config, metrics in _Training(SETS[name], seed, job, settings).measure().items():
                row = {
                    **metrics,
                    "note": SETS[name].note,
                    "changes": list(settings.changes),
                    "seconds": time.perf_counter() - started,
                }
                job.add(results, {**key, "config": config}, row)


@dataclass(frozen=True, slots=True)
class _Training:
    chosen: LinkingSet
    seed: int
    job: ExperimentJob
    settings: SupervisedSettings

    @property
    def folder(self) -> Path:
        return self.job.work / self.chosen.name / f"seed-{self.seed}"

    def measure(self) -> dict[str, Row]:
        """Train what is missing and link the test split."""
        kb = self.chosen.open_store(self.job.data, "train", self.job.work)
        mentions = {
            split: read_resolved(self.chosen, split, kb, self.job.data)
            for split in ("train", "dev")
        }
        ranked = self._train_ranker(kb, mentions)
        store, index = KnowledgeBase.open(ranked / "kb"), ranked / "index"
        if self.chosen.own_dictionaries:
            store = self.chosen.open_store(self.job.data, "test", self.job.work)
            index = self.folder / "index"
            copy_index(ranked / "index", store, index)
        search = open_index(store, index).search
        dense = open_index(store, index, LinkerConfig(search="dense")).search
        linkers = {
            "dense": Linker(store, dense),
            "lexical+dense": Linker(store, search),
            "ranked": Linker(store, search, ranker=load_ranker(ranked / "model", store)),
        }
        gold = self.chosen.read_gold(self.job.data, "test").queries
        config = EvaluationConfig(seed=0)
        return {
            name: metrics_of(evaluate_linking(linker, store, gold, "lenient", config))
            for name, linker in linkers.items()
        }

    def _train_ranker(self, kb: KnowledgeBase, mentions: Mapping[str, Sequence[LinkQuery]]) -> Path:
        encoder = self._finetune_encoder(kb, mentions["train"])
        out = self.folder / "ranker"
        changes = [f"config.seed={self.seed}", *self.settings.ranker_changes]
        recipe = LinkerRecipe.load("linker-ranker", changes, encoder=str(encoder))
        data = LinkerTrainingData(
            kb=kb,
            train=mentions["dev"],
            known=mentions["train"],
            out=out,
            resume=(out / "run.json").exists(),
            progress=Progress(),
        )
        finetune(recipe, data)
        return out

    def _finetune_encoder(self, kb: KnowledgeBase, train: Sequence[LinkQuery]) -> Path:
        out = self.folder / "encoder"
        if not (out / "done").exists():
            changes = [f"config.training.seed={self.seed}", *self.settings.changes]
            start = str(self.job.input(self.settings.encoder))
            recipe = LinkerRecipe.load("linker-encoder-cpu", changes, encoder=start)
            resume = (out / "checkpoints").exists()
            finetune(
                recipe,
                LinkerTrainingData(kb=kb, train=train, out=out, resume=resume, progress=Progress()),
            )
            (out / "done").touch()
        return out / "encoder"

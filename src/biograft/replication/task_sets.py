"""The data sets of downstream tasks: entities, relations, question matching, answer ranking.

Paths are relative to the folder of real data. The labelled part of CMeEE is cut in five folds: one
to test on, a tenth of the others for dev. The dev part of cMedQA, whose train part is not
available, is cut in train and dev.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from biograft.replication.runner import missing_data
from biograft.tasks import TASKS, TaskRecipe
from biograft.tasks.task import TaskExamples

SPLITS = ("train", "dev", "test")
Cut = Callable[[Sequence[Any]], dict[str, Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class TaskSet:
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


def _entities(folder: str) -> TaskSet:
    return TaskSet("ner-cpu", f"ner_en/{folder}", "train.tsv", "devel.tsv", "test.tsv")


_DDI, _BLUE = "DDICorpus-2013.zip", "zh/chineseblue"
TASK_SETS: Mapping[str, TaskSet] = {
    "ncbi": _entities("NCBI-disease"),
    "bc5cdr-disease": _entities("BC5CDR-disease"),
    "bc5cdr-chemical": _entities("BC5CDR-chem"),
    "bc2gm": _entities("BC2GM"),
    "jnlpba": _entities("JNLPBA_untyped"),
    "gad": TaskSet("relation-cpu", "re_en/gad", "train.tsv", "dev.tsv", "test.tsv"),
    "ddi": TaskSet(
        "relation-cpu", "re_en/ddi2013", _DDI, _DDI, _DDI,
        ('data.format="ddi"', 'data.dev_list="{data}/re_en/ddi2013/blurb_dev.tsv"'),
    ),
    "chemprot": TaskSet("relation-cpu", "re_en/chemprot", "train.jsonl", "dev.jsonl", "test.jsonl"),
    "cmedqq": TaskSet(
        "matching-cpu", f"{_BLUE}/cMedQQ", "train.txt", "dev.txt", "test.txt",
        ('data.format="cmedqq"',),
    ),
    "cmedqaner": TaskSet(
        "ner-cpu", f"{_BLUE}/cMedQANER", "train.json", "dev.json", "test.json",
        ('data.format="cmedqaner"',),
    ),
    "cmedqa": TaskSet(
        "ranking-cpu", f"{_BLUE}/cMedQA", "dev.txt", "", "test.txt", ('data.format="cmedqa"',),
        _four_fifths,
    ),
    **{
        f"cmeee-{fold}": TaskSet(
            "ner-cpu", "zh/cmeee_v2", "CMeEE-V2_dev.json", "", "",
            ('data.format="cmeee"', 'config.head="spans"'), partial(_fold, fold),
        )
        for fold in range(5)
    },
}  # fmt: skip

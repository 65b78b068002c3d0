"""Replaced mentions: whether a fine-tuned model finds an entity under a name that it never read.

Mentions of a test set are replaced, one at a time, by other names of their entity that no training
text has. The models are those that an experiment of kind ``encoder_tasks`` left behind, so that
nothing is trained. An item is a replaced mention; the sets of an experiment are:

============  ==============================================================
``original``  the mention is found before it is replaced (span and type)
``replaced``  it is found afterwards
``kept``      it is found afterwards, or was not found before
============  ==============================================================
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from biograft.config import AtLeast, check_fields
from biograft.errors import InputError
from biograft.kb import KnowledgeBase
from biograft.text.documents import Document, Mention
from biograft.training.tasks import TaskRecipe
from biograft_lab.replication.encoders import TASK_SETS
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.pretrained_arms import (
    check_arms,
    each_arm,
    find_arm,
)
from biograft_lab.replication.results import Row, pack_flags, pack_sizes
from biograft_lab.replication.runner import (
    ExperimentJob,
    check_names,
    parse_settings,
    parse_variants,
)

SETS = ("original", "replaced", "kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymMentionSettings:
    """The store, the set of texts, and how many synonyms replace a mention, one at a time."""

    kb: str = "kb"
    texts: str = "cmedqaner"
    n_synonyms: Annotated[int, AtLeast(1)] = 3

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskModelArm:
    """A fine-tuned model as INPUT/PATH, ``{seed}`` in it for each seed of pre-training.

    Without entities it reads texts without entity inputs, though it was trained with them.
    """

    model: str
    with_entities: bool = True


@dataclass(frozen=True, slots=True)
class ReplacedMention:
    """A document, a copy of it with one mention replaced, and that mention in both."""

    document: int
    before: Mention
    copy: Document
    after: Mention


class SynonymMentions:
    """Runs experiments of kind ``synonym_mentions``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets, inputs and variants that are not known."""
        settings = parse_settings(experiment, SynonymMentionSettings)
        check_names("sets", experiment.sets, SETS)
        check_names("settings.texts", [settings.texts], [*TASK_SETS])
        check_names("settings", [settings.kb], [*experiment.inputs])
        check_arms(experiment, _models(experiment).values())

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        return experiment.smaller({"n_synonyms": 1}, {}, n_seeds=2)

    def run(self, job: ExperimentJob) -> None:
        """Predict the entities of all texts with every model."""
        results, models = job.results(), _models(job.experiment)
        settings = parse_settings(job.experiment, SynonymMentionSettings)
        variants = parse_variants(job.experiment, TaskModelArm)
        splits = _read(settings.texts, job.data)
        base = KnowledgeBase.open(job.input(settings.kb))
        items = replace_mentions(base, splits, settings.n_synonyms)
        if not items:
            raise InputError("no mention has a name that train does not have", path=job.data)
        for label, seed in each_arm(job, models):
            key = {"config": label, **({} if seed is None else {"seed": seed})}
            if all(results.has({"set": name, **key}) for name in job.experiment.sets):
                continue
            started = time.perf_counter()
            folder = find_arm(job, models[label], seed or 0)
            found = measure(
                folder, splits["test"], items, with_entities=variants[label].with_entities
            )
            seconds = round((time.perf_counter() - started) / len(job.experiment.sets), 1)
            for name in job.experiment.sets:
                job.add(
                    results, {"set": name, **key}, {**_row(items, found[name]), "seconds": seconds}
                )


def _models(experiment: Experiment) -> dict[str, str]:
    return {label: arm.model for label, arm in parse_variants(experiment, TaskModelArm).items()}


def _read(name: str, data: Path) -> dict[str, Sequence[Document]]:
    chosen = TASK_SETS[name]
    recipe = TaskRecipe.load(chosen.recipe, [text.format(data=data) for text in chosen.changes])
    return {split: given.examples for split, given in chosen.read(recipe, data, 0).items()}


def replace_mentions(
    base: KnowledgeBase, splits: Mapping[str, Sequence[Document]], n_synonyms: int
) -> list[ReplacedMention]:
    """Replace each test mention by names of its entity that are in no text of train and dev."""
    known = "\n".join(doc.text for split in ("train", "dev") for doc in splits[split])
    rng, items = np.random.default_rng(0), []
    for number, document in enumerate(splits["test"]):
        for mention in document.mentions:
            concepts = [match.concept for match in base.find(mention.text)]
            names = {name.text for concept in concepts for name in base[concept].names}
            new = sorted(name for name in names if name not in known and name not in document.text)
            chosen = [new[row] for row in rng.permutation(len(new))[:n_synonyms].tolist()]
            items += [_replaced(number, document, mention, name) for name in chosen]
    return [item for item in items if item]


def _replaced(
    number: int, document: Document, mention: Mention, name: str
) -> ReplacedMention | None:
    """Replace a mention in a copy of its document; None if another mention overlaps it."""
    shift, mentions = len(name) - (mention.end - mention.start), []
    after = replace(mention, end=mention.end + shift, text=name)
    for other in document.mentions:
        if other is mention:
            mentions.append(after)
        elif other.end <= mention.start:
            mentions.append(other)
        elif other.start >= mention.end:
            mentions.append(replace(other, start=other.start + shift, end=other.end + shift))
        else:
            return None
    text = document.text[: mention.start] + name + document.text[mention.end :]
    return ReplacedMention(
        number, mention, replace(document, text=text, mentions=tuple(mentions)), after
    )


def measure(
    folder: Path,
    documents: Sequence[Document],
    items: Sequence[ReplacedMention],
    *,
    with_entities: bool = True,
) -> dict[str, list[bool]]:
    """Return which items a model finds: before, after, and whether they are kept."""
    from biograft.models.tasks import open_task

    model = open_task(folder)
    if not with_entities:
        model.network.encoder.finder = None
    blank = [replace(document, mentions=()) for document in documents]
    before = model.predict(blank)
    after = model.predict([replace(item.copy, mentions=()) for item in items])
    typed = model.config.types != "ignore"
    original = [_has(before[item.document], item.before, typed=typed) for item in items]
    pairs = zip(after, items, strict=True)
    replaced = [_has(document, item.after, typed=typed) for document, item in pairs]
    kept = [there or not was for was, there in zip(original, replaced, strict=True)]
    return {"original": original, "replaced": replaced, "kept": kept}


def _has(document: Document, mention: Mention, *, typed: bool) -> bool:
    wanted = (mention.start, mention.end, mention.type if typed else "")
    return any((m.start, m.end, m.type if typed else "") == wanted for m in document.mentions)


def _row(items: Sequence[ReplacedMention], right: Sequence[bool]) -> Row:
    _, sizes = np.unique([item.document for item in items], return_counts=True)
    return {
        "split": "test",
        "n": len(items),
        "acc@1": 100 * sum(right) / len(right),
        "right": pack_flags(right),
        "documents": pack_sizes(sizes.tolist()),
    }

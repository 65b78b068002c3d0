"""Smoke runs: an experiment on toy data, by the code of a real run, with all of its variants.

Only sizes are smaller. Every input is made as the experiment describes it, on toy data: stores,
annotated text, encoders. All smoke runs in one folder share their toy data and inputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toy_files import (
    ALIAS,
    IDS_IN_SETS,
    TOY_CONCEPTS,
    ToyWriter,
    write_toy_files,
)

from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking.annotation import AnnotationConfig, annotate
from biograft.linking.annotation.runner import ExecutionConfig
from biograft.text.segmentation import PhraseConfig, SegmentationConfig, build_segmentation
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.results import without_fold
from biograft_lab.replication.runner import ExperimentJob, load_kind

_N_DOCUMENTS, _N_SENTENCES = 120, 3
"""Enough for a held-out document."""
_N_TRIPLES = 200
_N_LAYERS = 6
"""As many as MiniLM has: experiments name the layer that a memory follows."""


def run_smoke(job: ExperimentJob) -> Path:
    """Run an experiment on toy data in the job's work folder, and return the result file."""
    load_kind(job)
    small = toy_job(job)
    load_kind(small).run(small)
    return small.out


def toy_job(job: ExperimentJob) -> ExperimentJob:
    """Return a job on toy data, with all inputs made."""
    folder, experiment = job.work / "smoke", job.experiment
    toy = ToyInputs(folder)
    write_toy_files(folder / "data")
    (folder / experiment.name).mkdir(parents=True, exist_ok=True)
    return replace(
        job,
        experiment=small(experiment),
        work=folder / experiment.name,
        data=folder / "data",
        out=folder / job.out.name,
        inputs={name: toy.of(experiment, name) for name in experiment.inputs},
    )


@dataclass(frozen=True, slots=True)
class ToyInputs:
    """The inputs of experiments, made of toy data as their descriptions say, each once."""

    folder: Path

    def of(self, experiment: Experiment, name: str) -> Path:
        """Return an input of an experiment, making it if needed."""
        text = " ".join(experiment.inputs[name].replace("\\\n", " ").split())
        for pattern, make in _MAKERS.items():
            if re.search(pattern, text):
                return make(self)
        raise ConfigError(
            f"{experiment.name}: inputs.{name}: {text!r} is nothing that toy data have; describe "
            f"it by one of the patterns {', '.join(_MAKERS)}"
        )

    def store(self) -> KnowledgeBase:
        """Return the toy store: two types, names in two languages, a graph."""
        folder = self.folder / "kb"
        if not folder.exists():
            writer = ToyWriter(self.folder / "sources")
            rows = [
                {
                    "id": each.id,
                    "types": [each.type],
                    "ids": [IDS_IN_SETS[each.id]] if each.id in IDS_IN_SETS else [],
                    "names": {"en": list(each.english), "zh": list(each.chinese)},
                }
                for each in TOY_CONCEPTS
            ]
            writer.write("concepts.jsonl", [json.dumps(row, ensure_ascii=False) for row in rows])
            triples = [*writer.triples(_N_TRIPLES), ALIAS]
            writer.write("triples.tsv", ["head\trelation\ttail", *triples])
            sources = (
                SourceConfig(path=writer.folder / "concepts.jsonl", format="jsonl"),
                SourceConfig(path=writer.folder / "triples.tsv", format="triples"),
            )
            build_store(BuildConfig(sources=sources), folder)
        return KnowledgeBase.open(folder)

    def triples(self) -> Path:
        """Return the file of the graph of the toy store."""
        self.store()
        return self.folder / "sources" / "triples.tsv"

    def texts(self) -> Path:
        """Return the file of the toy documents."""
        writer = ToyWriter(self.folder / "sources")
        if not (writer.folder / "texts.txt").exists():
            writer.write("texts.txt", writer.documents(_N_DOCUMENTS, _N_SENTENCES))
        return writer.folder / "texts.txt"

    def corpus(self) -> Path:
        """Return the toy documents, annotated."""
        out = self.folder / "corpus"
        if not out.exists():
            execution = ExecutionConfig(workers=1)
            annotate(self.store().folder, [self.texts()], out, AnnotationConfig(), execution)
        return out

    def segmentation(self) -> Path:
        """Return the segmentation of the long Chinese names."""
        out = self.folder / "segmentation"
        if not out.exists():
            config = SegmentationConfig(language="zh", phrases=PhraseConfig(min_count=4))
            build_segmentation(self.store(), [self.texts()], out, config)
        return out

    def encoder(self) -> Path:
        """Return an encoder that stands for a published one."""
        from biograft.models.scratch_configs import NewBert
        from biograft.models.settings import EncoderSettings, write_settings

        out = self.folder / "encoder"
        if not out.exists():
            config = NewBert(width=16, heads=2, feed_forward=32, n_tokens=600, layers=_N_LAYERS)
            made = config.create(self.texts().read_text("utf-8").splitlines(), 0)
            made.model.save_pretrained(out)
            made.tokenizer.save_pretrained(out)
            write_settings(out, EncoderSettings(pooling="mean", max_length=64, lower=True))
        return out


TOY_PRETRAINING = (
    "training.epochs=1",
    "training.steps=2",
    "training.batch_size=4",
    "training.warmup_steps=0",
    "training.save_every=2",
    "training.eval_every=2",
    "training.precision=fp32",
)
TOY_LINKER = (
    "config.training.steps=2",
    "config.training.batch_size=4",
    "config.training.precision=fp32",
)
_NEW = ("new.width=16", "new.layers=1", "new.heads=2", "new.feed_forward=32", "new.n_tokens=400")
_CHANGES: dict[str, dict[str, Sequence[str]]] = {
    "linking": {"alignment": TOY_PRETRAINING},
    "joint_linking": {
        "changes": (*TOY_LINKER, "config.reach=2"),
        "student_changes": ("config.width=8", "config.hidden=8", "config.training.epochs=1"),
    },
    "generative_linking": {
        "pretrain_changes": (*TOY_PRETRAINING, *_NEW),
        "changes": (*TOY_LINKER, *(f"config.{change}" for change in _NEW)),
    },
    "objectives": {"changes": TOY_PRETRAINING},
}
"""Changes of recipes, added to those of the settings with these names, by kind."""
_SETTINGS = {"linking": {"scratch_width": 16}}
_N_SEEDS = {"linking": 2, "joint_linking": 2}


def small(experiment: Experiment) -> Experiment:
    """Return an experiment at the size of toy data, with all its variants."""
    kind = experiment.kind
    settings, n_seeds = _SETTINGS.get(kind, {}), _N_SEEDS.get(kind, 1)
    return smaller(experiment, settings, _CHANGES[kind], n_seeds=n_seeds)


def smaller(
    experiment: Experiment,
    settings: Mapping[str, Any],
    changes: Mapping[str, Sequence[str]],
    *,
    n_seeds: int = 1,
) -> Experiment:
    """Return an experiment with other settings, few seeds, and one fold of each set.

    ``settings`` replace those of the experiment and of its sets, ``changes`` are added to lists
    of changes, also to those of sets and variants.
    """

    def shrink(given: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
        more = {key: [*given.get(key, ()), *changes[key]] for key in changes if key in keys}
        return {**given, **more}

    own = {
        name: shrink({k: v for k, v in table.items() if k not in settings}, table)
        for name, table in experiment.set_settings.items()
    }
    for table in own.values():
        if "seeds" in table:
            table["seeds"] = table["seeds"][:n_seeds]
    folds = {without_fold(name): name for name in reversed(experiment.sets)}
    return replace(
        experiment,
        sets=tuple(name for name in experiment.sets if name in folds.values()),
        seeds=experiment.seeds[:n_seeds],
        settings={**shrink(experiment.settings, changes), **settings},
        set_settings=own,
        variants={label: shrink(given, given) for label, given in experiment.variants.items()},
    )


_Make = Callable[[ToyInputs], Path]
_MAKERS: dict[str, _Make] = {
    r"chinese_base (?:text|tests)\b|replication\.objectives": ToyInputs.texts,
    r"chinese_base (?:graph|synonyms)": ToyInputs.triples,
    r"biograft corpus annotate": ToyInputs.corpus,
    r"biograft corpus segment": ToyInputs.segmentation,
    r"biograft kb build": lambda toy: toy.store().folder,
    r"^the folder of|^multilingual-e5-small": ToyInputs.encoder,
}
"""Maker of an input, by a pattern of its description; the first match counts."""

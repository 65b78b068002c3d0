"""Raw text: mentions found by a detector that is trained on the sets, linked by lexical search.

Sets that are annotated in the same documents share one detector, which knows all their types. The
detector that finds the mentions of dev is trained on train; the one of test on train and dev,
unless an experiment says otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from biograft.config import Choice, check_fields
from biograft.evaluation import TEXT_FORMATS
from biograft.linking import Linker, LinkerConfig, ModelDetector
from biograft.linking.config import DETECTIONS
from biograft.linking.fusion import FusedSearch
from biograft.progress import Progress
from biograft.text.documents import Document, Mention
from biograft.text.formats import read_documents, write_documents
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.joint import TRAINED_ON
from biograft_lab.replication.linking import missing_split
from biograft_lab.replication.linking_dictionaries import LINKING, PUBLISHED
from biograft_lab.replication.linking_sets import SETS, LinkingSet
from biograft_lab.replication.protocols import LinkingTask, open_lexical_index, read_texts
from biograft_lab.replication.results import Row
from biograft_lab.replication.runner import (
    TOY_TASK,
    ExperimentJob,
    check_names,
    parse_settings,
    parse_variants,
)

_N_WATCHED = 100
"""Documents of dev that a detector is evaluated on after each epoch, to keep the best one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionSettings:
    """Settings of detector training, and the dictionaries that are searched.

    ``start`` is a set from whose detector the encoder is taken; without it training starts from
    ``encoder``. ``added`` is what the dictionaries have beside the published names. Without
    ``refit`` the detector of dev, trained on train alone, finds the mentions of test, too.
    """

    encoder: str = "encoder"
    start: str = ""
    recipe: str = "ner-cpu"
    changes: tuple[str, ...] = ()
    added: tuple[str, ...] = ("",)
    refit: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionVariant:
    """A way to find mentions, and the splits on which it is measured."""

    detection: Annotated[str, Choice(*DETECTIONS[1:])] = "model"
    splits: tuple[Annotated[str, Choice(*TRAINED_ON)], ...] = tuple(TRAINED_ON)
    misspelt: bool = False
    """Whether names with spelling errors count, too, where names are searched."""

    def __post_init__(self) -> None:
        check_fields(self)


class Detection:
    """Runs experiments of kind ``detection``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, variants and sets that are not known."""
        check_names("sets", experiment.sets, _trainable())
        parse_variants(experiment, DetectionVariant)
        for name in experiment.sets:
            settings = parse_settings(experiment, DetectionSettings, name)
            if settings.start:
                before = experiment.sets[: experiment.sets.index(name)]
                check_names(f"set_settings.{name}.start", [settings.start], before)

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        changes = (*TOY_TASK, "config.training.epochs=1")
        return experiment.smaller({}, {"changes": changes})

    def run(self, job: ExperimentJob) -> None:
        """Train the detectors of each set, and link its splits."""
        for name in job.experiment.sets:
            if reason := missing_split(_texts_of(name), job.data, "train"):
                job.warn(f"{name}: skipped, {reason}")
            else:
                _Detected(name, job).measure()


def _trainable() -> list[str]:
    """Return the sets whose texts have all mentions marked in train and dev."""
    return [
        name
        for name in SETS
        if (texts := _texts_of(name)).format in TEXT_FORMATS
        and PUBLISHED in texts.dictionaries
        and {*TRAINED_ON} <= {*texts.gold}
    ]


def _texts_of(name: str) -> LinkingSet:
    return SETS[SETS[name].raw or name]


@dataclass(frozen=True, slots=True)
class _FoundMentions:
    """The mentions that a detector has found in some texts."""

    by_text: Mapping[str, Sequence[Mention]]

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Return the mentions of each text."""
        return [list(self.by_text[document.text]) for document in documents]


@dataclass(frozen=True, slots=True)
class _Detected:
    """One set, with the detectors of its splits."""

    name: str
    job: ExperimentJob

    @property
    def settings(self) -> DetectionSettings:
        return parse_settings(self.job.experiment, DetectionSettings, self.name)

    @property
    def texts(self) -> LinkingSet:
        return _texts_of(self.name)

    def measure(self) -> None:
        """Link every split by every variant that has no row yet."""
        results = self.job.results()
        for task, label, variant in self._rows():
            key = {**task.key, "config": label}
            if not results.has(key):
                self.job.add(results, key, self._link(task, variant))

    def _rows(self) -> Iterator[tuple[LinkingTask, str, DetectionVariant]]:
        variants = parse_variants(self.job.experiment, DetectionVariant)
        for added in self.settings.added:
            for split in TRAINED_ON:
                task = LinkingTask(
                    set=self.name, protocol="text", split=split, dictionary=PUBLISHED + added
                )
                yield from ((task, *each) for each in variants.items() if split in each[1].splits)

    def _link(self, task: LinkingTask, variant: DetectionVariant) -> Row:
        """Link a split, and return its row."""
        started, work = time.perf_counter(), self.job.work
        model = self.detector(task.split)
        kb = task.open_store(self.job.data, work)
        linker = Linker(
            kb,
            FusedSearch([open_lexical_index(task.folder(work), kb)]),
            detector=self._found(task.split, model),
            config=LinkerConfig(
                detection=variant.detection, misspelt=variant.misspelt, threshold=0.0
            ),
        )
        return {
            **task.measure(linker, self.job.data, work),
            "detection": variant.detection,
            "detector": self._described(model, task.split),
            "seconds": time.perf_counter() - started,
        }

    def _found(self, split: str, model: Path) -> _FoundMentions:
        """Return what a detector finds in a split; several rows need it, so a file keeps it."""
        file = model.parent / f"found-{split}.jsonl"
        if not file.exists():
            documents = self._read(split)
            found = ModelDetector.open(model).detect(documents)
            marked = [
                replace(each, mentions=tuple(mentions), relations=())
                for each, mentions in zip(documents, found, strict=True)
            ]
            write_documents(marked, file, "jsonl")
        types = self.texts.config.types
        return _FoundMentions(
            {
                document.text: [m for m in document.mentions if not types or m.type in types]
                for document in read_documents(file)
            }
        )

    def detector(self, split: str) -> Path:
        """Train the detector of a split, or what is missing of it; return its folder."""
        from biograft.models.tasks.task import TaskExamples
        from biograft.training.tasks import TaskRecipe, TaskTrainingData, finetune_task

        trained_for = self._trained_for(split)
        out = self.job.work / "detectors" / f"{self._corpus}-for-{trained_for}"
        changes = [
            f"encoder.name={self._start(trained_for)}",
            f"config.types={'keep' if self.texts.config.types else 'ignore'}",
            f"search.seeds=[{', '.join(map(str, self.job.experiment.seeds))}]",
            *self.settings.changes,
        ]
        train = [d for part in TRAINED_ON[trained_for] for d in self._read(part)]
        data = TaskTrainingData(
            train=TaskExamples(train),
            dev=TaskExamples(self._read("dev")[:_N_WATCHED]),
            out=out,
            resume=out.exists(),
            progress=Progress(),
        )
        return finetune_task(TaskRecipe.load(self.settings.recipe, changes), data).model

    def _trained_for(self, split: str) -> str:
        """Return the split whose detector finds the mentions of a split."""
        return split if self.settings.refit else "dev"

    def _start(self, split: str) -> Path:
        """Return the encoder that training starts from."""
        from biograft.models.tasks.folder import ENCODER

        if self.settings.start:
            return _Detected(self.settings.start, self.job).detector(split) / ENCODER
        return self.job.input(self.settings.encoder)

    def _read(self, split: str) -> Sequence[Document]:
        """Read the documents of a split with all their mentions, those of other sets, too."""
        return read_texts(self.texts, split, self.job.data)

    @property
    def _corpus(self) -> str:
        """The folder of the documents, which names the detector."""
        return Path(self.texts.gold["train"]).relative_to(LINKING).parts[0]

    def _described(self, folder: Path, split: str) -> dict[str, Any]:
        """Return what the detector is trained on, and how."""
        from biograft.models.tasks.folder import TASK_MODEL

        manifest, settings = TASK_MODEL.read(folder), self.settings
        return {
            "splits": list(TRAINED_ON[self._trained_for(split)]),
            "types": manifest["labels"],
            "start": settings.start or settings.encoder,
            "changes": list(settings.changes),
            "seed": manifest["seed"],
            "best_epoch": manifest["best_epoch"],
            "training_seconds": manifest["seconds"],
        }

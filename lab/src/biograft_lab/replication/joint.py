"""One encoder fine-tuned on the mentions of several sets at once, averaged over seeds.

All sets share one store for training: the names of all their ontologies. What is measured is one
encoder: the average of the weights of all seeds. The weight of lexical search is chosen on dev,
with encoders trained on train alone; for test the encoders are trained again, on train and dev,
unless an experiment says otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from biograft.artifacts import hash_file
from biograft.config import check_choice
from biograft.evaluation import LinkQuery, StoreIds, resolve_gold
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.linking import Linker, build_index
from biograft.linking.dense.encoders import load_encoder
from biograft.linking.fusion import FusedSearch
from biograft.linking.index import INDEX, open_index
from biograft.linking.search_weights import fit_lexical_weight
from biograft.progress import Progress
from biograft.training.linkers.recipes import LinkerRecipe, LinkerTrainingData, finetune
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.linking import copy_index, missing_split, read_resolved
from biograft_lab.replication.linking_dictionaries import ONTOLOGY
from biograft_lab.replication.linking_sets import SETS, LinkingSet
from biograft_lab.replication.protocols import PLAIN, PROTOCOLS, LinkingTask
from biograft_lab.replication.results import Row
from biograft_lab.replication.runner import ExperimentJob, check_names, parse_settings

TRAINED_ON = {"dev": ("train",), "test": ("train", "dev")}
"""Split that is linked -> splits that the encoder is trained on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointSettings:
    """The encoder to start from, changes of its recipe, and what is measured.

    ``system`` names the encoder in tables; with lexical search beside it, ``+ lexical`` follows.
    ``added`` is what the dictionaries that are searched have beside the names of the protocol:
    nothing, names of other ontologies (``+names``) or mentions of earlier splits (``+mentions``,
    for a set whose published dictionary has none); each of several is measured. Without ``refit``
    the encoders of dev, trained on train alone, link test, too. Unless ``together``, each set has
    encoders of its own, as folds that share documents must. ``student`` names a second encoder in
    tables, which is distilled from the average and runs without torch; ``student_changes`` change
    its recipe.
    """

    system: str
    encoder: str = "encoder"
    recipe: str = "linker-encoder-cpu"
    changes: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("published",)
    added: tuple[str, ...] = ("",)
    refit: bool = True
    together: bool = True
    student: str = ""
    student_changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.protocols:
            check_choice("protocols", name, tuple(PROTOCOLS))


class JointLinking:
    """Runs experiments of kind ``joint_linking``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings and sets that are not known."""
        trained = [name for name, each in SETS.items() if {*TRAINED_ON} <= {*each.gold}]
        check_names("sets", experiment.sets, trained)
        for name in experiment.sets:
            parse_settings(experiment, JointSettings, name)

    def run(self, job: ExperimentJob) -> None:
        """Train for dev, link dev, train again for test, link test."""
        sets = []
        for name in job.experiment.sets:
            if reason := missing_split(SETS[name], job.data, "train"):
                job.warn(f"{name}: skipped, {reason}")
            else:
                sets.append(SETS[name])
        if not sets:
            return
        settings = parse_settings(job.experiment, JointSettings)
        joined = [_Joint(sets, job, settings, job.work)]
        if not settings.together:
            joined = [_Joint([each], job, settings, job.work / each.name) for each in sets]
        for joint in joined:
            for split in TRAINED_ON:
                joint.measure(split)


@dataclass(frozen=True, slots=True)
class _Joint:
    sets: Sequence[LinkingSet]
    job: ExperimentJob
    settings: JointSettings
    work: Path
    """The folder of its encoders and of its store for training."""

    def measure(self, split: str) -> None:
        """Link a split of every set with the average of the encoders of all seeds."""
        self._measure(split, self.settings.system, self.encoder)
        if self.settings.student:
            self._measure(split, self.settings.student, self.student)

    def _measure(self, split: str, system: str, make_encoder: Callable[[str], Path]) -> None:
        """Link what has not been linked by a system: by it alone, and beside lexical search."""
        results = self.job.results()
        missing = [
            task
            for chosen in self.sets
            for task in self._tasks(chosen, split)
            if not all(results.has({**task.key, "config": name}) for name in _names(system))
        ]
        if not missing:
            return
        encoder = make_encoder(split if self.settings.refit else "dev")
        for task in missing:
            for name, row in self._link(task, encoder, system).items():
                self.job.add(results, {**task.key, "config": name}, row)

    def encoder(self, split: str) -> Path:
        """Return the encoder that is trained for a split: the average of all seeds."""
        encoders = [self.finetune(split, seed) for seed in self.job.experiment.seeds]
        return self.average(split, encoders) if len(encoders) > 1 else encoders[0]

    def student(self, split: str) -> Path:
        """Distil the encoder of a split, if that is not done, on the names of all ontologies."""
        out = self.work / f"for-{split}" / "student"
        if not (out / "done").exists():
            start = str(self.encoder(split))
            data = LinkerTrainingData(
                kb=self._store(),
                train=[],
                out=out,
                resume=(out / "run.json").exists(),
                progress=Progress(),
            )
            changes = self.settings.student_changes
            finetune(LinkerRecipe.load("linker-static", changes, encoder=start), data)
            (out / "done").touch()
        return out / "encoder"

    def _tasks(self, chosen: LinkingSet, split: str) -> Iterator[LinkingTask]:
        settings = parse_settings(self.job.experiment, JointSettings, chosen.name)
        for added in settings.added:
            for protocol in settings.protocols:
                dictionary = PROTOCOLS[protocol].dictionary + added
                yield LinkingTask(
                    set=chosen.name, protocol=protocol, split=split, dictionary=dictionary
                )

    def finetune(self, split: str, seed: int) -> Path:
        """Train an encoder for a split, if that is not done; return its folder."""
        out = self.work / f"for-{split}" / f"seed-{seed}"
        if not (out / "done").exists():
            kb = self._store()
            changes = [f"config.training.seed={seed}", *self.settings.changes]
            start = str(self.job.input(self.settings.encoder))
            data = LinkerTrainingData(
                kb=kb,
                train=[
                    query
                    for chosen in self.sets
                    for part in TRAINED_ON[split]
                    for query in _read_apart(chosen, part, kb, self.job.data)
                ],
                out=out,
                resume=(out / "checkpoints").exists(),
                progress=Progress(),
            )
            finetune(LinkerRecipe.load(self.settings.recipe, changes, encoder=start), data)
            (out / "done").touch()
        return out / "encoder"

    def average(self, split: str, encoders: Sequence[Path]) -> Path:
        """Average the encoders of all seeds; return the folder of the mean."""
        from biograft.training.linkers.encoder import average_encoders

        out = self.work / f"for-{split}" / "average"
        if not out.exists():
            average_encoders(encoders, out)
        return out

    def _store(self) -> KnowledgeBase:
        """Return the store of the names of all ontologies."""
        folder = self.work / "joint"
        if not (folder / "kb").exists():
            sources = {}
            for chosen in self.sets:
                own = folder / chosen.name
                own.mkdir(parents=True, exist_ok=True)
                source = chosen.dictionaries[ONTOLOGY].source(self.job.data, "train", own)
                sources[hash_file(source.path)] = source  # two sets may share an ontology
            build_store(BuildConfig(sources=tuple(sources.values())), folder / "kb")
        return KnowledgeBase.open(folder / "kb")

    def _link(self, task: LinkingTask, encoder: Path, system: str) -> dict[str, Row]:
        """Return the rows of dense search alone and beside lexical search."""
        data, work, started = self.job.data, self.job.work, time.perf_counter()
        kb = task.open_store(data, work)
        search = open_index(kb, self._index(task, kb, encoder)).search
        alone, beside_lexical = _names(system)
        weight = self._lexical_weight(task, search, kb, beside_lexical)
        dense = [generator for generator in search.generators if generator.name == "dense"]
        fused = FusedSearch(search.generators, {"lexical": weight, "dense": 1 - weight})
        rows = {}
        for name, used in ((alone, FusedSearch(dense)), (beside_lexical, fused)):
            rows[name] = {
                **task.measure(Linker(kb, used, config=PLAIN), data, work),
                "seeds": list(self.job.experiment.seeds),
                "trained_on": [each.name for each in self.sets],
                "trained_splits": list(TRAINED_ON[task.split if self.settings.refit else "dev"]),
                "changes": list(self.settings.changes),
                "seconds": time.perf_counter() - started,
            }
        rows[beside_lexical]["lexical_weight"] = weight
        return rows

    def _lexical_weight(
        self, task: LinkingTask, search: FusedSearch, kb: KnowledgeBase, system: str
    ) -> float:
        """Fit the weight of lexical search on dev; for test, take that one."""
        if task.split == "dev":
            _, queries = task.read_queries(self.job.data, kb)
            resolved = resolve_gold(queries, StoreIds(kb)).queries
            return fit_lexical_weight(kb, search, resolved).lexical
        key = {**replace(task, split="dev").key, "config": system}
        rows = self.job.results().rows
        return next(
            float(row["lexical_weight"])
            for row in rows
            if all(row.get(name) == value for name, value in key.items())
        )

    def _index(self, task: LinkingTask, kb: KnowledgeBase, encoder: Path) -> Path:
        """Make an index; names that the encoder has encoded for another one are not again."""
        folder = encoder.parent / f"index-{encoder.name}"
        used = folder / "-".join((task.set, task.dictionary, task.split))
        if not used.exists():
            made = [path.parent for path in sorted(folder.glob(f"*/{INDEX.file}"))]
            others = [path for path in made if path.name.startswith(task.set)]
            if "disease" in task.set:
                others += [path for path in made if "disease" in path.name]
            if others:
                copy_index(others[0], kb, used)
            else:
                build_index(kb, used, load_encoder(encoder), progress=Progress())
        return used


def _names(system: str) -> tuple[str, str]:
    """Return the names of dense search alone, and beside lexical search."""
    return system, f"{system} + lexical"


def _read_apart(
    chosen: LinkingSet, split: str, kb: KnowledgeBase, data: Path
) -> Sequence[LinkQuery]:
    """Read gold mentions with the set in their documents, since sets may share numbers."""
    queries = read_resolved(chosen, split, kb, data)
    return [replace(query, document=f"{chosen.name} {query.document}") for query in queries]

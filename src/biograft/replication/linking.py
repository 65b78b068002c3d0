"""Linking accuracy: every set by lexical and dense search; toy data for smoke runs."""

from __future__ import annotations

import gzip
import io
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biograft.config import check_choice
from biograft.errors import ConfigError
from biograft.evaluation import LinkQuery, StoreIds, resolve_gold
from biograft.kb import KnowledgeBase
from biograft.linking import Generator, Linker, build_index
from biograft.linking.config import SEARCHES
from biograft.linking.fusion import FusedSearch
from biograft.linking.index import DENSE, LEXICAL
from biograft.linking.lexical import LexicalIndex
from biograft.linking.recipes import label_mentions
from biograft.linking.supervised import grow_store
from biograft.progress import Progress
from biograft.replication.experiment import Experiment
from biograft.replication.linking_dictionaries import IDS, NAMES
from biograft.replication.linking_sets import SETS, LinkingSet
from biograft.replication.protocols import PLAIN, PROTOCOLS, LinkingTask, open_lexical_index
from biograft.replication.results import Row
from biograft.replication.runner import ExperimentJob, check_names, parse_settings, parse_variants

TOY_NAMES = {
    "D1": ("breast cancer", "breast neoplasm", "mammary carcinoma"),
    "D2": ("ovarian cancer", "cancer of the ovary"),
    "D3": ("common cold", "acute coryza", "acute nasopharyngitis"),
    "D4": ("stomach ache", "gastric pain", "gastralgia"),
}
MENTIONS = {
    "train": (("breast tumour", "D1"), ("a cold", "D3"), ("ovary cancer", "D2")),
    "dev": (("breast cancers", "D1"), ("colds", "D3"), ("stomach pain", "D4")),
    "test": (("breast tumours", "D1"), ("cold", "D3"), ("aching stomach", "D4")),
}


def write_biosyn(folder: Path) -> None:
    """Write a set in the layout of BioSyn: a dictionary for each split, mentions in an archive."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{concept}||{name}\n" for concept, group in TOY_NAMES.items() for name in group]
    known = [f"{concept}||{text}\n" for s in ("train", "dev") for text, concept in MENTIONS[s]]
    for split in MENTIONS:
        with gzip.open(folder / f"{split}_dictionary.txt.gz", "wt", encoding="utf-8") as file:
            file.writelines([*names, *(known if split == "test" else ())])
    with tarfile.open(folder / "concept_files.tar.gz", "w:gz") as archive:
        for split, mentions in MENTIONS.items():
            for row, (text, concept) in enumerate(mentions):
                line = f"{row}||0|3||Disease||{text}||{concept}\n".encode()
                member = tarfile.TarInfo(f"processed_{split}/{row}.concept")
                member.size = len(line)
                archive.addfile(member, io.BytesIO(line))


def write_toy_linking(job: ExperimentJob) -> ExperimentJob:
    """Return a linking job on a toy set, with the variants that need no other input."""
    work = job.work / "smoke"
    write_biosyn(work / "data" / "entity_linking" / "ncbi_disease" / "biosyn")
    variants = {
        label: {**variant, "sets": ["ncbi-disease"], "splits": ["test"]}
        for label, variant in job.experiment.variants.items()
        if not {"encoder", "added", "appositions"} & variant.keys()
    }
    if not variants:
        raise ConfigError("--smoke: every variant of this experiment needs an encoder")
    settings = {**job.experiment.settings, "scratch_steps": 2, "scratch_width": 16}
    settings["protocols"] = ["published"]
    experiment = replace(
        job.experiment, sets=("ncbi-disease",), variants=variants, settings=settings
    )
    return replace(
        job,
        experiment=experiment,
        work=work,
        data=work / "data",
        out=work / job.out.name,
    )


STATES = ("untrained", "aligned")
APPOSITIONS = " + appositions"
"""Ends the name of a system that looks up a mention by the name it stands beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingSettings:
    """The protocols, and how character-level encoders are made from scratch."""

    protocols: tuple[str, ...] = ("published",)
    scratch_steps: int = 800
    scratch_width: int = 192


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingVariant:
    """Kinds of search with one encoder: an input, or one made ``from_scratch`` for each set.

    ``added`` is what the dictionaries have beside the names of the protocol, such as names of other
    ontologies (``+names``); a protocol without such a dictionary is left out. ``appositions`` looks
    up a mention by the name it stands beside.
    """

    search: tuple[str, ...]
    encoder: str = ""
    from_scratch: str = ""
    splits: tuple[str, ...] = ("test",)
    sets: tuple[str, ...] = ()
    added: str = ""
    appositions: bool = False

    def __post_init__(self) -> None:
        for kind in self.search:
            check_choice("search", kind, SEARCHES)
        check_choice("added", self.added, ("", NAMES, NAMES + IDS))
        if self.from_scratch:
            check_choice("from_scratch", self.from_scratch, STATES)
        if self.search != ("lexical",) and bool(self.encoder) == bool(self.from_scratch):
            raise ConfigError("a variant with dense search needs encoder or from_scratch")


class Linking:
    """Runs experiments of kind ``linking``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets and variants that are not known."""
        check_names("sets", experiment.sets, [*SETS])
        variants = parse_variants(experiment, LinkingVariant)
        for name in experiment.sets:
            settings = parse_settings(experiment, LinkingSettings, name)
            for label, variant in variants.items():
                list(_configurations(name, label, variant, settings))
        encoders = {label: given.encoder for label, given in variants.items() if given.encoder}
        check_names("variants", [*encoders.values()], [*experiment.inputs])
        experiment.check_one_base(encoders)

    def smoke(self, job: ExperimentJob) -> ExperimentJob:
        """Link a handful of toy mentions, with the variants that need no other input."""
        return write_toy_linking(job)

    def run(self, job: ExperimentJob) -> None:
        """Measure every set with every variant."""
        results = job.results()
        variants = parse_variants(job.experiment, LinkingVariant)
        for name in job.experiment.sets:
            settings = parse_settings(job.experiment, LinkingSettings, name)
            for label, variant in variants.items():
                for task, config, search in _configurations(name, label, variant, settings):
                    key = {**task.key, "config": config}
                    if results.has(key):
                        continue
                    if reason := missing_split(task.chosen, job.data, task.split):
                        job.warn(f"{name}: skipped, {reason}")
                        continue
                    measured = _Measurement(task, job, settings)
                    job.add(results, key, measured.measure(search, label, variant))


def _configurations(
    name: str, label: str, variant: LinkingVariant, settings: LinkingSettings
) -> Iterator[tuple[LinkingTask, str, str]]:
    """Return the task of each row of a variant on a set, with its label and the kind of search."""
    if variant.sets and name not in variant.sets:
        return
    for protocol in settings.protocols:
        if variant.appositions and PROTOCOLS[protocol].text:
            continue  # only names are found in raw text, and those stay what they are
        for split in variant.splits:
            task = LinkingTask(set=name, protocol=protocol, split=split)
            if task.dictionary + variant.added not in task.chosen.dictionaries:
                continue
            task = replace(task, dictionary=task.dictionary + variant.added)
            for search in variant.search:
                config = search if search == "lexical" else f"{search}:{label}"
                yield task, f"{config}{APPOSITIONS if variant.appositions else ''}", search


def missing_split(chosen: LinkingSet, data: Path, split: str) -> str:
    """Return why a split cannot be measured; empty if it can."""
    if split not in chosen.gold:
        return f"it has no {split} split"
    if not chosen.exists(data, split):
        return f"{chosen.gold[split]} is not in {data}; set BIOGRAFT_DATA or give --data"
    return ""


@dataclass(frozen=True, slots=True)
class _Measurement:
    task: LinkingTask
    job: ExperimentJob
    settings: LinkingSettings

    def measure(self, search: str, label: str, variant: LinkingVariant) -> Row:
        """Build the store and the index if needed, link, and return a row of metrics."""
        started, job = time.perf_counter(), self.job
        kb = self.task.open_store(job.data, job.work)
        generators, about = self._open_generators(kb, search, label, variant)
        config = replace(PLAIN, appositions=variant.appositions)
        linker, ready = Linker(kb, FusedSearch(generators), config=config), time.perf_counter()
        is_floor = search == "lexical" and config == PLAIN and self.task == self.task.floor
        return {
            **self.task.measure(linker, job.data, job.work, is_floor=is_floor),
            **about,
            "seconds_to_open": ready - started,
            "seconds": time.perf_counter() - ready,
        }

    def _open_generators(
        self, kb: KnowledgeBase, search: str, label: str, variant: LinkingVariant
    ) -> tuple[list[Generator], dict[str, Any]]:
        """Open the parts of the index that are searched; build it if needed."""
        folder, progress = self.task.folder(self.job.work), Progress()
        if search == "lexical":
            return [open_lexical_index(folder, kb)], {}
        from biograft.linking.dense import DenseIndex
        from biograft.nn import TextEncoder

        encoder = TextEncoder.from_pretrained(str(self._encoder_folder(variant)))
        index = folder / f"dense-{label}"
        if not index.exists():
            build_index(kb, index, encoder, progress=progress)
        generators: list[Generator] = [DenseIndex.open(index / DENSE, kb, encoder)]
        if search == "lexical+dense":
            generators.insert(0, LexicalIndex.open(index / LEXICAL, kb))
        about = {
            "fingerprint": encoder.fingerprint(),
            "pooling": encoder.pooling,
            "max_length": encoder.max_length,
        }
        return generators, {"encoder": about}

    def _encoder_folder(self, variant: LinkingVariant) -> Path:
        if variant.encoder:
            return self.job.input(variant.encoder)
        chosen = SETS[self.task.set]
        out = self.job.work / "char-encoder" / chosen.name
        states = make_char_encoder(chosen, self.job.data, out, self.settings)
        return states[variant.from_scratch]


def make_char_encoder(
    chosen: LinkingSet, data: Path, out: Path, settings: LinkingSettings
) -> dict[str, Path]:
    """Make a character-level encoder from scratch and align it; return the folder of each state.

    It is aligned on the names of the training dictionary and, where the dictionary lacks them, the
    training mentions.
    """
    from biograft.nn.scratch import make_character_encoder
    from biograft.pretraining.recipe import PretrainingRecipe
    from biograft.pretraining.run import pretrain

    states = {"untrained": out / "untrained", "aligned": out / "run" / "encoder"}
    if (out / "done").exists():
        return states
    kb = chosen.open_store(data, "train", out)
    if not (out / "grown").exists():
        queries = read_resolved(chosen, "train", kb, data)
        grow_store(kb, label_mentions(queries), out / "grown")
    grown = KnowledgeBase.open(out / "grown")
    if not states["untrained"].exists():
        names = grown.table("names").column("text").to_pylist()
        make_character_encoder(names, states["untrained"], width=settings.scratch_width, seed=0)
    changes = {
        "encoder.name": f'"{states["untrained"]}"',
        "encoder.max_length": 64,
        "training.steps": settings.scratch_steps,
        "training.learning_rate": 1e-3,
        "training.eval_every": 0,
        "training.seed": 0,
    }
    recipe = PretrainingRecipe.load(
        "sapbert-cpu", [f"{key}={value}" for key, value in changes.items()]
    )
    resume = (out / "run" / "checkpoints").exists()
    pretrain(recipe, grown, out / "run", resume=resume, progress=Progress())
    (out / "done").touch()
    return states


def read_resolved(
    chosen: LinkingSet, split: str, kb: KnowledgeBase, data: Path, *, with_texts: bool = False
) -> Sequence[LinkQuery]:
    """Read gold mentions, their ids spelled as in the store."""
    gold = chosen.read_gold(data, split, with_texts=with_texts)
    return list(resolve_gold(gold.queries, StoreIds(kb)).queries)

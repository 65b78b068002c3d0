"""Linking accuracy: every set by lexical and dense search."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from biograft.config import Ratio, check_choice, check_fields
from biograft.errors import ConfigError
from biograft.evaluation import LinkQuery, StoreIds, resolve_gold
from biograft.kb import KnowledgeBase
from biograft.linking import Linker, build_index
from biograft.linking.config import SEARCHES
from biograft.linking.dense import DenseIndex
from biograft.linking.dense.encoders import NameEncoder, load_encoder
from biograft.linking.dense.search import Vectors
from biograft.linking.fusion import FusedSearch
from biograft.linking.index import DENSE, LEXICAL, update_index
from biograft.linking.lexical import LexicalIndex
from biograft.progress import Progress
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.linking_dictionaries import (
    IDS,
    MENTIONS,
    NAMES,
    ONTOLOGY,
    PUBLISHED,
    TRANSLATIONS,
)
from biograft_lab.replication.linking_sets import SETS, LinkingSet
from biograft_lab.replication.protocols import PLAIN, PROTOCOLS, LinkingTask, open_lexical_index
from biograft_lab.replication.results import Row
from biograft_lab.replication.runner import (
    ExperimentJob,
    check_names,
    parse_settings,
    parse_variants,
)

APPOSITIONS = " + appositions"
"""Ends the name of a system that looks up a mention by the name it stands beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingSettings:
    """The protocols, how character-level encoders are made from scratch, and what aligns others.

    ``dictionary`` replaces that of the protocols. Encoders are aligned on the names of
    ``aligned_on``, a set: those of its ontology, or with the translations of its training concepts
    where it has them; by ``sapbert-cpu`` with the ``alignment`` changes. Encoders from scratch are
    then made for the characters of the same names.
    """

    protocols: tuple[str, ...] = ("published",)
    dictionary: str = ""
    scratch_width: int = 192
    aligned_on: str = ""
    alignment: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("aligned_on", self.aligned_on, ("", *SETS))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingVariant:
    """Kinds of search with one encoder: an input, or one made ``from_scratch`` (``untrained``).

    With ``aligned`` the encoder, which may be one from scratch, is first aligned as the settings
    say, with the further changes ``alignment``; with each seed, if the experiment has several.
    ``added`` is what the
    dictionaries have beside the names of the protocol, such as names of other ontologies
    (``+names``); a protocol without such a dictionary is left out. ``lexical_weight`` is that of
    lexical search beside dense search. ``appositions`` looks up a mention by the name it stands
    beside.
    """

    search: tuple[str, ...]
    encoder: str = ""
    from_scratch: str = ""
    aligned: bool = False
    alignment: tuple[str, ...] = ()
    lexical_weight: Ratio = 0.5
    splits: tuple[str, ...] = ("test",)
    sets: tuple[str, ...] = ()
    added: str = ""
    appositions: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        for kind in self.search:
            check_choice("search", kind, SEARCHES)
        check_choice("added", self.added, ("", NAMES, NAMES + IDS, MENTIONS))
        if self.from_scratch:
            check_choice("from_scratch", self.from_scratch, ("untrained",))
        if self.search != ("lexical",) and bool(self.encoder) == bool(self.from_scratch):
            raise ConfigError("a variant with dense search needs encoder or from_scratch")
        if self.aligned and not (self.encoder or self.from_scratch):
            raise ConfigError("aligned: name the encoder that is aligned, or one from_scratch")


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
                if (variant.aligned or variant.from_scratch) and not settings.aligned_on:
                    raise ConfigError(f"variants.{label}: aligned needs settings.aligned_on")
        named = [given.encoder for given in variants.values() if given.encoder]
        check_names("variants", named, [*experiment.inputs])

    def run(self, job: ExperimentJob) -> None:
        """Measure every set with every variant."""
        results, encoders = job.results(), _Encoders(job)
        variants = parse_variants(job.experiment, LinkingVariant)
        for name in job.experiment.sets:
            settings = parse_settings(job.experiment, LinkingSettings, name)
            for label, variant, seed in _with_seeds(variants, job.experiment.seeds_of(name)):
                for task, config, search in _configurations(name, label, variant, settings):
                    key = {**task.key, "config": config, **seed}
                    if results.has(key):
                        continue
                    if reason := missing_split(task.chosen, job.data, task.split):
                        job.warn(f"{name}: skipped, {reason}")
                        continue
                    measured = _Measurement(task, job, settings, encoders)
                    folder = "-".join(
                        [label, *_trained_on(variant, settings), *map(str, seed.values())]
                    )
                    job.add(results, key, measured.measure(search, folder, variant))


def _trained_on(variant: LinkingVariant, settings: LinkingSettings) -> list[str]:
    """Return what the name of an encoder's folder says of the names that it has learnt from."""
    made_here = variant.aligned or bool(variant.from_scratch)
    return [settings.aligned_on] if made_here and settings.aligned_on else []


def _with_seeds(
    variants: Mapping[str, LinkingVariant], seeds: Sequence[int]
) -> Iterator[tuple[str, LinkingVariant, Row]]:
    """Return each variant, an aligned one once a seed if there are several, and its seed."""
    for label, variant in variants.items():
        if not variant.aligned or len(seeds) < 2:
            yield label, variant, {}
            continue
        for seed in seeds:
            changes = (*variant.alignment, f"training.seed={seed}")
            yield label, replace(variant, alignment=changes), {"seed": seed}


def _configurations(
    name: str, label: str, variant: LinkingVariant, settings: LinkingSettings
) -> Iterator[tuple[LinkingTask, str, str]]:
    """Return the task of each row of a variant on a set, with its label and the kind of search."""
    if variant.sets and name not in variant.sets:
        return
    for protocol in settings.protocols:
        dictionary = (settings.dictionary or PROTOCOLS[protocol].dictionary) + variant.added
        if dictionary not in SETS[name].dictionaries:
            continue
        if variant.appositions and PROTOCOLS[protocol].text:
            continue  # only names are found in raw text, and those stay what they are
        for split in variant.splits:
            task = LinkingTask(set=name, protocol=protocol, split=split, dictionary=dictionary)
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


class CachedEncoder:
    """An encoder that encodes each mention once, for all searches and splits that have it."""

    def __init__(self, encoder: NameEncoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, Vectors] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, texts: Sequence[str], **options: Any) -> Vectors:
        """Compute one vector for each text; all calls must have the same options."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            vectors = self._encoder.encode(new, **options)
            self._vectors.update(zip(new, vectors, strict=True))
        found = [self._vectors[text] for text in texts]
        return np.stack(found) if found else np.zeros((0, self._encoder.dim), np.float32)


@dataclass(slots=True)
class _Encoders:
    """Makes and opens the encoders of an experiment, each once."""

    job: ExperimentJob
    opened: dict[Path, CachedEncoder] = field(default_factory=dict)

    def open(self, label: str, variant: LinkingVariant, settings: LinkingSettings) -> NameEncoder:
        """Open the encoder of a variant, training it first if needed."""
        folder = self._folder(label, variant, settings)
        if folder not in self.opened:
            self.opened.clear()  # one is used at a time, and may be large
            self.opened[folder] = CachedEncoder(load_encoder(folder))
        return cast("NameEncoder", self.opened[folder])

    def alignment(self, label: str) -> Row:
        """Return how many steps an aligned encoder was trained, and how many were planned."""
        done = self.job.work / "aligned" / label / "done"
        steps: Row = json.loads(done.read_text(encoding="utf-8"))
        return steps

    def _folder(self, label: str, variant: LinkingVariant, settings: LinkingSettings) -> Path:
        given = self._start(variant, settings)
        if not variant.aligned:
            return given
        out = self.job.work / "aligned" / label
        if not (out / "done").exists():
            kb = self._names(settings)
            _align(kb, given, (*settings.alignment, *variant.alignment), out)
        return out / "run" / "encoder"

    def _start(self, variant: LinkingVariant, settings: LinkingSettings) -> Path:
        """Return the encoder that is aligned: an input, or one from scratch for the names."""
        from biograft.models.scratch import make_character_encoder

        if variant.encoder:
            return self.job.input(variant.encoder)
        out = self.job.work / "char-encoder" / settings.aligned_on
        if not out.exists():
            names = self._names(settings).table("names").column("text").to_pylist()
            make_character_encoder(names, out, width=settings.scratch_width, seed=0)
        return out

    def _names(self, settings: LinkingSettings) -> KnowledgeBase:
        """Open the store whose names encoders are aligned on."""
        source = SETS[settings.aligned_on]
        translated = PUBLISHED + TRANSLATIONS in source.dictionaries
        names = PUBLISHED + TRANSLATIONS if translated else ONTOLOGY
        return source.open_store(self.job.data, "train", self.job.work, names)


@dataclass(frozen=True, slots=True)
class _Measurement:
    task: LinkingTask
    job: ExperimentJob
    settings: LinkingSettings
    encoders: _Encoders

    def measure(self, search: str, label: str, variant: LinkingVariant) -> Row:
        """Build the store and the index if needed, link, and return a row of metrics."""
        started, job = time.perf_counter(), self.job
        kb = self.task.open_store(job.data, job.work)
        fused, about = self._open_search(kb, search, label, variant)
        config = replace(PLAIN, appositions=variant.appositions)
        linker, ready = Linker(kb, fused, config=config), time.perf_counter()
        is_floor = search == "lexical" and config == PLAIN and self.task == self.task.floor
        return {
            **self.task.measure(linker, job.data, job.work, is_floor=is_floor),
            **about,
            "seconds_to_open": ready - started,
            "seconds": time.perf_counter() - ready,
        }

    def _open_search(
        self, kb: KnowledgeBase, search: str, label: str, variant: LinkingVariant
    ) -> tuple[FusedSearch, Row]:
        """Open the parts of the index that are searched; build it if needed."""
        folder = self.task.folder(self.job.work)
        if search == "lexical":
            return FusedSearch([open_lexical_index(folder, kb)]), {}
        encoder = self.encoders.open(label, variant, self.settings)
        index = folder / f"dense-{label}"
        if not index.exists():
            self._build(index, kb, encoder, variant)
        dense = DenseIndex.open(index / DENSE, kb, encoder)
        settings = encoder.settings
        about = {"pooling": settings.pooling, "max_length": settings.max_length}
        described: Row = {"encoder": {"fingerprint": encoder.fingerprint(), **about}}
        if variant.aligned:
            described["aligned"] = self.encoders.alignment(label)
        if search == "dense":
            return FusedSearch([dense]), described
        weight = variant.lexical_weight
        weights = {"lexical": weight, "dense": 1 - weight}
        lexical = LexicalIndex.open(index / LEXICAL, kb)
        return FusedSearch([lexical, dense], weights), {**described, "lexical_weight": weight}

    def _build(
        self, index: Path, kb: KnowledgeBase, encoder: NameEncoder, variant: LinkingVariant
    ) -> None:
        """Build an index; vectors of names that are in that of another set are used again."""
        others = sorted(self.job.work.glob(f"*/{index.name}"))
        if others:
            copy_index(others[0], kb, index)
        else:
            build_index(kb, index, encoder, progress=Progress())


def copy_index(source: Path, store: KnowledgeBase, folder: Path) -> None:
    """Make the index of a store, reusing the vectors of names that another index holds."""
    work = folder.with_name(f"{folder.name}.work")
    for path in (work, folder):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(source, work)
    update_index(store, work, progress=Progress())
    work.rename(folder)


def _align(kb: KnowledgeBase, encoder: Path, changes: Sequence[str], out: Path) -> None:
    """Align an encoder on the names of a store, or resume that; write ``out/run/encoder``."""
    from biograft.training.pretraining.recipe import PretrainingRecipe, pretrain

    fixed = (f'encoder.name="{encoder}"', "training.eval_every=0", "training.seed=0")
    recipe = PretrainingRecipe.load("sapbert-cpu", [*fixed, *changes])
    resume = (out / "run" / "checkpoints").exists()
    trained = pretrain(recipe, kb, out / "run", resume=resume, progress=Progress()).training
    (out / "done").write_text(json.dumps({"step": trained.step, "n_steps": trained.n_steps}))


def read_resolved(
    chosen: LinkingSet, split: str, kb: KnowledgeBase, data: Path, *, with_texts: bool = False
) -> Sequence[LinkQuery]:
    """Read gold mentions, their ids spelled as in the store."""
    gold = chosen.read_gold(data, split, with_texts=with_texts)
    return list(resolve_gold(gold.queries, StoreIds(kb)).queries)

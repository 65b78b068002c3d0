"""Two-way choice by the text around an entity: its synonym or another entity.

A place is a mention of an entity in text that no encoder was trained on. The options are another
name of the entity, and a name of another entity of the same type with as many characters. The sets
of an experiment are the ways to choose:

===============  ====================================================================
``information``  the name that is more probable here than in other texts, all its
                 tokens masked
``likelihood``   the name that is more probable, all its tokens masked
``cosine``       the name with which the states just outside of it change less from
                 those with the mention
``probe``        the name that a linear probe of the states just outside of it prefers;
                 it is trained on other entities
===============  ====================================================================
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt

from biograft.config import AtLeast, check_fields
from biograft.errors import InputError
from biograft.kb import KnowledgeBase
from biograft.kb.names import HAN
from biograft.kb.sources.files import read_lines
from biograft.text import NamesIndex
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.pretrained_arms import (
    check_arms,
    check_same_start,
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

SCORES = ("information", "likelihood", "cosine", "probe")
_NAME = re.compile(f"[{HAN}]+")
"""Names that are compared: each character is a token of every encoder."""
_MIN_CONTEXT = 8
"""Characters around a mention that a place has at least."""
_TRIES = 16
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymChoiceSettings:
    """The store, the text (an input: a file, a text a line), and which places are taken.

    Of an entity at most ``max_of_entity`` places; ``window`` characters are read on both sides of a
    mention, and names have at most ``max_length``.
    """

    kb: str = "kb"
    texts: str = "texts"
    n_places: Annotated[int, AtLeast(1)] = 4000
    max_of_entity: Annotated[int, AtLeast(1)] = 15
    window: Annotated[int, AtLeast(1)] = 24
    max_length: Annotated[int, AtLeast(2)] = 10

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderArm:
    """An encoder: INPUT/PATH, ``{seed}`` in it for each seed of pre-training."""

    encoder: str


@dataclass(frozen=True, slots=True)
class Place:
    """A mention in its text, a synonym of the entity, and a name of another."""

    before: str
    mention: str
    after: str
    entity: str
    synonym: str
    other: str


class SynonymChoice:
    """Runs experiments of kind ``synonym_choice``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets, inputs and variants that are not known."""
        settings = parse_settings(experiment, SynonymChoiceSettings)
        check_names("sets", experiment.sets, SCORES)
        check_names("settings", [settings.kb, settings.texts], [*experiment.inputs])
        check_arms(experiment, _encoders(experiment).values())

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        return experiment.smaller({"n_places": 20}, {}, n_seeds=2)

    def run(self, job: ExperimentJob) -> None:
        """Let every arm choose at every place."""
        results, encoders = job.results(), _encoders(job.experiment)
        check_same_start(job, encoders)
        settings = parse_settings(job.experiment, SynonymChoiceSettings)
        places: list[Place] = []
        for label, seed in each_arm(job, encoders):
            key = {"config": label, **({} if seed is None else {"seed": seed})}
            missing = [
                name for name in job.experiment.sets if not results.has({"set": name, **key})
            ]
            if not missing:
                continue
            places = places or _read_places(job, settings)
            started = time.perf_counter()
            margins = measure(find_arm(job, encoders[label], seed or 0), places, missing)
            seconds = (time.perf_counter() - started) / len(missing)
            for name in missing:
                row = {**_row(places, margins[name]), "seconds": round(seconds, 1)}
                job.add(results, {"set": name, **key}, row)


def _encoders(experiment: Experiment) -> dict[str, str]:
    return {label: arm.encoder for label, arm in parse_variants(experiment, EncoderArm).items()}


def _read_places(job: ExperimentJob, settings: SynonymChoiceSettings) -> list[Place]:
    base, path = KnowledgeBase.open(job.input(settings.kb)), job.input(settings.texts)
    places = find_places(base, [line for _, line in read_lines(path)], settings)
    if not places:
        raise InputError("has no mention of an entity with two names", path=path)
    if len(places) < settings.n_places:
        job.warn(f"{path}: has {len(places):,} places, not {settings.n_places:,}")
    return places


def _row(places: Sequence[Place], margins: Floats) -> Row:
    """Return accuracy and answers; a tie is wrong, and entities are the documents."""
    right = margins > 0
    sizes = Counter(place.entity for place in places)
    return {
        "split": "test",
        "n": len(places),
        "acc@1": 100 * float(right.mean()),
        "margin": round(float(margins.mean()), 4),
        "right": pack_flags(right),
        "documents": pack_sizes(sizes.values()),
    }


# ---- places


def find_places(
    base: KnowledgeBase, texts: Sequence[str], settings: SynonymChoiceSettings
) -> list[Place]:
    """Find places in different texts, the same in every run; those of an entity are together."""
    texts = list(dict.fromkeys(text.strip() for text in texts))
    order = np.random.default_rng(0).permutation(len(texts)).tolist()
    texts = [texts[row] for row in order]
    names, rng = _Names.read(base, settings), np.random.default_rng(1)
    by_entity: dict[int, list[Place]] = defaultdict(list)
    n_places = 0
    for text, matches in zip(texts, NamesIndex.from_store(base).find_many(texts), strict=True):
        for match in matches:
            entities = {int(names.entities[row]) for row in match.name_rows}
            if len(entities) > 1 or n_places == settings.n_places:
                continue
            (entity,) = entities
            if len(by_entity[entity]) == settings.max_of_entity:
                continue
            window = (
                text[max(0, match.start - settings.window) : match.start],
                text[match.end : match.end + settings.window],
            )
            if place := names.place(entity, match.text, window, rng):
                by_entity[entity].append(place)
                n_places += 1
    return [place for entity in sorted(by_entity) for place in by_entity[entity]]


@dataclass(slots=True)
class _Names:
    """The names of each entity, and the names of a type and length."""

    entities: npt.NDArray[np.int64]
    """The entity of each row of the table of names."""
    ids: Mapping[int, str]
    of_entity: Mapping[int, list[str]]
    of_kind: Mapping[tuple[int, int], list[tuple[int, str]]]
    """Entity and name by type and number of characters."""
    types: Mapping[int, list[int]]
    max_length: int
    known: dict[int, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, base: KnowledgeBase, settings: SynonymChoiceSettings) -> _Names:
        """Read the names of a store."""
        table, typed = base.table("names"), base.table("types")
        entities = table.column("concept").to_numpy().astype(np.int64)
        of_entity: dict[int, list[str]] = defaultdict(list)
        types: dict[int, list[int]] = defaultdict(list)
        pairs = (typed.column(name).to_pylist() for name in ("concept", "type"))
        for entity, kind in zip(*pairs, strict=True):
            types[entity].append(kind)
        of_kind: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
        for entity, name in zip(entities.tolist(), table.column("text").to_pylist(), strict=True):
            of_entity[entity].append(name)
            if _NAME.fullmatch(name) and 2 <= len(name) <= settings.max_length:
                for kind in types[entity][:1]:
                    of_kind[kind, len(name)].append((entity, name))
        ids = {entity: base.id_at(entity) for entity in of_entity}
        return cls(entities, ids, of_entity, of_kind, types, settings.max_length)

    def place(
        self, entity: int, mention: str, window: tuple[str, str], rng: np.random.Generator
    ) -> Place | None:
        """Return a place with sampled options; None if the text or the store does not allow one."""
        own, context = self.of_entity[entity], "\n".join(window)
        if len(context) <= _MIN_CONTEXT or any(name in context for name in own):
            return None
        synonyms = [
            name
            for name in own
            if name != mention and _NAME.fullmatch(name) and 2 <= len(name) <= self.max_length
        ]
        if not synonyms or not self.types.get(entity):
            return None
        synonym = synonyms[int(rng.integers(len(synonyms)))]
        pool = self.of_kind[self.types[entity][0], len(synonym)]
        for row in rng.integers(len(pool), size=_TRIES).tolist() if pool else ():
            other, name = pool[row]
            names = self.of_entity[other]
            nested = any(a in b or b in a for a in (*own, mention) for b in (*names, name))
            if other != entity and not nested and name not in context:
                return Place(window[0], mention, window[1], self.ids[entity], synonym, name)
        return None


# ---- choosing


def measure(encoder: Path, places: Sequence[Place], scores: Sequence[str]) -> dict[str, Floats]:
    """Return by how much the synonym is preferred at each place, by each way to choose."""
    margins: dict[str, Floats] = {}
    if {"information", "likelihood"} & {*scores}:
        margins |= _by_probability(encoder, places)
    if {"cosine", "probe"} & {*scores}:
        states = _outer_states(encoder, places)
        margins["cosine"] = _cosine(states[0], states[1]) - _cosine(states[0], states[2])
        margins["probe"] = _by_probe(states, places)
    return {name: margins[name] for name in scores}


def _by_probability(encoder: Path, places: Sequence[Place]) -> Iterator[tuple[str, Floats]]:
    from biograft.models.masked_lm import MaskedLanguageModel
    from biograft_lab.probing.masked_names import NameChoice, score_names

    choices = [NameChoice(p.before, p.after, (p.synonym, p.other)) for p in places]
    found = score_names(MaskedLanguageModel.from_pretrained(encoder), choices)
    for name, values in found._asdict().items():
        yield name, values[:, 0] - values[:, 1]


def _outer_states(encoder: Path, places: Sequence[Place]) -> list[npt.NDArray[np.float32]]:
    """Return the states before and after the mention, the synonym and the other name, joined."""
    from biograft.models.encoder import TextEncoder
    from biograft_lab.probing.token_states import enclose, inner_ids, token_states

    model = TextEncoder.from_pretrained(encoder, pooling="mean")
    model.finder = None  # the entity of a name would be given away
    tokenizer = model.tokenizer
    ids, at = [], []
    for place in places:
        before, after = inner_ids(tokenizer, place.before), inner_ids(tokenizer, place.after)
        for name in (place.mention, place.synonym, place.other):
            tokens = inner_ids(tokenizer, name)
            ids.append(enclose(tokenizer, [*before, *tokens, *after]))
            at.append((len(before), len(before) + len(tokens) + 1))
    joined = np.zeros((len(ids), 2 * model.dim), np.float32)
    for rows, states in token_states(model, ids):
        for number, row in enumerate(rows.tolist()):
            joined[row] = states[number, list(at[row])].flatten().cpu().numpy()
    return [joined[option::3] for option in range(3)]


def _cosine(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Floats:
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray((a * b).sum(1) / np.maximum(lengths, 1e-9), np.float64)


def _by_probe(states: Sequence[npt.NDArray[np.float32]], places: Sequence[Place]) -> Floats:
    """Train a probe on half of the entities and ask it about the others, and the reverse."""
    from biograft_lab.probing.linear_probe import LinearProbe

    _, number = np.unique([place.entity for place in places], return_inverse=True)
    half = np.random.default_rng(0).permutation(number.max() + 1)[number] % 2
    margins = np.zeros(len(places))
    for side in (0, 1):
        train, test = half == side, half != side
        features = np.concatenate([states[1][train], states[2][train]])
        labels = np.arange(len(features)) < train.sum()
        probe = LinearProbe.fit(features, labels)
        margins[test] = probe.scores(states[1][test]) - probe.scores(states[2][test])
    return margins

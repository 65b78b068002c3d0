"""Ends of segments, read off an encoder's states at the characters of long names.

A linear probe is trained on the names of half of the entities and tested on the others. An item is
a character of a test name, but the last one: is it the end of a segment? The segments are those of
``biograft corpus segment``, which EMBERT's entity segmentation is trained with. Variants without an
encoder, and with other labels, are controls.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from biograft.config import Above, AtLeast, Choice, check_fields
from biograft.errors import ConfigError, InputError
from biograft.kb import KnowledgeBase
from biograft.kb.names import HAN
from biograft.text.segmentation import Segmentation
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

SETS = ("names",)
STATES, CHARACTERS = "states", "characters"
TRUE, RANDOM = "true", "random"
_NAME = re.compile(f"[{HAN}]+")
"""Names whose characters are tokens of every encoder."""
Features = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEndSettings:
    """The store and its segmentation (inputs), how many names, and the probe's penalty."""

    kb: str = "kb"
    segmentation: str = "segmentation"
    n_names: Annotated[int, AtLeast(2)] = 6000
    l2: Annotated[float, Above(0)] = 1.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEndVariant:
    """Input of the probe: states of an encoder, or the character and the next one.

    With ``labels = "random"`` each character has one label, drawn at the true rate: what a probe
    learns of these, it learns by heart.
    """

    encoder: str = ""
    reads: Annotated[str, Choice(STATES, CHARACTERS)] = STATES
    labels: Annotated[str, Choice(TRUE, RANDOM)] = TRUE

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.reads == STATES) != bool(self.encoder):
            raise ConfigError("reads: 'states' needs an encoder, and only it")


@dataclass(frozen=True, slots=True)
class SegmentedNames:
    """Long names with a decision after every character but the last."""

    names: list[str]
    is_train: npt.NDArray[np.bool_]
    """True for decisions that the probe is trained on."""
    name_of: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    is_end: npt.NDArray[np.bool_]

    def characters(self, offset: int) -> list[str]:
        """Return the character of each decision, or one beside it."""
        pairs = zip(self.name_of.tolist(), self.position.tolist(), strict=True)
        return [self.names[name][position + offset] for name, position in pairs]


class SegmentEnds:
    """Runs experiments of kind ``segment_ends``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets, inputs and variants that are not known."""
        settings = parse_settings(experiment, SegmentEndSettings)
        check_names("sets", experiment.sets, SETS)
        check_names("settings", [settings.kb, settings.segmentation], [*experiment.inputs])
        check_arms(experiment, filter(None, _encoders(experiment).values()))

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        return experiment.smaller({"n_names": 20}, {}, n_seeds=2)

    def run(self, job: ExperimentJob) -> None:
        """Train and test the probe of every arm."""
        results, encoders = job.results(), _encoders(job.experiment)
        check_same_start(job, encoders)
        settings = parse_settings(job.experiment, SegmentEndSettings)
        variants = parse_variants(job.experiment, SegmentEndVariant)
        base = KnowledgeBase.open(job.input(settings.kb))
        segmentation = Segmentation.open(job.input(settings.segmentation))
        names = read_segmented(base, segmentation, settings.n_names)
        for label, seed in each_arm(job, encoders):
            for set_name in job.experiment.sets:
                key: dict[str, Any] = {"set": set_name, "config": label}
                key |= {} if seed is None else {"seed": seed}
                if results.has(key):
                    continue
                started = time.perf_counter()
                encoder = encoders[label] and find_arm(job, encoders[label], seed or 0)
                features = states_of(Path(encoder), names) if encoder else one_hot(names)
                row = measure(names, features, variants[label].labels, settings.l2)
                row["seconds"] = round(time.perf_counter() - started, 1)
                job.add(results, key, row)


def _encoders(experiment: Experiment) -> dict[str, str]:
    variants = parse_variants(experiment, SegmentEndVariant)
    return {label: variant.encoder for label, variant in variants.items()}


def read_segmented(base: KnowledgeBase, segmentation: Segmentation, n_names: int) -> SegmentedNames:
    """Sample long names; those of an entity are all for training or all for the test."""
    segmentation.check_store(base)
    table, rng = base.table("names"), np.random.default_rng(0)
    entities = table.column("concept").to_numpy()
    half = rng.permutation(len(base)) % 2 == 0
    texts: dict[str, tuple[int, ...]] = {}
    trained: list[bool] = []
    for row in rng.permutation(np.asarray(segmentation.rows)).tolist():
        name = segmentation.of_name(base, row)
        if len(texts) == n_names:
            break
        if _NAME.fullmatch(name.text) and name.text not in texts:
            texts[name.text] = tuple(end for _, end in name.segments)
            trained.append(bool(half[entities[row]]))
    if len({*trained}) < 2:
        raise InputError("has too few long names", path=segmentation.folder)
    sizes = [len(text) - 1 for text in texts]
    decisions = [
        (number, position, position + 1 in ends)
        for number, (text, ends) in enumerate(texts.items())
        for position in range(len(text) - 1)
    ]
    columns = np.array(decisions, np.int64).reshape(-1, 3)
    is_train = np.repeat(np.array(trained), sizes)
    return SegmentedNames([*texts], is_train, columns[:, 0], columns[:, 1], columns[:, 2] == 1)


def states_of(encoder: Path, names: SegmentedNames) -> Features:
    """Return the state of the token at each decision's character; names are read alone."""
    from biograft.models.encoder import TextEncoder
    from biograft_lab.probing.token_states import enclose, inner_ids, token_states

    model = TextEncoder.from_pretrained(encoder, pooling="mean")
    model.finder = None  # all names are entities, which says nothing of their segments
    ids = []
    for name in names.names:
        tokens = inner_ids(model.tokenizer, name)
        if len(tokens) != len(name):
            raise InputError("its tokens are not single characters", path=encoder, text=name)
        ids.append(enclose(model.tokenizer, tokens))
    features = np.zeros((len(names.name_of), model.dim), np.float32)
    starts = np.searchsorted(names.name_of, np.arange(len(names.names) + 1))
    for rows, states in token_states(model, ids):
        for number, row in enumerate(rows.tolist()):
            own = slice(starts[row], starts[row + 1])
            features[own] = states[number, 1 : 1 + own.stop - own.start].cpu().numpy()
    return features


def one_hot(names: SegmentedNames) -> Features:
    """Return one column for each character of the training names, and one if it comes next."""
    parts = []
    for offset in (0, 1):
        values = np.array(names.characters(offset))
        known = np.unique(values[names.is_train])
        parts.append((values[:, None] == known).astype(np.float32))
    return np.concatenate(parts, 1)


def measure(names: SegmentedNames, features: Features, labels: str, l2: float) -> Row:
    """Train the probe on one half and return accuracy, F1 and the answers on the other."""
    from biograft_lab.probing.linear_probe import LinearProbe

    is_end = names.is_end if labels == TRUE else _by_character(names)
    train, test = names.is_train, ~names.is_train
    probe = LinearProbe.fit(features[train], is_end[train], l2=l2)
    found, gold = probe.scores(features[test]) > 0, is_end[test]
    both = int((found & gold).sum())
    right = found == gold
    return {
        "split": "test",
        "n": len(right),
        "acc@1": 100 * float(right.mean()),
        "f1": 200 * both / max(1, int(found.sum() + gold.sum())),
        "majority": 100 * float(max(gold.mean(), 1 - gold.mean())),
        "right": pack_flags(right),
        "documents": pack_sizes(np.unique(names.name_of[test], return_counts=True)[1].tolist()),
    }


def _by_character(names: SegmentedNames) -> npt.NDArray[np.bool_]:
    """Draw one label for each character, at the rate of ends."""
    rate = names.is_end.mean()
    values: Sequence[str] = names.characters(0)
    return np.array([zlib.crc32(f"label of {value}".encode()) < rate * 2**32 for value in values])

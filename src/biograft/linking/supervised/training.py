"""A store grown by training mentions: each becomes a name of the concept it was linked to.

That is how the field's test dictionaries were made, and it makes everything else simple: the
grown store is indexed, searched and linked to like any other.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store, export
from biograft.linking.fusion import FusedSearch, Gathered
from biograft.linking.rankers import LabelledMention
from biograft.linking.supervised.config import RankerConfig
from biograft.linking.supervised.features import KNOWN, FeatureMaker, MentionMemory, deal_folds
from biograft.linking.supervised.ranker import Network
from biograft.objectives.synonym_marginal import marginal_loss
from biograft.progress import Progress
from biograft.sources import SourceConfig

MENTIONS = "mentions"
"""The source of names that were mentions."""


def grow_store(
    kb: KnowledgeBase, mentions: Iterable[LabelledMention], out: Path, *, overwrite: bool = False
) -> KnowledgeBase:
    """Build a copy of a store with the texts of mentions as further names.

    They are in the language of the concept's own name, so that what is one already stays so.
    """
    names: dict[int, dict[str, None]] = {}
    for mention in mentions:
        text = mention.text.strip()
        for row in kb.rows_of(mention.concepts) if text else ():
            names.setdefault(row, {})[text] = None
    with tempfile.TemporaryDirectory() as work:
        base, grown = Path(work) / "base.jsonl", Path(work) / "mentions.jsonl"
        export(kb, base, "jsonl")
        with grown.open("w", encoding="utf-8") as file:
            for row, texts in names.items():
                told = {"source": MENTIONS, **_language(kb, row)}
                line = {"id": kb.id_at(row), "names": [{"text": text, **told} for text in texts]}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        paths = [base, grown] if names else [base]
        sources = tuple(SourceConfig(path=path, format="jsonl") for path in paths)
        build_store(BuildConfig(sources=sources), out, overwrite=overwrite)
    return KnowledgeBase.open(out)


def _language(kb: KnowledgeBase, row: int) -> dict[str, str]:
    own = kb.concept_at(row).names[:1]
    return {"language": own[0].language} if own else {}


_CHUNK = 512
_CONSTANT = 1e-5


@dataclass(frozen=True, slots=True)
class Trained:
    """What training gives, and what it saw."""

    network: Network
    memory: MentionMemory
    report: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Example:
    features: npt.NDArray[np.float32]  # (candidates, features)
    right: npt.NDArray[np.bool_]  # (candidates,)


def train_network(
    kb: KnowledgeBase,
    search: FusedSearch,
    mentions: Sequence[LabelledMention],
    config: RankerConfig,
    progress: Progress | None = None,
    known: Sequence[LabelledMention] = (),
) -> Trained:
    """Train on mentions; ``kb`` holds them as names if they are to be found by their texts.

    Mentions that a generator was trained on are ``known``: it finds them better than any other,
    so they count as seen, and the ranker learns from the rest.
    """
    progress = progress or Progress(enabled=False)
    folds = deal_folds((m.document for m in mentions), config.folds, config.seed)
    memory, gold = MentionMemory(len(kb)), [kb.rows_of(m.concepts) for m in mentions]
    for mention, rows in zip(mentions, gold, strict=True):
        memory.add(mention.text, rows, folds[mention.document])
    for mention in known:
        memory.add(mention.text, kb.rows_of(mention.concepts), KNOWN)
    progress.start("features")
    examples = _examples(kb, search, mentions, gold, (memory, folds, config), progress)
    useful = [e for e in examples if e.right.any() and not e.right.all()]
    if not useful:
        raise ConfigError(
            "training mentions: none has both right and wrong candidates in this store; do their "
            "concept ids belong to it?"
        )
    progress.start("training")
    network = _fit(useful, config, progress)
    progress.finish()
    right = [bool(e.right[int(np.argmax(network.score(e.features)))]) for e in useful]
    report = {
        "n_mentions": len(mentions),
        "n_with_concept": sum(map(bool, gold)),
        "n_found": sum(bool(e.right.any()) for e in examples),
        "n_trained": len(useful),
        "training_acc@1": sum(right) / len(right),
    }
    return Trained(network, memory, report)


def _examples(
    kb: KnowledgeBase,
    search: FusedSearch,
    mentions: Sequence[LabelledMention],
    gold: Sequence[tuple[int, ...]],
    learned: tuple[MentionMemory, dict[str, int], RankerConfig],
    progress: Progress,
) -> list[_Example]:
    memory, folds, config = learned
    maker, hiding = FeatureMaker(kb, memory), _Hiding(kb, memory)
    examples = []
    for start in range(0, len(mentions), _CHUNK):
        chunk = mentions[start : start + _CHUNK]
        gathered = search.gather([m.text for m in chunk], config.n_names)
        for place, mention in enumerate(chunk):
            fold = folds[mention.document]
            hidden = hiding.of(gathered, place, fold)
            made = maker.compute(mention.text, gathered, place, leave_out=fold, hidden=hidden)
            wanted = np.fromiter(gold[start + place], np.int64)
            examples.append(_Example(made.features, np.isin(made.concepts, wanted)))
        progress.advance(len(chunk), (start + len(chunk)) / len(mentions))
    return examples


class _Hiding:
    """Knows which names of a store are mentions of one fold alone."""

    def __init__(self, kb: KnowledgeBase, memory: MentionMemory) -> None:
        table = kb.table("names")
        source = kb.sources.index(MENTIONS) if MENTIONS in kb.sources else -1
        self._only_fold = np.full(table.num_rows, -1, np.int64)
        for row in np.flatnonzero(table.column("source").to_numpy() == source):
            text = table.column("text")[int(row)].as_py()
            folds = memory.folds_of(text, table.column("concept")[int(row)].as_py())
            if len(folds) == 1:
                self._only_fold[row] = next(iter(folds))

    def of(self, gathered: Gathered, place: int, fold: int) -> npt.NDArray[np.bool_]:
        rows = gathered.rows[place]
        hidden: npt.NDArray[np.bool_] = (rows >= 0) & (self._only_fold[rows] == fold)
        return hidden


def _fit(examples: Sequence[_Example], config: RankerConfig, progress: Progress) -> Network:
    """Fit several networks to padded examples; they differ in their start and order."""
    stacked = np.concatenate([e.features for e in examples])
    mean, scale = stacked.mean(axis=0), stacked.std(axis=0)
    # what never varied in training was not learned from, and must not speak later
    scale[scale < _CONSTANT] = np.inf
    widest = max(len(e.right) for e in examples)
    given = torch.zeros(len(examples), widest, stacked.shape[1])
    there = torch.zeros(len(examples), widest, dtype=torch.bool)
    right = torch.zeros(len(examples), widest, dtype=torch.bool)
    for row, example in enumerate(examples):
        n = len(example.right)
        given[row, :n] = torch.from_numpy((example.features - mean) / scale)
        there[row, :n] = True
        right[row, :n] = torch.from_numpy(example.right)
    models: list[tuple[torch.nn.Linear, torch.nn.Linear]] = []
    for number in range(config.ensemble):
        models.append(_fit_one(given, there, right, config, config.seed + 1000 * number))
        progress.advance(len(examples), (number + 1) / config.ensemble)
    return Network(
        mean,
        scale,
        np.stack([inner.weight.detach().numpy() for inner, _ in models]),
        np.stack([inner.bias.detach().numpy() for inner, _ in models]),
        np.stack([outer.weight.detach().numpy()[0] for _, outer in models]),
    )


def _fit_one(
    given: torch.Tensor, there: torch.Tensor, right: torch.Tensor, config: RankerConfig, seed: int
) -> tuple[torch.nn.Linear, torch.nn.Linear]:
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inner = torch.nn.Linear(given.shape[2], config.hidden)
        outer = torch.nn.Linear(config.hidden, 1, bias=False)
    model = torch.nn.Sequential(inner, torch.nn.GELU(), outer)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    for epoch in range(config.epochs):
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate * (1 - epoch / config.epochs)
        order = torch.randperm(len(given), generator=generator)
        for start in range(0, len(given), config.batch_size):
            batch = order[start : start + config.batch_size]
            scores = model(given[batch])[..., 0].masked_fill(~there[batch], -torch.inf)
            loss, _ = marginal_loss(scores, right[batch])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return inner, outer

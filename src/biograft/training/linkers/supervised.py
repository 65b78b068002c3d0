"""Train a ranker of candidates on labelled mentions, by cross-fitting over folds of documents.

The store is grown first: each training mention becomes a name of its concept, as in the test
dictionaries of the benchmarks. The grown store is indexed and searched like any other. Features
of a training mention exclude the names and counts that come from its own fold.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from biograft.arrays import Flags, Float32s, Ints
from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store, export_store
from biograft.kb.fingerprints import store_fingerprint
from biograft.kb.sources import SourceConfig
from biograft.linking.dense.encoders import NameEncoder, load_encoder
from biograft.linking.fusion import FusedSearch
from biograft.linking.index import OpenedIndex, build_index, open_index, update_index
from biograft.linking.queries import LabelledMention
from biograft.linking.supervised import (
    KNOWN,
    FeatureExtractor,
    MentionMemory,
    Network,
    TrainedRanker,
    assign_folds,
)
from biograft.linking.trained_configs import RankerConfig
from biograft.progress import Progress
from biograft.training import check_run, start_run
from biograft.training.linkers.recipes import (
    LinkerRecipe,
    LinkerTrainingData,
    Outcome,
    label_mentions,
)
from biograft.training.objectives.synonym_marginal import marginal_loss
from biograft.training.processes import refuse_several

MENTIONS = "mentions"
"""The source of names that come from mentions."""


def grow_store(
    kb: KnowledgeBase, mentions: Iterable[LabelledMention], out: Path, *, overwrite: bool = False
) -> KnowledgeBase:
    """Build a copy of a store with the texts of mentions as further names.

    A new name has the language of the concept's preferred name.

    Args:
        kb: Knowledge base to copy.
        mentions: Mentions with gold concepts.
        out: Folder of the copy.
        overwrite: Replace a folder that exists.
    """
    names: dict[int, dict[str, None]] = {}
    for mention in mentions:
        text = mention.text.strip()
        for row in kb.rows_of(mention.concepts) if text else ():
            names.setdefault(row, {})[text] = None
    with tempfile.TemporaryDirectory() as work:
        base, grown = Path(work) / "base.jsonl", Path(work) / "mentions.jsonl"
        export_store(kb, base, "jsonl")
        with grown.open("w", encoding="utf-8") as file:
            for row, texts in names.items():
                shared = {"source": MENTIONS}
                for name in kb.concept_at(row).names[:1]:
                    shared["language"] = name.language
                line = {"id": kb.id_at(row), "names": [{"text": text, **shared} for text in texts]}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        paths = [base, grown] if names else [base]
        sources = tuple(SourceConfig(path=path, format="jsonl") for path in paths)
        build_store(BuildConfig(sources=sources), out, overwrite=overwrite)
    return KnowledgeBase.open(out)


_CHUNK = 512
_CONSTANT = 1e-5


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """A trained network, its counts of mentions, and a report."""

    network: Network
    memory: MentionMemory
    report: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Example:
    features: Float32s  # (candidates, features)
    right: Flags  # (candidates,)


def train_network(
    kb: KnowledgeBase,
    search: FusedSearch,
    mentions: Sequence[LabelledMention],
    config: RankerConfig,
    progress: Progress | None = None,
    known: Sequence[LabelledMention] = (),
) -> TrainedNetwork:
    """Train on mentions; ``kb`` is the grown store that has their texts as names.

    Args:
        kb: The grown store, which has the texts of the mentions as names.
        search: Search whose candidates are ranked.
        mentions: Mentions with gold concepts.
        config: Settings of the training.
        progress: Progress of training.
        known: Mentions that a generator was trained on. It finds them better than others, so they
            are counted, but the ranker does not learn from them.
    """
    progress = progress or Progress()
    folds = assign_folds((m.document for m in mentions), config.folds, config.seed)
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
            "training mentions: none has both correct and wrong candidates in this store; do "
            "their concept ids belong to it?"
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
    return TrainedNetwork(network, memory, report)


def _examples(
    kb: KnowledgeBase,
    search: FusedSearch,
    mentions: Sequence[LabelledMention],
    gold: Sequence[tuple[int, ...]],
    learned: tuple[MentionMemory, dict[str, int], RankerConfig],
    progress: Progress,
) -> list[_Example]:
    memory, folds, config = learned
    extractor, only_folds = FeatureExtractor(kb, memory), _only_folds(kb, memory)
    examples = []
    for start in range(0, len(mentions), _CHUNK):
        chunk = mentions[start : start + _CHUNK]
        pool = search.collect([m.text for m in chunk], config.n_names)
        for i, mention in enumerate(chunk):
            fold = folds[mention.document]
            excluded = (pool.rows[i] >= 0) & (only_folds[pool.rows[i]] == fold)
            candidates = extractor.compute(mention.text, pool, i, leave_out=fold, excluded=excluded)
            correct = np.isin(candidates.concepts, np.fromiter(gold[start + i], np.int64))
            examples.append(_Example(candidates.features, correct))
        progress.advance(len(chunk), (start + len(chunk)) / len(mentions))
    return examples


def _only_folds(kb: KnowledgeBase, memory: MentionMemory) -> Ints:
    """Return the fold of each name that is a mention of one fold only; -1 for others."""
    source = kb.sources.index(MENTIONS) if MENTIONS in kb.sources else -1
    texts, concepts = kb.texts("names", "text"), kb.numbers("names", "concept")
    only = np.full(kb.n_names, -1, np.int64)
    for row in np.flatnonzero(kb.numbers("names", "source") == source).tolist():
        folds = memory.folds_of(texts[row], int(concepts[row]))
        if len(folds) == 1:
            only[row] = next(iter(folds))
    return only


def _fit(examples: Sequence[_Example], config: RankerConfig, progress: Progress) -> Network:
    """Fit several networks to padded examples, with different initial weights and orders."""
    stacked = np.concatenate([e.features for e in examples])
    mean, scale = stacked.mean(axis=0), stacked.std(axis=0)
    # a feature that is constant in training is disabled
    scale[scale < _CONSTANT] = np.inf
    scaled = [torch.from_numpy((e.features - mean) / scale) for e in examples]
    inputs = pad_sequence(scaled, batch_first=True)
    right = pad_sequence([torch.from_numpy(e.right) for e in examples], batch_first=True)
    mask = pad_sequence([torch.ones(len(e.right), dtype=torch.bool) for e in examples], True)
    models: list[tuple[torch.nn.Linear, torch.nn.Linear]] = []
    for index in range(config.ensemble):
        models.append(_fit_network(inputs, mask, right, config, config.seed + 1000 * index))
        progress.advance(len(examples), (index + 1) / config.ensemble)
    return Network(
        mean,
        scale,
        np.stack([inner.weight.detach().numpy() for inner, _ in models]),
        np.stack([inner.bias.detach().numpy() for inner, _ in models]),
        np.stack([outer.weight.detach().numpy()[0] for _, outer in models]),
    )


def _fit_network(
    inputs: torch.Tensor, mask: torch.Tensor, right: torch.Tensor, config: RankerConfig, seed: int
) -> tuple[torch.nn.Linear, torch.nn.Linear]:
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inner = torch.nn.Linear(inputs.shape[2], config.hidden)
        outer = torch.nn.Linear(config.hidden, 1, bias=False)
    model = torch.nn.Sequential(inner, torch.nn.GELU(), outer)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    for epoch in range(config.epochs):
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate * (1 - epoch / config.epochs)
        order = torch.randperm(len(inputs), generator=generator)
        for start in range(0, len(inputs), config.batch_size):
            batch = order[start : start + config.batch_size]
            scores = model(inputs[batch])[..., 0].masked_fill(~mask[batch], -torch.inf)
            loss, _ = marginal_loss(scores, right[batch])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return inner, outer


def train_by_recipe(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Train a ranker into ``out/kb``, ``out/index`` and ``out/model``; finished parts are kept.

    Args:
        recipe: Settings, and the encoder of the index, if it is to have one.
        data: Labelled mentions, known ones, and an index whose vectors are reused.

    Returns:
        The three folders, and the counts of mentions.

    Raises:
        ConfigError: There are both an encoder and an index.
    """
    refuse_several(f"recipe {recipe.name}")
    if data.index is not None and recipe.encoder is not None:
        raise ConfigError("encoder: the index brings its own; leave one of the two out")
    mentions, known, out = label_mentions(data.train), label_mentions(data.known), data.out
    encoder: NameEncoder | None = None
    if recipe.encoder is not None:  # any encoder of dense search, a static one too
        settings = asdict(recipe.encoder)
        if settings.pop("lora") is not None:
            raise ConfigError("encoder.lora: the encoder of a ranker is not trained; leave it out")
        encoder = load_encoder(settings.pop("name"), **settings)
    provenance = {
        "kb": store_fingerprint(data.kb),
        "mentions": _fingerprint(mentions),
        "known": _fingerprint(known),
        "encoder": encoder.fingerprint() if encoder else None,
        "index": str(data.index) if data.index else None,
    }
    (check_run if data.resume else start_run)(out, recipe.to_json(), provenance)
    data.progress.start("knowledge base")
    if not (out / "kb").exists():
        grow_store(data.kb, [*known, *mentions], out / "kb")
    kb = KnowledgeBase.open(out / "kb")
    search = _index(kb, data, encoder).search
    trained = train_network(kb, search, mentions, recipe.config, data.progress, known)
    generators = [generator.name for generator in search.generators]
    ranker = TrainedRanker(kb, trained.network, trained.memory, generators)
    ranker.save(out / "model", recipe.config, trained.report, overwrite=True)
    made = {name: out / name for name in ("kb", "index", "model")}
    return Outcome(made=made, report=trained.report)


def _index(kb: KnowledgeBase, data: LinkerTrainingData, encoder: NameEncoder | None) -> OpenedIndex:
    """Build the index of the extended store; vectors of the given index are reused."""
    folder = data.out / "index"
    if folder.exists():
        return open_index(kb, folder)
    if data.index is None:
        build_index(kb, folder, encoder, progress=data.progress)
        return open_index(kb, folder)
    open_index(data.kb, data.index)  # refuses that of another store
    work = folder.with_name("index.copied")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(data.index, work)
    update_index(kb, work, progress=data.progress)
    work.rename(folder)
    return open_index(kb, folder)


def _fingerprint(mentions: Sequence[LabelledMention]) -> str:
    digest = hashlib.sha256()
    for mention in mentions:
        values = (mention.text, sorted(mention.concepts), mention.document)
        digest.update(repr(values).encode())
    return digest.hexdigest()

"""Pre-training of a masked language model on annotated text, with any text objectives of a recipe.

The batches are of packed text, with random next segments and the labels of objectives. The model
that pre-training starts from gets the knowledge layers of the recipe; the graph neighbourhood of
the entities of a text becomes the rows of its entity table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from transformers import BertForMaskedLM

from biograft.artifacts import MANIFEST, hash_file, new_folder
from biograft.errors import ConfigError
from biograft.graph.embedding import Embeddings
from biograft.graph.neighbours import DIRECTIONS, NeighbourTable, first_types
from biograft.kb import KnowledgeBase
from biograft.models.knowledge import KnowledgeBertForMaskedLM
from biograft.models.knowledge.entities import TableEntity, entity_table
from biograft.models.knowledge.entity_finder import takes_entity_inputs
from biograft.models.knowledge_layers import NEIGHBOURS, KnowledgeLayerConfig
from biograft.models.precision import autocast_in
from biograft.models.pretrained import (
    hash_encoder,
    load_masked_lm,
    quiet_transformers,
    save_tokenizer,
)
from biograft.models.settings import EncoderSettings
from biograft.progress import Progress
from biograft.text.shards import Shards
from biograft.training import Task, train
from biograft.training.batches import IndependentBatches, group_by_length
from biograft.training.objectives.base import Loss, Objective, TensorBatch, TextStates
from biograft.training.objectives.examples import (
    ALL,
    FOLLOWS,
    IGNORED,
    MIXED,
    SPECIAL,
    VISIBLE_ENTITIES,
    WITHHELD_NEIGHBOURS,
    EntityGraph,
    EntityVisibility,
    ExampleTransform,
    Ints,
    Setting,
    TextBatch,
    TextExample,
    collate,
    sort_by_order,
)
from biograft.training.objectives.smedbert import MaskedNeighbour
from biograft.training.pretraining.packed_text import PackedText, open_packed
from biograft.training.pretraining.recipe import (
    KnowledgeConfig,
    PretrainingRecipe,
    PretrainResult,
    hold_out,
    hold_out_together,
)
from biograft.training.processes import join_processes

_TRIES = 16
"""The attempts to sample a sequence of another document."""


def with_next_segment(
    packed: PackedText, index: int, others: Ints, probability: float, rng: np.random.Generator
) -> TextExample:
    """Return a sequence, sometimes with a random next segment of another document.

    Args:
        packed: Packed sequences.
        index: Number of the sequence.
        others: Sequences that segments are sampled from, so that held-out ones do not leak into
            training.
        probability: Probability of a random segment.
        rng: Random numbers.
    """
    example, documents = packed.example(index), packed.documents
    if rng.random() < probability:
        for other in others[rng.integers(len(others), size=_TRIES)]:
            if documents[other] != documents[index]:
                joined = join_random_next(example, packed.example(int(other)), packed.max_length)
                return replace(joined, labels={**joined.labels, FOLLOWS: 0})
    return replace(example, labels={**example.labels, FOLLOWS: 1})


def join_random_next(example: TextExample, other: TextExample, max_length: int) -> TextExample:
    """Join the first segment of a sequence and the second one of another.

    A segment that is too long loses whole words at its end; a mention that is cut is dropped.

    Args:
        example: Sequence whose first segment stays.
        other: Sequence whose second segment follows.
        max_length: Largest number of tokens.
    """
    own, start = _second(example), _second(other)
    stop = _truncated_end(other, start, max_length - own - 1)
    inside = (other.mentions[:, 0] >= start) & (other.mentions[:, 1] < stop)
    moved = other.mentions[inside] + [own - start, own - start, 0]
    stays = example.mentions[:, 1] < own
    words = other.words[start:stop]
    n_words = example.words[:own].max() + 1
    return TextExample(
        tokens=np.concatenate([example.tokens[:own], other.tokens[start:stop], other.tokens[-1:]]),
        segments=np.repeat([0, 1], [own, stop - start + 1]),
        words=np.concatenate([example.words[:own], words - words[0] + n_words, [SPECIAL]]),
        mentions=np.concatenate([example.mentions[stays], moved]),
        token_labels={
            name: np.concatenate([labels[:own], other.token_labels[name][start:stop], [IGNORED]])
            for name, labels in example.token_labels.items()
        },
        mention_labels={
            name: np.concatenate([labels[stays], other.mention_labels[name][inside]])
            for name, labels in example.mention_labels.items()
        },
    )


def _second(example: TextExample) -> int:
    return int(np.argmax(example.segments == 1))


def _truncated_end(example: TextExample, start: int, room: int) -> int:
    """Find the end of at most ``room`` tokens from ``start``, if possible between words."""
    end = len(example.tokens) - 1  # without the separator
    if end - start <= room:
        return end
    words: Ints = example.words
    positions = np.arange(start + 1, start + room + 1)
    between = positions[words[positions] != words[positions - 1]]
    return int(between[-1]) if len(between) else start + room


@dataclass(frozen=True, slots=True)
class TextBatches(IndependentBatches[TextBatch]):
    """Batches in a new order each epoch, with examples transformed by ``transforms``.

    Of ``world * batch_size`` consecutive sequences every process takes ``batch_size``. An update
    reads ``accumulate`` such groups, so that it has the same sequences for any number of processes
    and passes. The last group of an epoch may have fewer; a remainder is left out. The sampling for
    a sequence depends on seed, epoch and its index.

    With ``bucket_batches`` above 0, the sequences of so many updates are sorted by length, and
    whole updates shuffled, which saves padding. The sequences of a batch then depend on the size of
    an update.
    """

    packed: PackedText
    batch_size: int
    transforms: Sequence[ExampleTransform] = ()
    seed: int = 33
    random_next_probability: float = 0.0
    accumulate: int = 1
    bucket_batches: int = 0
    rank: int = 0
    world: int = 1
    indices: Ints | None = None
    """The sequences to read, also as random next segments; by default all."""

    def __post_init__(self) -> None:
        if not len(self):
            raise ConfigError(
                f"stream: {len(self._indices)} sequences are too few for {self.world} processes; "
                "use fewer, or more text"
            )

    @property
    def _indices(self) -> Ints:
        return np.arange(len(self.packed)) if self.indices is None else self.indices

    def __len__(self) -> int:
        """The number of batches of an epoch for one process."""
        whole, rest = divmod(len(self._indices), self.batch_size * self.world)
        return whole + (rest >= self.world)

    def every(self, step: int, epoch: int, position: int) -> Iterator[TextBatch]:
        """Iterate over every ``step``-th batch of an epoch from a position on.

        Args:
            step: Distance between batches.
            epoch: Number of the epoch.
            position: First batch.
        """
        rng, n_together = np.random.default_rng([self.seed, epoch]), self.batch_size * self.world
        order = rng.permutation(self._indices)
        if self.bucket_batches:
            update = n_together * self.accumulate
            order = group_by_length(order, self.packed.lengths, update, self.bucket_batches, rng)
        for start in range(position * n_together, len(order), step * n_together):
            group = order[start : start + n_together]
            n_own = len(group) // self.world
            own = group[self.rank * n_own : (self.rank + 1) * n_own]
            if n_own:
                yield self.batch(own, epoch)

    def batch(self, indices: Ints, epoch: int = 0) -> TextBatch:
        """Return a batch of these sequences, as they are in an epoch.

        Args:
            indices: Numbers of sequences.
            epoch: Number of the epoch.
        """
        examples = [self.example(int(index), epoch) for index in indices]
        return collate(examples, self.packed.padding)

    def example(self, index: int, epoch: int) -> TextExample:
        """Return a sequence as it is in an epoch, independently of its batch.

        Args:
            index: Number of the sequence.
            epoch: Number of the epoch.
        """
        rng = np.random.default_rng([self.seed, epoch, 1 + index])  # 0 is for the order
        if self.random_next_probability:
            example = with_next_segment(
                self.packed, index, self._indices, self.random_next_probability, rng
            )
        else:
            example = self.packed.example(index)
        for transform in self.transforms:
            example = transform.prepare(example, rng)
        return example


_SIGNS = np.array([1 if name == "out" else -1 for name in DIRECTIONS])


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The entities of a table, those of the text first, and their graph."""

    ids: tuple[str, ...]
    graph: EntityGraph


def with_vectors(
    config: KnowledgeConfig, ids: Sequence[str], counts: Ints, kb: KnowledgeBase | None
) -> tuple[tuple[str, ...], Ints]:
    """Append to the entities of a text those of ``vectors`` that the store names.

    Later texts may mention any of them, so a layer with entity inputs knows them all, with
    ``whole_graph``. They are found by their names. Returns the ids and their frequencies in the
    text.

    Args:
        config: Table ``[knowledge]`` of the recipe.
        ids: Ids of the entities of the text.
        counts: Their frequencies.
        kb: Knowledge base of their names; without one none is added.
    """
    if not config.takes_entity_inputs or kb is None:
        return tuple(ids), counts
    rows = np.setdiff1d(_rows_with_vectors(config, kb), _rows_of(ids, kb))
    more = [kb.id_at(int(row)) for row in rows]
    return (*ids, *more), np.concatenate([counts, np.zeros(len(more), np.int64)])


def read_neighbourhood(
    config: KnowledgeConfig,
    ids: Sequence[str],
    counts: Ints,
    kb: KnowledgeBase | None,
    *,
    grows: bool,
) -> Neighbourhood:
    """Read the graph of the entities of a text, given their frequencies.

    Neighbours outside the table are left out.

    Args:
        config: Table ``[knowledge]`` of the recipe.
        ids: Ids of the entities of the text.
        counts: Their frequencies.
        kb: Knowledge base that the neighbours were built from.
        grows: Append the neighbours of the entities or, with ``whole_graph``, all entities with an
            edge or a vector.
    """
    if kb is None or config.neighbours is None:
        raise ConfigError(
            "knowledge.neighbours: is read with the knowledge base it was built from; name it with "
            "--kb"
        )
    table = NeighbourTable.open(config.neighbours, kb)
    n_neighbours = config.layers[NEIGHBOURS].n_neighbours
    if n_neighbours > table.k:
        raise ConfigError(
            f"knowledge.layers.{NEIGHBOURS}.n_neighbours: {config.neighbours} has {table.k} of "
            f"each entity, found {n_neighbours}; build it again with -k {n_neighbours}"
        )
    rows = _rows_of(ids, kb)
    if grows:
        more = _connected(table, rows[rows >= 0], whole=config.whole_graph)
        more = np.union1d(more, _rows_with_vectors(config, kb))
        rows = np.concatenate([rows, np.setdiff1d(more, rows)])
    row_of = np.full(len(kb) + 1, -1, np.int64)  # the last one is for -1
    row_of[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    edges = table.gather(rows, n=n_neighbours)
    neighbours = row_of[edges.neighbours]
    order = np.argsort(neighbours < 0, axis=1, kind="stable")  # no gaps
    neighbours, relations, directions = (
        np.take_along_axis(column.astype(np.int64), order, axis=1)
        for column in (neighbours, edges.relations, edges.directions)
    )
    missing = neighbours < 0
    names = [*ids, *(kb.id_at(int(row)) for row in rows[len(ids) :])]
    vectors, projections = _relations(config, kb)
    return Neighbourhood(
        tuple(names),
        EntityGraph(
            neighbours=neighbours,
            relations=np.where(missing, -1, relations),
            signs=np.where(missing, 0, _SIGNS[directions]),
            types=np.where(rows < 0, -1, first_types(kb)[rows]).astype(np.int64),
            counts=np.concatenate([counts, np.zeros(len(rows) - len(ids), np.int64)]),
            relation_vectors=vectors,
            projections=projections,
        ),
    )


def _rows_of(ids: Sequence[str], kb: KnowledgeBase) -> Ints:
    rows = [kb.find_row(identifier) for identifier in ids]
    if rows and all(row is None for row in rows):
        raise ConfigError(
            f"stream.shards: {kb.folder} knows none of its {len(ids):,} entities (first "
            f"{ids[0]!r}); name the knowledge base that the text was annotated with"
        )
    return np.array([-1 if row is None else row for row in rows], np.int64)


def _rows_with_vectors(config: KnowledgeConfig, kb: KnowledgeBase) -> Ints:
    """Return the rows of all concepts with a vector, with ``whole_graph``."""
    if config.vectors is None or not config.whole_graph:
        return np.zeros(0, np.int64)
    rows = (kb.find_row(identifier) for identifier in Embeddings.open(config.vectors).entity_ids)
    return np.array([row for row in rows if row is not None], np.int64)


def _connected(table: NeighbourTable, rows: Ints, *, whole: bool) -> Ints:
    """Return the rows of all concepts with an edge to these entities, or with any edge."""
    among = np.arange(len(table)) if whole else rows
    edges = table.gather(among)
    exists = edges.neighbours >= 0
    own = among[exists.any(axis=1)]
    connected: Ints = np.union1d(edges.neighbours[exists].astype(np.int64), own)
    return connected


def _relations(
    config: KnowledgeConfig, kb: KnowledgeBase
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the vectors and projections of relations.

    TransE, and a table without vectors, have the identity as projection.
    """
    n_relations = len(kb.relation_names)
    if config.vectors is None:
        return np.zeros((n_relations, config.dim), np.float32), _identities(n_relations, config.dim)
    embeddings = Embeddings.open(config.vectors)
    if tuple(embeddings.relation_names[:n_relations]) != tuple(kb.relation_names):
        raise ConfigError(
            f"knowledge.vectors: {config.vectors} has other relations than {kb.folder}; embed the "
            "graph of this knowledge base"
        )
    tables = embeddings.tables
    vectors = np.array(tables.relation[:n_relations], np.float32)
    if len(tables.projection):
        return vectors, np.array(tables.projection[:n_relations], np.float32)
    return vectors, _identities(n_relations, tables.entity.shape[1])


def _identities(n_relations: int, dim: int) -> npt.NDArray[np.float32]:
    """Return identity projections."""
    return np.tile(np.eye(dim, dtype=np.float32), (n_relations, 1, 1))


def check_contents(name: str, lm: Any, config: KnowledgeConfig, graph: EntityGraph | None) -> None:
    """Refuse vectors and neighbours other than those that a model was built with.

    Args:
        name: Name of the model.
        lm: The model.
        config: Table ``[knowledge]`` of the recipe.
        graph: Neighbours of its entities, if the recipe names some.
    """
    if config.freeze and config.vectors is not None and not _has_vectors(lm, config):
        raise ConfigError(
            f"knowledge.vectors: the frozen table of {name} differs from {config.vectors}; name "
            "the vectors it was built with, or start from a plain BERT"
        )
    if graph is not None and not _has_neighbours(lm, graph):
        raise ConfigError(
            f"knowledge.neighbours: the neighbours of {name} differ from {config.neighbours}; name "
            "those it was built with, or start from a plain BERT"
        )


def _has_vectors(lm: Any, config: KnowledgeConfig) -> bool:
    """Whether the table has the given vectors, for at least one entity."""
    embeddings = Embeddings.open(str(config.vectors))
    given = embeddings.tables.entity
    table = lm.model.entity_table.weight.detach().cpu().float().numpy()
    row_of = {identifier: row for row, identifier in enumerate(embeddings.entity_ids)}
    rows = np.fromiter((row_of.get(entity.id, -1) for entity in lm.entities), np.int64)
    known = rows >= 0
    if not known.any() or given.shape[1] != table.shape[1]:
        return False
    return np.allclose(table[known], given[rows[known]])


def _has_neighbours(lm: Any, graph: EntityGraph) -> bool:
    layer = lm.model.knowledge[NEIGHBOURS]
    return bool(
        np.array_equal(layer.neighbours.cpu().numpy(), graph.neighbours)
        and np.array_equal(layer.types.cpu().numpy(), graph.types)
    )


_TOKENIZER_DOCUMENTS = 200_000
"""The maximum number of documents that a new tokenizer is trained on."""


@dataclass(frozen=True, slots=True)
class StartModel:
    """The language model that a run starts from, with its tokenizer."""

    lm: Any
    tokenizer: Any
    fingerprint: str

    @property
    def entities(self) -> tuple[str, ...] | None:
        """The entities of a model that already has knowledge layers, in the order of its rows."""
        if not isinstance(self.lm, KnowledgeBertForMaskedLM):
            return None
        return tuple(entity.id for entity in self.lm.entities)

    @property
    def width(self) -> int:
        """Width of the states."""
        return int(self.lm.config.hidden_size)


def load_start(recipe: PretrainingRecipe) -> StartModel:
    """Load the encoder of a recipe, or create the new one that it describes.

    Missing weights, such as those of a token head, are initialised by the seed.
    """
    if recipe.new is not None:
        name, loaded = "the new model", recipe.new.create(_texts(recipe), recipe.training.seed)
    else:
        name = recipe.encoder.name
        loaded = load_masked_lm(name, seed=recipe.training.seed)
    _check_model(name, loaded.model, recipe)
    max_length = int(loaded.model.config.max_position_embeddings)
    if recipe.stream.max_length > max_length:
        raise ConfigError(
            f"stream.max_length: expected at most {max_length} for {name}, found "
            f"{recipe.stream.max_length}"
        )
    settings = EncoderSettings(pooling="mean", max_length=max_length, lower=False)
    fingerprint = hash_encoder(loaded.model, loaded.tokenizer, settings)
    return StartModel(loaded.model, loaded.tokenizer, fingerprint)


def _texts(recipe: PretrainingRecipe) -> Iterator[str]:
    """Iterate over the texts that a new tokenizer is trained on."""
    documents = iter(Shards.open(recipe.stream.shards))
    return (document.text for document in islice(documents, _TOKENIZER_DOCUMENTS))


def _check_model(name: str, model: Any, recipe: PretrainingRecipe) -> None:
    """Refuse a model that does not fit the recipe."""
    if isinstance(model, KnowledgeBertForMaskedLM):
        if model.config.n_entities != len(model.entities):
            raise ConfigError(
                f"{name}: does not name the entities of its {model.config.n_entities:,} rows "
                "(entities.jsonl), so it cannot be trained further on annotated text"
            )
        _check_same(name, model, recipe.knowledge)
    elif not isinstance(model, BertForMaskedLM):
        raise ConfigError(f"{name}: expected a BERT, found {type(model).__name__}")
    elif recipe.knowledge:
        n_layers = model.config.num_hidden_layers
        for layer, settings in recipe.knowledge.layers.items():
            if settings.after > n_layers:
                raise ConfigError(
                    f"knowledge.layers.{layer}.after: {name} has {n_layers} layers, found "
                    f"{settings.after}"
                )


def _check_same(name: str, model: Any, knowledge: KnowledgeConfig | None) -> None:
    """Refuse to change the knowledge layers that a model has."""
    if knowledge is None:
        return
    theirs = _settings(model.config.layer_configs(), model.config.freeze_entities)
    ours = _settings(knowledge.layers, knowledge.freeze)
    # with vectors, objectives read the relations there; without, the table is what the model has
    if not (knowledge.takes_entity_inputs and knowledge.vectors):
        theirs |= {"dim": model.config.entity_dim, "vectors": None}
        ours |= {"dim": knowledge.dim, "vectors": knowledge.vectors}
    for key in sorted({*ours, *theirs}):
        if ours.get(key) != theirs.get(key):
            raise ConfigError(
                f"knowledge.{key}: {name} has knowledge layers with {theirs.get(key)!r}, found "
                f"{ours.get(key)!r}; set the same, or start from a plain BERT"
            )


_CHECKPOINT_FIELDS = ("max_mentions", "compat")
"""Fields of imported checkpoints that a recipe need not repeat."""


def _settings(layers: Mapping[str, KnowledgeLayerConfig], freeze: bool) -> dict[str, Any]:
    """Return the settings of knowledge layers by their dotted key in ``[knowledge]``."""
    settings = {
        f"layers.{name}.{key}": value
        for name, layer in layers.items()
        for key, value in asdict(layer).items()
        if key not in _CHECKPOINT_FIELDS
    }
    return {**settings, "freeze": freeze}


@dataclass(frozen=True, slots=True)
class GraftResult:
    """A model with the knowledge layers of its recipe."""

    lm: Any
    n_random: int = 0
    """The number of entities that started at random, without a vector."""


def graft(
    start: StartModel,
    recipe: PretrainingRecipe,
    ids: Sequence[str],
    kb: KnowledgeBase | None,
    graph: EntityGraph | None = None,
) -> GraftResult:
    """Add the knowledge layers of a recipe to a model; existing ones stay.

    Args:
        start: Model that the training starts from.
        recipe: The recipe.
        ids: Ids of the entities of the text.
        kb: Knowledge base of their names.
        graph: Neighbours of the entities.
    """
    config = recipe.knowledge
    if config is None:
        return GraftResult(start.lm)
    if start.entities is not None:
        check_contents(recipe.encoder.name, start.lm, config, graph)
        return GraftResult(start.lm)
    table = entity_table(ids, config.vectors, dim=config.dim, seed=recipe.training.seed)
    lm = KnowledgeBertForMaskedLM.from_bert(
        start.lm,
        table.vectors,
        [_entity(kb, identifier, all_names=config.takes_entity_inputs) for identifier in ids],
        graph={"neighbours": graph.neighbours, "types": graph.types} if graph else None,
        seed=recipe.training.seed,
        **config.model_settings(),
    )
    return GraftResult(lm, table.n_random)


def hash_knowledge(config: KnowledgeConfig | None) -> dict[str, str]:
    """Compute the hashes of the folders that the knowledge layers start from."""
    folders = {"vectors": config.vectors, "neighbours": config.neighbours} if config else {}
    return {
        name: hash_file(folder / MANIFEST)
        for name, folder in folders.items()
        if folder and (folder / MANIFEST).exists()
    }


def _entity(kb: KnowledgeBase | None, identifier: str, *, all_names: bool) -> TableEntity:
    row = None if kb is None else kb.find_row(identifier)
    if kb is None or row is None:
        return TableEntity(identifier)
    names = tuple(name.text for name in kb.concept_at(row).names) if all_names else ()
    return TableEntity(identifier, kb.name_at(row), names)


def save_model(lm: Any, tokenizer: Any, folder: Path) -> None:
    """Save a model with its tokenizer and, if it has any, its entities.

    Args:
        lm: The model.
        tokenizer: Its tokenizer.
        folder: Folder to write; one that exists is replaced.
    """
    with new_folder(folder, overwrite=True) as work, torch.no_grad(), quiet_transformers():
        lm.save_pretrained(work)
        save_tokenizer(tokenizer, work)


_EVALUATION_SEED = 17
"""The seed of the sampling in held-out batches."""


class TextModel(nn.Module):
    """A masked language model and its objectives, with one forward pass for all losses.

    ``lm`` has knowledge layers or is a plain BERT. All trained weights are in it.

    Args:
        lm: Masked language model, with knowledge layers or plain.
        objectives: Objectives by name.
    """

    def __init__(self, lm: Any, objectives: Mapping[str, Objective]) -> None:
        super().__init__()
        self.lm, self.objectives = lm, dict(objectives)
        self.terms = {
            f"{name}.{term}" if term else name: loss_term
            for name, objective in self.objectives.items()
            for term, loss_term in objective.terms.items()
        }
        heads = {name: objective.head for name, objective in self.objectives.items()}
        self.heads = nn.ModuleDict({name: head for name, head in heads.items() if head is not None})

    def forward(self, batch: TensorBatch, multipliers: Mapping[str, float]) -> Loss:
        """Compute the sum of the objectives' losses, and their statistics.

        Args:
            batch: The batch.
            multipliers: Multiplier of each loss and statistic by its own name, or that of its term,
                so that means over several batches are means over all their items.
        """
        states = self.states(batch)
        total, statistics = states.final.new_zeros((), dtype=torch.float32), {}
        for name, term in self.terms.items():
            loss, stats = term.loss(states, batch)
            multiplier = multipliers.get(name, 1.0)
            total = total + multiplier * loss
            for key, each in stats.items():
                statistic = f"{name}.{key}"
                statistics[statistic] = multipliers.get(statistic, multiplier) * each
        return total, statistics

    def states(self, batch: TensorBatch) -> TextStates:
        """Run the model once, for all objectives."""
        embeddings: Tensor = self.lm.get_input_embeddings().weight
        if not isinstance(self.lm, KnowledgeBertForMaskedLM):
            encoder = self.lm.base_model
            output = encoder(batch.tokens, batch.mask, batch.segments)
            return TextStates(
                final=output.last_hidden_state,
                token_scores=self.lm.cls,
                embeddings=embeddings,
                encode=lambda tokens, mask: encoder(tokens, mask).last_hidden_state,
            )
        visible = batch.mention_labels.get(VISIBLE_ENTITIES, batch.entities).clamp_min(-1)
        output = self.lm.model(
            batch.tokens,
            batch.mask,
            batch.segments,
            batch.mentions,
            visible,
            gold=True,
            withheld=batch.mention_labels.get(WITHHELD_NEIGHBOURS),
        )
        return TextStates(
            final=output.last_hidden_state,
            token_scores=self.lm.cls,
            embeddings=embeddings,
            detection=output.detection_scores,
            queries=output.queries,
            table=self.lm.model.entity_table.weight,
            read_mentions=self.lm.model.mention_reader,
        )


class TextTraining:
    """Loss, counts and evaluation of a ``TextModel``, for ``training.Task``."""

    def __init__(self, model: TextModel) -> None:
        self.model = model

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    def loss(self, model: nn.Module, batch: TextBatch, multipliers: Mapping[str, float]) -> Loss:
        """Compute the loss of a batch, and its statistics.

        Args:
            model: The module to train, as the loop wraps it.
            batch: The batch.
            multipliers: Weight of each mean in the update, by the name of its count.
        """
        result: Loss = model(TensorBatch.of(batch, self.device), multipliers)
        return result

    def counts(self, batch: TextBatch) -> dict[str, int]:
        """Count the items that the loss and the accuracy of each term are means over."""
        terms = self.model.terms.items()
        items = {f"{name}.accuracy": term.count_items(batch) for name, term in terms}
        return {name: term.count(batch) for name, term in terms} | items

    def evaluate(self, batches: list[TextBatch], precision: str) -> dict[str, float]:
        """Compute the statistics of held-out batches, weighted by their counts.

        Beside an accuracy stand ``n``, the number of items, ``error``, its standard error (of a
        mean over batches), and ``chance``, which the most frequent label alone would reach.

        The sampling of objectives, such as that of negatives, is the same each time.

        Args:
            batches: Held-out batches.
            precision: One of ``models.precision.PRECISIONS``.
        """
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(_EVALUATION_SEED)
            return self._evaluate(batches, precision)

    def _evaluate(self, batches: list[TextBatch], precision: str) -> dict[str, float]:
        read: dict[str, list[tuple[float, int]]] = {}
        for batch in batches:
            with autocast_in(precision, self.device):
                _, stats = self.model(TensorBatch.of(batch, self.device), {})
            counts = self.counts(batch)
            for key, value in stats.items():
                read.setdefault(key, []).append((value, _count_of(key, counts)))
        found: dict[str, float] = {}
        for key, pairs in read.items():
            values, sizes = np.array(pairs).T
            n = max(1.0, sizes.sum())
            found[key] = float((values * sizes).sum() / n)
            if key.endswith(".accuracy"):
                name = key.removesuffix(".accuracy")
                spread = np.square((values - found[key]) * sizes).sum() * len(sizes)
                found[f"{name}.n"] = float(sizes.sum())
                found[f"{name}.error"] = float(np.sqrt(spread / max(1, len(sizes) - 1)) / n)
                found |= self._chance(name, batches)
        return found

    def _chance(self, name: str, batches: list[TextBatch]) -> dict[str, float]:
        """Compute the ratio of the most frequent label: what a constant answer would reach."""
        given = [self.model.terms[name].labels(batch) for batch in batches]
        counts = Counter(int(k) for each in given if each is not None for k in each[each >= 0])
        return {f"{name}.chance": max(counts.values()) / counts.total()} if counts else {}


def _count_of(statistic: str, counts: Mapping[str, int]) -> int:
    """Return the count of a statistic, or else that of its term."""
    return counts.get(statistic, counts[statistic.rpartition(".")[0]])


def pretrain_language_model(
    recipe: PretrainingRecipe,
    kb: KnowledgeBase | None,
    run: Path,
    *,
    resume: bool,
    progress: Progress,
) -> PretrainResult:
    """Train a language model on annotated text; it is written to ``run/encoder``.

    Args:
        recipe: The recipe.
        kb: Knowledge base of the entities, which knowledge layers need.
        run: Folder of the run.
        resume: Continue from its last checkpoint.
        progress: Progress of training.
    """
    processes, config = join_processes(), recipe.training
    plan = config.plan_batch(processes.num_processes)
    progress.start("encoder")
    start = load_start(recipe)
    with processes.main_process_first():
        packed = open_packed(
            recipe.stream, start.tokenizer, entities=start.entities, kb=kb, progress=progress
        )
    if start.entities is not None and not packed.entity_counts.any():
        raise ConfigError(
            f"stream.shards: {recipe.stream.shards} has none of the entities that "
            f"{recipe.encoder.name} knows; annotate it with the knowledge base of the model"
        )
    ids, counts, graph = _table(recipe.knowledge, packed, kb, grows=start.entities is None)
    grafted = graft(start, recipe, ids, kb, graph)
    setting = Setting.of(
        start.tokenizer,
        start.width,
        counts,
        graph=graph,
        embeddings=start.lm.get_input_embeddings().weight,
        entity_visibility=recipe.knowledge.entity_visibility if recipe.knowledge else ALL,
        encoder=None if start.entities or recipe.knowledge else start.lm.base_model,
    )
    objectives = {name: config.build(setting) for name, config in recipe.objectives.items()}
    text_training = TextTraining(TextModel(grafted.lm, objectives))
    transforms = example_transforms(objectives, recipe.knowledge, grafted.lm, graph)
    train_indices, held_out_indices = _split(packed, recipe)
    make = partial(
        TextBatches,
        packed,
        plan.size,
        sort_by_order(transforms),
        seed=config.seed,
        random_next_probability=recipe.stream.random_next_probability,
        bucket_batches=recipe.stream.bucket_batches,
    )
    source = make(
        rank=processes.process_index,
        world=processes.num_processes,
        indices=train_indices,
        accumulate=plan.accumulate,
    )
    _try_out(text_training, make(indices=train_indices[:1]))
    held_out = []
    if recipe.stream.held_out:
        other = replace(recipe.stream, shards=recipe.stream.held_out, cache=None)
        with processes.main_process_first():
            given = open_packed(other, start.tokenizer, entities=ids, kb=kb, progress=progress)
        held_out = list(replace(make(), packed=given).batches(0))
    elif len(held_out_indices):
        held_out = list(make(indices=held_out_indices).batches(0))
    task = Task(
        model=text_training.model,
        source=source,
        compute_loss=text_training.loss,
        counts=text_training.counts,
        evaluate=partial(text_training.evaluate, held_out, config.precision) if held_out else None,
        described=recipe.to_json(),
        provenance={
            "packed": packed.manifest["made_from"],
            "encoder": start.fingerprint,
            **hash_knowledge(recipe.knowledge),
        },
        may_shard=True,
        body=tuple(grafted.lm.base_model.parameters()),
    )
    trained = train(task, config, run, resume=resume, progress=progress)
    if processes.is_main_process:
        save_model(grafted.lm, start.tokenizer, run / "encoder")
    counts_by_name = _count(packed) | {"n_random_entities": grafted.n_random}
    return PretrainResult(run, run / "encoder", _describe(packed), counts_by_name, trained)


def _split(packed: PackedText, recipe: PretrainingRecipe) -> tuple[Ints, Ints]:
    """Return the sequences to train on, and those to hold out where no other text is given."""
    if recipe.stream.held_out:
        return np.arange(len(packed)), np.arange(0)
    if recipe.stream.substitution is None:
        return hold_out(len(packed), recipe.training.seed)
    return hold_out_together(packed.documents, recipe.training.seed)


def example_transforms(
    objectives: Mapping[str, Objective],
    knowledge: KnowledgeConfig | None,
    lm: Any,
    graph: EntityGraph | None = None,
) -> list[ExampleTransform]:
    """Return the transforms of examples: objectives, and the visibility of entities.

    A model that already has knowledge layers, in a recipe without ``[knowledge]``, receives the
    entities of masked mentions and of half the others.

    Args:
        objectives: Objectives by name, in the order in which they prepare an example.
        knowledge: Table ``[knowledge]`` of the recipe.
        lm: The model.
        graph: Neighbours of its entities.
    """
    if not takes_entity_inputs(lm.base_model):
        return [*objectives.values()]
    predicted = graph.neighbours if graph and MaskedNeighbour.name in objectives else None
    visibility = knowledge.entity_visibility if knowledge else MIXED
    return [*objectives.values(), EntityVisibility(visibility, predicted)]


def _table(
    config: KnowledgeConfig | None, packed: PackedText, kb: KnowledgeBase | None, *, grows: bool
) -> tuple[Sequence[str], npt.NDArray[np.int64], EntityGraph | None]:
    """Return the entities of the table, their frequencies, and the graph if the recipe has one."""
    ids, counts = packed.entities, packed.entity_counts
    if config is None:
        return ids, counts, None
    if config.neighbours is None:
        return (*(with_vectors(config, ids, counts, kb) if grows else (ids, counts)), None)
    around = read_neighbourhood(config, ids, counts, kb, grows=grows)
    return around.ids, around.graph.counts, around.graph


@torch.no_grad()
def _try_out(text_training: TextTraining, source: TextBatches) -> None:
    """Compute a loss, so that an objective that does not fit raises before the run starts."""
    text_training.loss(text_training.model, next(source.batches(0)), {})


def _describe(packed: PackedText) -> str:
    return (
        f"{packed.n_tokens:,} tokens in {len(packed):,} sequences, with "
        f"{len(packed.entities):,} entities"
    )


def _count(packed: PackedText) -> dict[str, Any]:
    return {
        "text": {
            "n_sequences": len(packed),
            "n_tokens": packed.n_tokens,
            "n_entities": len(packed.entities),
            **packed.counts,
        }
    }

"""Pre-training of a masked language model on annotated text, with any text objectives of a recipe.

The batches are of packed text, with random next segments and the labels of objectives. The model
that pre-training starts from gets the knowledge layers of the recipe; the graph neighbourhood of
the entities of a text becomes the rows of its entity table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertForMaskedLM

from biograft.arrays import Float32s, Ints
from biograft.artifacts import MANIFEST, hash_file, new_folder
from biograft.errors import ConfigError
from biograft.graph.embedding import Embeddings
from biograft.graph.neighbours import DIRECTIONS, NeighbourTable, first_types
from biograft.kb import KnowledgeBase
from biograft.models.knowledge import KnowledgeBertForMaskedLM
from biograft.models.knowledge.entities import TableEntity, entity_table
from biograft.models.knowledge.entity_finder import takes_entity_inputs
from biograft.models.knowledge_layers import NEIGHBOURS, KnowledgeLayerConfig
from biograft.models.pretrained import (
    hash_encoder,
    load_masked_lm,
    quiet_transformers,
    save_tokenizer,
)
from biograft.models.settings import EncoderSettings
from biograft.progress import Progress
from biograft.text.shards import Shards
from biograft.training import TrainingResult
from biograft.training.batches import EpochOrder, OrderedBatches
from biograft.training.objectives.base import Objective, TensorBatch, TextStates
from biograft.training.objectives.examples import (
    ALL,
    FOLLOWS,
    MIXED,
    VISIBLE_ENTITIES,
    WITHHELD_NEIGHBOURS,
    EntityGraph,
    EntityVisibility,
    ExampleTransform,
    Setting,
    TextBatch,
    TextExample,
    collate,
    sort_by_order,
    splice,
)
from biograft.training.objectives.model import View
from biograft.training.objectives.smedbert import MaskedNeighbour
from biograft.training.pretraining.packed_text import PackedText
from biograft.training.pretraining.recipe import (
    AnnotatedTextConfig,
    KnowledgeConfig,
    PretrainingRecipe,
    hold_out,
)
from biograft.training.pretraining.stream import Stream
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
    own, start, n = _second(example), _second(other), len(other.tokens)
    stop = _truncated_end(other, start, max_length - own - 1)
    return splice([(example, 0, own), (other, start, stop), (other, n - 1, n)], own)


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
class TextSequences:
    """Sequences as they are in an epoch, changed by ``transforms``, and batches of them.

    The sampling for a sequence depends on seed, epoch and its index.
    """

    packed: PackedText
    """Packed text to read."""
    transforms: Sequence[ExampleTransform] = ()
    seed: int = 33
    """Seed of order and sampling."""
    random_next_probability: float = 0.0
    """Probability that the second segment is from another document."""
    indices: Ints | None = None
    """The sequences that random next segments are of; by default all."""

    def batch(self, epoch: int, indices: Sequence[int]) -> TextBatch:
        """Return a batch of some sequences.

        Args:
            epoch: Number of the epoch.
            indices: Numbers of the sequences.
        """
        return collate([self.example(int(i), epoch) for i in indices], self.packed.padding)

    def example(self, index: int, epoch: int) -> TextExample:
        """Return a sequence, independently of its batch.

        Args:
            index: Number of the sequence.
            epoch: Number of the epoch.
        """
        rng = np.random.default_rng([self.seed, epoch, 1 + index])  # 0 is for the order
        if self.random_next_probability:
            others = np.arange(len(self.packed)) if self.indices is None else self.indices
            example = with_next_segment(
                self.packed, index, others, self.random_next_probability, rng
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


def _relations(config: KnowledgeConfig, kb: KnowledgeBase) -> tuple[Float32s, Float32s]:
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


def _identities(n_relations: int, dim: int) -> Float32s:
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


class TextReader(nn.Module):
    """Reads batches of text with a masked language model, with knowledge layers or a plain BERT.

    Args:
        lm: The masked language model.
    """

    def __init__(self, lm: Any) -> None:
        super().__init__()
        self.lm = lm

    def forward(self, given: TextBatch) -> tuple[TextStates, View]:
        """Run the model once, for all objectives."""
        embeddings: Tensor = self.lm.get_input_embeddings().weight
        batch = TensorBatch.of(given, embeddings.device)
        if not isinstance(self.lm, KnowledgeBertForMaskedLM):
            encoder = self.lm.base_model
            states = TextStates(
                final=encoder(batch.tokens, batch.mask, batch.segments).last_hidden_state,
                token_scores=self.lm.cls,
                embeddings=embeddings,
                encode=lambda tokens, mask: encoder(tokens, mask).last_hidden_state,
            )
            return states, lambda _: batch
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
        states = TextStates(
            final=output.last_hidden_state,
            token_scores=self.lm.cls,
            embeddings=embeddings,
            detection=output.detection_scores,
            queries=output.queries,
            table=self.lm.model.entity_table.weight,
            read_mentions=self.lm.model.mention_reader,
        )
        return states, lambda _: batch


class TextStream(Stream):
    """Annotated text, from which a masked language model learns, with knowledge layers or not."""

    def open(self, progress: Progress) -> None:
        """Open the text, and the model with its knowledge layers."""
        recipe, kb, config = self.recipe, self.kb, self.recipe.stream
        progress.start("encoder")
        self._start = start = load_start(recipe)
        self.packed = packed = self._read(config, start.entities, progress)
        if start.entities is not None and not packed.entity_counts.any():
            raise ConfigError(
                f"stream.shards: {config.shards} has none of the entities that "
                f"{recipe.encoder.name} knows; annotate it with the knowledge base of the model"
            )
        grows = start.entities is None
        ids, counts, self._graph = _table(recipe.knowledge, packed, kb, grows=grows)
        grafted = graft(start, recipe, ids, kb, self._graph)
        self.lm, seed = grafted.lm, recipe.training.seed
        self.body = tuple(self.lm.base_model.parameters())
        self.setting = Setting.of(
            start.tokenizer,
            start.width,
            counts,
            kb=kb,
            entities=tuple(ids),
            graph=self._graph,
            embeddings=start.lm.get_input_embeddings().weight,
            entity_visibility=recipe.knowledge.entity_visibility if recipe.knowledge else ALL,
            encoder=None if start.entities or recipe.knowledge else start.lm.base_model,
        )
        self.rows, self._held_out = np.arange(len(packed)), np.arange(0)
        self._other = None
        if config.held_out:
            other = replace(config, shards=config.held_out, cache=None)
            self._other = self._read(other, ids, progress)
        elif config.substitution is None:
            self.rows, self._held_out = hold_out(np.arange(len(packed)), seed)
        else:
            self.rows, self._held_out = hold_out(packed.documents, seed)
        self.lengths = packed.lengths
        self.provenance = {
            "packed": packed.manifest["made_from"],
            "encoder": start.fingerprint,
            **hash_knowledge(recipe.knowledge),
        }
        sizes = {
            "n_sequences": len(packed),
            "n_tokens": packed.n_tokens,
            "n_entities": len(packed.entities),
        }
        self.counts = {"text": sizes | packed.counts, "n_random_entities": grafted.n_random}
        self.about = (
            f"{packed.n_tokens:,} tokens in {len(packed):,} sequences, with "
            f"{len(packed.entities):,} entities"
        )

    def _read(
        self, config: AnnotatedTextConfig, entities: Sequence[str] | None, progress: Progress
    ) -> PackedText:
        with join_processes().main_process_first():
            packed: PackedText = config.part(
                config, self._start.tokenizer, entities=entities, kb=self.kb, progress=progress
            )
        return packed

    def reader(self) -> TextReader:
        """Return the model; also prepare the examples for the objectives."""
        transforms = example_transforms(
            self.objectives, self.recipe.knowledge, self.lm, self._graph
        )
        self._sequences = TextSequences(
            self.packed,
            sort_by_order(transforms),
            self.recipe.training.seed,
            self.recipe.stream.random_next_probability,
            self.rows,
        )
        return TextReader(self.lm)

    def batch(self, epoch: int, indices: Sequence[int]) -> TextBatch:
        """Return some sequences."""
        return self._sequences.batch(epoch, indices)

    def held_out(self, size: int) -> list[TextBatch]:
        """Return the sequences that are held out, or those of another text."""
        rows, sequences = self._held_out, replace(self._sequences, indices=self._held_out)
        if self._other is not None:
            rows = np.arange(len(self._other))
            sequences = replace(self._sequences, packed=self._other, indices=None)
        if not len(rows):
            return []
        order = EpochOrder(
            rows,
            size,
            self.recipe.training.seed,
            lengths=sequences.packed.lengths,
            bucket_batches=self.recipe.stream.bucket_batches,
        )
        return list(OrderedBatches(order, sequences.batch).batches(0))

    def save(self, trained: TrainingResult) -> None:
        """Write the model."""
        save_model(self.lm, self._start.tokenizer, self.run / "encoder")


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
) -> tuple[Sequence[str], Ints, EntityGraph | None]:
    """Return the entities of the table, their frequencies, and the graph if the recipe has one."""
    ids, counts = packed.entities, packed.entity_counts
    if config is None:
        return ids, counts, None
    if config.neighbours is None:
        return (*(with_vectors(config, ids, counts, kb) if grows else (ids, counts)), None)
    around = read_neighbourhood(config, ids, counts, kb, grows=grows)
    return around.ids, around.graph.counts, around.graph

"""Fine-tune encoders for dense search on labelled mentions, and average encoders.

The loss is marginal over candidates (BioSyn), over a memory bank of all names, or contrastive.
Names are prepared as the encoder sees them, each distinct text once: names that differ only in
case are one candidate. A text is correct if it names a gold concept, whatever else it names.

The candidates of the marginal loss are found half by lexical search, half by the current encoder.
A bank spares their encoding: only mentions, and a few correct names of each, are encoded in a step.
The vectors of all other names are computed at the start of the epoch, so that a step costs a tenth
and every name is a negative. The mentions are names of the bank, too, but not for themselves.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from biograft.artifacts import ArraySpec, ArtifactKind, new_folder, open_arrays, save_arrays
from biograft.errors import ConfigError, MissingExtraError, StoreError

try:
    import torch
    from torch import Tensor
except ModuleNotFoundError as error:
    raise MissingExtraError("models", "fine-tuning an encoder") from error
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.kb.names import normalise
from biograft.linking.candidates import Rows, Scores, pad_rows
from biograft.linking.config import LinkerConfig
from biograft.linking.dense.index import collect_texts
from biograft.linking.dense.search import ExactSearch, Vectors, VectorTable
from biograft.linking.index import (
    WEIGHTS,
    IndexConfig,
    build_index,
    open_index,
    read_weights,
    write_weights,
)
from biograft.linking.lexical.index import LexicalIndex
from biograft.linking.queries import LabelledMention, check_not_names
from biograft.linking.search_weights import fit_lexical_weight
from biograft.models import TextEncoder
from biograft.models.model_card import ModelCard, write_card
from biograft.models.pretrained import describe_tokenizer
from biograft.progress import Progress
from biograft.training import train
from biograft.training.batches import BatchSource, EpochOrder, OrderedBatches
from biograft.training.checkpoint import MODEL
from biograft.training.linkers.recipes import (
    FinetuneConfig,
    LinkerRecipe,
    LinkerTrainingData,
    Outcome,
    TrainedLinker,
    label_mentions,
)
from biograft.training.objectives.base import Objective
from biograft.training.objectives.model import EncoderReader, ObjectiveModel
from biograft.training.objectives.synonym_marginal import (
    BankMarginal,
    LexicalWeight,
    SynonymMarginal,
)
from biograft.training.pretraining.alignment import TextPairs
from biograft.training.processes import join_processes


class NameTable:
    """The distinct texts of a store's names, by index.

    Args:
        kb: Knowledge base of the names.
        encoder: Encoder, which prepares the texts.
        languages: Languages of the names; empty means all.
    """

    def __init__(self, kb: KnowledgeBase, encoder: TextEncoder, languages: Sequence[str]) -> None:
        names = collect_texts(kb, encoder.prepare, languages)
        self._texts = names.texts
        self.first_rows = names.rows[names.starts[:-1]]
        """The first row of the names table with each text."""
        self.of_row = np.full(kb.n_names, -1, np.int64)
        self.of_row[names.rows] = np.repeat(np.arange(len(names)), np.diff(names.starts))
        self._concepts = kb.numbers("names", "concept")  # ascending

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, index: int) -> str:
        """Return a text by its index."""
        text: str = self._texts[index].as_py()
        return text

    def take(self, indices: Rows) -> list[str]:
        """Return texts by their indices."""
        texts: list[str] = self._texts.take(indices).to_pylist()
        return texts

    def of_concept(self, concept: int) -> Rows:
        """Return the indices of the names of a concept, given by its row."""
        start, stop = np.searchsorted(self._concepts, [concept, concept + 1])
        indices: Rows = np.unique(self.of_row[start:stop])
        return indices[indices >= 0]


@dataclass(frozen=True, slots=True)
class MentionExample:
    """A mention, the rows of its gold concepts, and the indices of their names."""

    text: str
    concepts: tuple[int, ...]
    gold: frozenset[int]


@dataclass(slots=True)
class MentionExampleCounts:
    """Numbers of mentions, by what they were used for."""

    n_mentions: int = 0
    n_unknown: int = 0
    """Mentions of concepts that the store does not have."""
    n_empty: int = 0
    """Mentions of whitespace only."""
    n_nameless: int = 0
    """Mentions without a name to learn: none at all, or only themselves."""
    n_repeated: int = 0
    """Mentions with the text and concepts of an earlier one, which are used once."""
    n_examples: int = 0


@dataclass(frozen=True, slots=True)
class FinetuneData:
    """The training examples of a store, in the order of the mentions."""

    kb: KnowledgeBase
    names: NameTable
    examples: tuple[MentionExample, ...]
    counts: MentionExampleCounts

    def __len__(self) -> int:
        return len(self.examples)

    def fingerprint(self) -> str:
        """Compute a hash of the examples."""
        plain = [(item.text, item.concepts, sorted(item.gold)) for item in self.examples]
        return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def make_examples(
    kb: KnowledgeBase,
    encoder: TextEncoder,
    mentions: Sequence[LabelledMention],
    config: FinetuneConfig,
) -> FinetuneData:
    """Look up the gold concepts of mentions in the store; unusable mentions are counted.

    Args:
        kb: Knowledge base of the concepts.
        encoder: Encoder, which prepares the texts.
        mentions: Mentions with gold concepts.
        config: Settings of the training.
    """
    names = NameTable(kb, encoder, config.lexical.languages)
    counts, examples = MentionExampleCounts(n_mentions=len(mentions)), []
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for mention in mentions:
        concepts = kb.rows_of(mention.concepts)
        prepared = encoder.prepare(mention.text)
        if not prepared:
            counts.n_empty += 1
        elif not concepts:
            counts.n_unknown += 1
        elif config.distinct and (prepared, concepts) in seen:
            counts.n_repeated += 1
        else:
            seen.add((prepared, concepts))
            gold = {int(text) for concept in concepts for text in names.of_concept(concept)}
            if config.exclude_own_mention:
                gold -= equal_texts(names, mention.text, gold)
            if gold or config.loss != "marginal":
                examples.append(MentionExample(mention.text, concepts, frozenset(gold)))
            else:
                counts.n_nameless += 1
    counts.n_examples = len(examples)
    if not examples:
        raise ConfigError(
            f"mentions: none of {counts.n_mentions} can be learned from: {counts.n_unknown} of "
            f"concepts that {kb.folder} does not have, {counts.n_nameless} without a name to "
            f"learn, {counts.n_empty} empty; give mentions of this knowledge base's concepts"
        )
    return FinetuneData(kb, names, tuple(examples), counts)


def equal_texts(names: NameTable, mention: str, indices: set[int]) -> set[int]:
    """Return those of some texts that equal the mention, but for case and punctuation.

    Args:
        names: Texts of the store.
        mention: A mention.
        indices: Indices of the texts to compare.
    """
    form = normalise(mention)
    return {index for index in indices if normalise(names.text(index)) == form}


Flags = npt.NDArray[np.bool_]
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


_OF_NAMES, _OF_EXAMPLES = ("examples", "k"), ("examples",)
CANDIDATES = {
    "texts": ArraySpec("int64", _OF_NAMES),
    "lexical": ArraySpec("float32", _OF_NAMES),
    "gold": ArraySpec("bool", _OF_NAMES),
    "gold_found": ArraySpec("bool", _OF_EXAMPLES),
}
VECTORS = {"vectors": ArraySpec("float16", ("names", "width"))}


def path_of(folder: Path, epoch: int) -> Path:
    """Return the folder of the candidates, or vectors, of an epoch.

    Args:
        folder: Folder of those of all epochs.
        epoch: Number of the epoch.

    Returns:
        The path of the folder.
    """
    return folder / f"epoch-{epoch:04d}"


def save_epoch(folder: Path, epoch: int, arrays: Arrays) -> None:
    """Write the arrays of an epoch atomically.

    Args:
        folder: Folder of those of all epochs.
        epoch: Number of the epoch.
        arrays: The arrays by name.
    """
    with new_folder(path_of(folder, epoch), overwrite=True) as work:
        save_arrays(work, arrays)


def load_epoch(folder: Path, epoch: int, specs: Mapping[str, ArraySpec], **sizes: int) -> Arrays:
    """Load the arrays of an epoch.

    Args:
        folder: Folder of those of all epochs.
        epoch: Number of the epoch.
        specs: Type and shape of each array.
        sizes: Sizes that are known, such as the number of examples.

    Returns:
        The arrays by name.

    Raises:
        StoreError: They are missing, damaged, or of other mentions.
    """
    path = path_of(folder, epoch)
    try:
        return open_arrays(path, specs, mode="r", **sizes)
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path}: missing, damaged or of other mentions ({error}); start the run anew"
        ) from error


class EpochCandidates(NamedTuple):
    """The candidates of all examples in one epoch."""

    texts: Rows  # (examples, k): indices of names, padded with -1
    lexical: Scores  # (examples, k): lexical scores; 0 if unknown
    gold: Flags  # (examples, k)
    gold_found: Flags  # (examples,): a gold name was found, not added

    def save(self, folder: Path, epoch: int) -> None:
        """Write the candidates of an epoch.

        Args:
            folder: Folder of the candidates of all epochs.
            epoch: Number of the epoch.
        """
        save_epoch(folder, epoch, self._asdict())

    @classmethod
    def load(cls, folder: Path, epoch: int, n_examples: int) -> EpochCandidates:
        """Load the candidates of an epoch.

        Args:
            folder: Folder of the candidates of all epochs.
            epoch: Number of the epoch.
            n_examples: The number of mentions.

        Returns:
            The candidates.
        """
        return cls(**load_epoch(folder, epoch, CANDIDATES, examples=n_examples))


def encode_texts(
    encoder: TextEncoder,
    config: FinetuneConfig,
    texts: Sequence[str],
    prompt_name: str = "document",
) -> Vectors:
    """Encode texts with the current weights of an encoder.

    Args:
        encoder: The encoder in training.
        config: Similarity, batch size and precision.
        texts: Names or mentions.
        prompt_name: ``query`` for mentions, ``document`` for names.

    Returns:
        One vector for each text: (texts, dim).
    """
    return encoder.encode(
        texts,
        prompt_name=prompt_name,
        batch_size=config.encode_batch,
        precision=config.training.precision,
        normalize=config.marginal.similarity == "cosine",
    )


class CandidateFinder:
    """Finds the candidates of all examples; the lexical search is done once.

    Args:
        data: Mentions with gold names.
        lexical: Lexical search of the store.
        encoder: Encoder in training, for candidates by dense search.
        config: Settings of the training.
    """

    def __init__(
        self,
        data: FinetuneData,
        lexical: LexicalIndex,
        encoder: TextEncoder,
        config: FinetuneConfig,
    ) -> None:
        self.data, self.config = data, config
        self._lexical, self._encoder = lexical, encoder
        self._mentions = [example.text for example in data.examples]
        n_names = max(config.reach, config.k)
        rows = lexical.search(self._mentions, n_names).rows
        indices = np.where(rows >= 0, data.names.of_row[rows], -1)
        self._lexical_names = [distinct(line) for line in indices.tolist()]
        self._withheld: list[set[int]] = [
            equal_texts(data.names, mention, set(line)) if config.exclude_own_mention else set()
            for mention, line in zip(self._mentions, self._lexical_names, strict=True)
        ]

    def find(self, last: EpochCandidates | None) -> EpochCandidates:
        """Find candidates with the current encoder; ``last`` are those of the previous epoch."""
        n_more = max(map(len, self._withheld), default=0)
        by_encoder = self.nearest(self.pool(last), self.config.k + n_more)
        chosen = []
        found_by_both = zip(by_encoder.tolist(), self._lexical_names, self._withheld, strict=True)
        for nearest, lexical, withheld in found_by_both:
            # half from the lexical search, the rest from the encoder, then lexical ones again
            first = [name for name in lexical if name not in withheld]
            line = [*first[: self.config.k // 2], *nearest, *first]
            kept = (name for name in distinct(line) if name not in withheld)
            chosen.append(list(kept)[: self.config.k])
        gold = [example.gold for example in self.data.examples]
        pairs = zip(gold, chosen, strict=True)
        found = np.array([not names.isdisjoint(line) for names, line in pairs])
        if self.config.missing_gold == "add":
            self._add_gold(chosen, np.flatnonzero(~found).tolist())
        texts = pad_rows(chosen, self.config.k)
        lines = zip(gold, texts.tolist(), strict=True)
        flags = np.array([[text in names for text in line] for names, line in lines])
        return EpochCandidates(texts, self._score(self._mentions, texts), flags, found)

    def pool(self, last: EpochCandidates | None) -> Rows:
        """Return the names that the encoder searches, ascending."""
        everything = np.arange(len(self.data.names))
        if self.config.refresh == "full" or (last is None and self.config.first_full):
            return everything
        reachable = np.zeros(len(everything), np.bool_)
        for example, line in zip(self.data.examples, self._lexical_names, strict=True):
            reachable[[*example.gold, *line]] = True
        if last is not None:
            reachable[last.texts[last.texts >= 0]] = True
        return np.flatnonzero(reachable)

    def nearest(self, pool: Rows, k: int) -> Rows:
        """Return the k names of a pool nearest to each mention, best first: (examples, k).

        Args:
            pool: Indices of names.
            k: Number of names of each mention.
        """
        vectors = encode_texts(self._encoder, self.config, self.data.names.take(pool))
        queries = encode_texts(self._encoder, self.config, self._mentions, "query")
        table = VectorTable("float32", vectors, None)
        hits = ExactSearch(table, table.largest_norm()).search(queries, k)
        return np.where(hits.rows >= 0, pool[hits.rows], -1)

    def _add_gold(self, chosen: list[list[int]], missing: Sequence[int]) -> None:
        """Append the gold name most similar to the mention, replacing the last if necessary."""
        if not missing:
            return
        golds = [sorted(self.data.examples[k].gold) for k in missing]
        indices = pad_rows(golds)
        scores = self._score([self._mentions[k] for k in missing], indices)
        best = np.where(indices >= 0, scores, -np.inf)
        for k, line, row in zip(missing, best, golds, strict=True):
            # ties go to the first
            chosen[k] = [*chosen[k][: self.config.k - 1], row[int(line.argmax())]]

    def _score(self, mentions: Sequence[str], indices: Rows) -> Scores:
        """Return the lexical scores of names; a name that is not indexed scores 0."""
        rows = np.where(indices >= 0, self.data.names.first_rows[indices], -1)
        scores = self._lexical.score(mentions, rows)
        return np.where(np.isfinite(scores), scores, 0).astype(np.float32)


def distinct(indices: Iterable[int]) -> list[int]:
    """Return the distinct indices in their order, without -1."""
    return list(dict.fromkeys(index for index in indices if index >= 0))


@dataclass(frozen=True, slots=True)
class MentionBatch:
    """A batch of mentions and names to encode, and the arrays that their loss reads."""

    texts: tuple[str, ...]
    """The mentions, then names."""
    n_queries: int
    """The number of mentions."""
    arrays: Mapping[str, Any]

    def __len__(self) -> int:
        return self.n_queries


class CandidateBatches:
    """Batches that can resume at any position: an epoch's candidates are kept in ``folder``.

    Args:
        finder: Finds the candidates of an epoch.
        folder: Folder that they are kept in.
        order: Order of the examples in each epoch.
    """

    def __init__(self, finder: CandidateFinder, folder: Path, order: EpochOrder) -> None:
        self.finder, self.folder, self.order = finder, folder, order

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[MentionBatch]:
        """Yield the batches of an epoch from a position on."""
        n_examples = len(self.finder.data)
        if position:
            candidates = EpochCandidates.load(self.folder, epoch, n_examples)
        else:  # every process finds the same
            last = EpochCandidates.load(self.folder, epoch - 1, n_examples) if epoch else None
            candidates = self.finder.find(last)
            if self.order.shard.rank == 0:
                candidates.save(self.folder, epoch)
        data = self.finder.data
        for rows in self.order.batches(epoch, position):
            texts = candidates.texts[rows]
            indices = np.unique(texts[texts >= 0])
            mentions = [data.examples[row].text for row in rows.tolist()]
            arrays = {
                "names": np.where(texts >= 0, np.searchsorted(indices, texts), -1),
                "lexical": candidates.lexical[rows],
                "gold": candidates.gold[rows],
                "gold_found": candidates.gold_found[rows],
            }
            yield MentionBatch((*mentions, *data.names.take(indices)), len(mentions), arrays)


class NameBank:
    """The texts of a bank, and the concepts that each of them names.

    Args:
        data: Mentions with gold names.
        encoder: Encoder in training.
        config: Settings of the training.
    """

    def __init__(self, data: FinetuneData, encoder: TextEncoder, config: FinetuneConfig) -> None:
        self.data, self.config, self._encoder = data, config, encoder
        names, rows = data.names, np.arange(len(data.names))
        if config.refresh == "reachable":
            lexical = LexicalIndex.build(data.kb, config.lexical)
            found = lexical.search([example.text for example in data.examples], config.reach).rows
            near = names.of_row[found[found >= 0]]
            gold = [name for example in data.examples for name in example.gold]
            rows = np.unique(np.concatenate((near[near >= 0], np.array(gold, np.int64))))
        named: dict[int, set[int]] = {row: set() for row in rows.tolist()}
        concepts = data.kb.numbers("names", "concept").tolist()
        for row, concept in zip(names.of_row.tolist(), concepts, strict=True):
            if row in named:
                named[row].add(concept)
        concepts_of = dict(zip(names.take(rows), named.values(), strict=True))
        for example in data.examples:
            concepts_of.setdefault(encoder.prepare(example.text), set()).update(example.concepts)
        self.texts = tuple(concepts_of)
        self._concepts = tuple(concepts_of.values())
        self._of_concept: defaultdict[int, list[int]] = defaultdict(list)
        self._of_form: defaultdict[str, list[int]] = defaultdict(list)
        for row, (text, own) in enumerate(concepts_of.items()):
            self._of_form[normalise(text)].append(row)
            for concept in own:
                self._of_concept[concept].append(row)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def device(self) -> torch.device:
        """Device of the encoder."""
        return self._encoder.device

    def encode(self) -> npt.NDArray[np.float16]:
        """Compute the vectors of all texts with the current encoder."""
        return encode_texts(self._encoder, self.config, self.texts).astype(np.float16)

    def sample(self, epoch: int, indices: Sequence[int]) -> Rows:
        """Sample correct names of some examples, to be encoded again: distinct rows, ascending.

        Args:
            epoch: Number of the epoch.
            indices: Indices of the examples.
        """
        rows: set[int] = set()
        for index in indices:
            example = self.data.examples[index]
            right = self._right(example.text, example.concepts)
            rng = np.random.default_rng([self.config.training.seed, epoch, index])
            n = min(self.config.partners, len(right))
            rows.update(rng.choice(right, n, replace=False).tolist() if n else ())
        return np.array(sorted(rows), np.int64)

    def batch(self, vectors: Tensor, epoch: int, indices: Sequence[int]) -> MentionBatch:
        """Assemble a batch of examples, and of names of the bank that are encoded again.

        The arrays have the ``bank`` of vectors (names, width), the rows of those names in it
        (``fresh``) and, for each text and name, whether it is ``gold``, or the text itself
        (``withheld``).

        Args:
            vectors: Cached vectors of the bank: (names, width).
            epoch: Number of the epoch, which decides about sampled names.
            indices: Indices of the examples.
        """
        chosen = [self.data.examples[index] for index in indices]
        fresh = self.sample(epoch, indices)
        queries = [(example.text, example.concepts) for example in chosen]
        queries += [(self.texts[row], tuple(self._concepts[row])) for row in fresh.tolist()]
        gold = np.zeros((len(queries), len(self)), np.bool_)
        withheld = np.zeros_like(gold)
        for line, (text, concepts) in enumerate(queries):
            gold[line, self._right(text, concepts)] = True
            withheld[line, self._itself(text)] = True
        texts = tuple(text for text, _ in queries)
        arrays = {"bank": vectors, "fresh": fresh, "gold": gold, "withheld": withheld}
        return MentionBatch(texts, len(chosen), arrays)

    def _itself(self, text: str) -> list[int]:
        return self._of_form.get(normalise(text), [])

    def _right(self, text: str, concepts: Sequence[int]) -> list[int]:
        """Return the rows that name any of some concepts and are not the text itself."""
        rows = {row for concept in concepts for row in self._of_concept.get(concept, ())}
        return sorted(rows.difference(self._itself(text)))


class BankBatches:
    """Batches that can resume at any position: the vectors of an epoch are kept in ``folder``.

    A batch has the mentions of all processes, because each is taught with the names of all.

    Args:
        bank: Texts of the bank.
        folder: Folder that the vectors of an epoch are kept in.
        order: Order of the examples in each epoch.
    """

    def __init__(self, bank: NameBank, folder: Path, order: EpochOrder) -> None:
        self.bank, self.folder, self.order = bank, folder, order

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[MentionBatch]:
        """Yield the batches of an epoch from a position on."""
        if not position:
            vectors = self.bank.encode()
            if self.order.shard.rank == 0:
                save_epoch(self.folder, epoch, {"vectors": vectors})
        else:
            vectors = load_epoch(self.folder, epoch, VECTORS, names=len(self.bank))["vectors"]
        bank = torch.from_numpy(vectors.astype(np.float32)).to(self.bank.device)
        for indices in self.order.together(epoch, position):
            yield self.bank.batch(bank, epoch, indices.tolist())


class MentionPairs(TextPairs):
    """Pairs of every mention and a random partner: a mention or name of the same concept.

    A partner is sampled anew each epoch. It differs from the mention by more than case and
    punctuation; mentions without a partner are dropped.

    Args:
        data: Mentions with gold names.
        seed: Decides which partners are sampled.
    """

    def __init__(self, data: FinetuneData, seed: int) -> None:
        super().__init__(data.kb)
        self.seed, self._group = seed, _group_concepts(data)
        mentions: defaultdict[int, set[str]] = defaultdict(set)
        for example in data.examples:
            for concept in example.concepts:
                mentions[concept].add(example.text)
        self.partners: dict[tuple[int, ...], list[str]] = {}
        """The mentions and names of concepts, in a fixed order."""
        for concepts in {example.concepts for example in data.examples}:
            rows = {int(row) for concept in concepts for row in data.names.of_concept(concept)}
            names = {data.names.text(row) for row in rows}
            self.partners[concepts] = sorted(names.union(*(mentions[row] for row in concepts)))
        self.paired = [
            example
            for example in data.examples
            if {*map(normalise, self.partners[example.concepts])} != {normalise(example.text)}
        ]
        data.counts.n_nameless += len(data) - len(self.paired)
        data.counts.n_examples = len(self.paired)
        if not self.paired:
            raise ConfigError(
                f"mentions: none of {len(data)} has a partner: another mention, or a name, of "
                "the same concept; give more mentions or a knowledge base with more names"
            )

    def __len__(self) -> int:
        return len(self.paired)

    def pair(self, epoch: int, index: int) -> tuple[str, str, int]:
        """Return a mention and its partner in an epoch, and the number of their concepts."""
        example = self.paired[index]
        partners, form = self.partners[example.concepts], normalise(example.text)
        first = int(np.random.default_rng([self.seed, epoch, index]).integers(len(partners)))
        rotated = (*partners[first:], *partners[:first])
        # one that equals the mention is replaced by the next
        partner = next(text for text in rotated if normalise(text) != form)
        return example.text, partner, self._group[example.concepts[0]]


def _group_concepts(data: FinetuneData) -> dict[int, int]:
    """Group concepts that share an ambiguous mention (union-find); return the group of each.

    Otherwise two mentions of one concept would be negatives if one of them is ambiguous.
    """
    group: dict[int, int] = {}

    def root(concept: int) -> int:
        while group.setdefault(concept, concept) != concept:
            concept = group[concept]
        return concept

    for example in data.examples:
        first, *others = sorted({root(concept) for concept in example.concepts})
        for other in others:
            group[other] = first
    return {concept: root(concept) for concept in list(group)}


def _make_model(
    encoder: TextEncoder, data: FinetuneData, config: FinetuneConfig, run: Path
) -> tuple[ObjectiveModel, BatchSource[Any]]:
    """Build model and batches of the configured loss; the state of an epoch is kept in ``run``."""
    made: Mapping[str, Callable[[], Objective]] = {
        "marginal": partial(SynonymMarginal, config.marginal),
        "bank": partial(BankMarginal, config.marginal),
        "contrastive": config.contrastive.build,
    }
    objectives = {config.loss: made[config.loss]()}
    pairs = MentionPairs(data, config.training.seed) if config.loss == "contrastive" else None
    limit = config.training.device_batch_size
    reader = EncoderReader(encoder, objectives, limit, by_length=pairs is None)
    model, n_examples = ObjectiveModel(reader, objectives), len(data if pairs is None else pairs)
    order = EpochOrder.for_training(n_examples, config.training, divisible=model.divisible)
    if pairs is not None:
        return model, OrderedBatches(order, pairs.batch, together=True)
    if config.loss == "bank":
        return model, BankBatches(NameBank(data, encoder, config), run / "bank", order)
    lexical = LexicalIndex.build(data.kb, config.lexical)
    finder = CandidateFinder(data, lexical, encoder, config)
    return model, CandidateBatches(finder, run / "candidates", order)


def finetune_encoder(
    kb: KnowledgeBase,
    encoder: TextEncoder,
    mentions: Sequence[LabelledMention],
    config: FinetuneConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainedLinker:
    """Train an encoder, in place, in the folder ``out``, or resume the run there.

    To resume, give the encoder that the run started from. The encoder is written to
    ``out/encoder``, also if training stops before the last step; with the marginal loss, the
    learned lexical weight is written beside it.

    Args:
        kb: The knowledge base whose names are learned.
        encoder: The encoder to start from; its weights are changed.
        mentions: Mentions with their correct concepts.
        config: Loss, candidates and training.
        out: Folder of the run.
        resume: Continue the run in ``out``.
        progress: Where progress is shown; None shows none.

    Returns:
        The folder of the encoder, counts of mentions, and the learned lexical weight.

    Raises:
        ConfigError: No mention can be learned from.
    """
    progress, run, processes = progress or Progress(), Path(out), join_processes()
    progress.start("mentions")
    data = make_examples(kb, encoder, mentions, config)
    base_model = str(encoder.folder or encoder.name)
    provenance = {
        "kb": store_fingerprint(kb),
        "encoder": encoder.fingerprint(),
        "mentions": data.fingerprint(),
    }
    described = json.loads(json.dumps(asdict(config)))
    progress.start("lexical candidates")
    model, source = _make_model(encoder, data, config, run)
    task = model.task(source, described=described, provenance=provenance)
    trained = train(task, config.training, run, resume=resume, progress=progress)
    if trained.finished:
        shutil.rmtree(run / "bank", ignore_errors=True)  # large, and no longer needed
    folder, head = run / "encoder", model.objectives[config.loss].head
    weight = head().item() if isinstance(head, LexicalWeight) else None
    if processes.is_main_process:
        card = ModelCard(
            base_model=base_model,
            method=f"Fine-tuned on labelled mentions with the {config.loss} loss",
            data=asdict(data.counts),
            metrics=trained.metrics(),
            sources=tuple(kb.manifest["sources"]),
            languages=kb.languages,
        )
        with new_folder(folder, overwrite=True) as work:
            encoder.save_pretrained(work)
            write_card(work, card, encoder.settings)
            earlier, similarity = folder / MODEL, config.marginal.similarity
            if weight is not None:
                learned = {key: described[key] for key in ("marginal", "lexical")}
                learned["provenance"] = provenance
                write_weights(work, weight, learned, similarity=similarity)
            elif (
                (folder / WEIGHTS.file).exists()
                and earlier.exists()
                and filecmp.cmp(work / MODEL, earlier, shallow=False)
            ):  # the run is resumed after its end: the fitted weight is of this encoder
                shutil.copy2(folder / WEIGHTS.file, work)
    encoder.folder = folder
    report = {"mentions": asdict(data.counts), "lexical_weight": weight}
    return TrainedLinker(run, folder, trained, report)


def train_by_recipe(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Fine-tune an encoder into ``out/encoder``, with its lexical weight where there is one.

    The weight is fitted on ``data.dev``, else learned by the loss, or there is none.

    Args:
        recipe: Encoder and settings.
        data: Labelled mentions and the folder of the run.

    Returns:
        The folder of the encoder, and the metrics.

    Raises:
        ConfigError: No lexical weight can be fitted on the held-out mentions.
    """
    config: FinetuneConfig = recipe.config
    if recipe.encoder is None:
        raise ConfigError(f"recipe {recipe.name}: missing key 'encoder.name'")
    if data.dev is not None:
        if config.similarity != "cosine":
            raise ConfigError(
                "dev: the lexical weight fitted on it stands beside cosines, and this recipe "
                f"trains for {config.similarity}; leave --dev out"
            )
        check_not_names(data.kb, [query for query in data.dev if query.gold])
    processes = join_processes()  # so that each loads the encoder onto its own device
    encoder = recipe.encoder.load()
    mentions = label_mentions(data.train, data.kb)
    result = finetune_encoder(
        data.kb, encoder, mentions, config, data.out, resume=data.resume, progress=data.progress
    )
    if data.dev is None or not result.training.finished or not processes.is_main_process:
        return result.outcome("encoder")
    data.progress.start("lexical weight")
    index = data.out / "index-dev"
    index_config = IndexConfig(lexical=config.lexical)
    build_index(data.kb, index, encoder, index_config, overwrite=True, progress=data.progress)
    search = open_index(data.kb, index, LinkerConfig(lexical_weight=0.5)).search
    fitted = fit_lexical_weight(data.kb, search, data.dev)
    write_weights(result.model, fitted.beside_dense, {"fitted": fitted.to_json()})
    shutil.rmtree(index)
    return result.outcome("encoder", lexical_weight=fitted.beside_dense, dev=fitted.to_json())


AVERAGE = ArtifactKind(
    format="biograft-averaged-encoder",
    version=1,
    called="averaged encoder",
    remedy="average the encoders again",
    file="biograft_average.json",
)


def average_encoders(
    folders: Sequence[str | Path], out: str | Path, *, overwrite: bool = False
) -> dict[str, Any]:
    """Write the encoder whose weights are the mean of those of several; return its facts.

    All must have the same tokenizer, settings and sizes: the runs of one recipe with several
    seeds. A lexical weight, where all encoders bring one, is averaged, too.

    Args:
        folders: Folders of the encoders, two at least.
        out: Folder of the average.
        overwrite: Replace an earlier average.

    Returns:
        The folder, the number and fingerprints of the encoders, and the lexical weight.

    Raises:
        ConfigError: There are fewer than two encoders, or they are not alike.
    """
    if len(folders) < 2:
        raise ConfigError(f"averaging: expected at least two encoders, found {len(folders)}")
    first = TextEncoder.from_pretrained(Path(folders[0]))
    sums = {key: value.double() for key, value in first.network.state_dict().items()}
    fingerprints = [first.fingerprint()]
    for folder in folders[1:]:
        other = TextEncoder.from_pretrained(Path(folder))
        _check_alike(first, other)
        fingerprints.append(other.fingerprint())
        for key, value in other.network.state_dict().items():
            sums[key] += value.double()
    first.network.load_state_dict({key: value / len(folders) for key, value in sums.items()})
    weighted = [Path(folder) for folder in folders if (Path(folder) / WEIGHTS.file).exists()]
    lexical, similarity = [], ""
    if len(weighted) == len(folders):
        similarity = str(WEIGHTS.read(weighted[0]).get("similarity"))
        for folder in weighted:
            weights = read_weights(folder, similarity) or {}
            lexical.append(weights["lexical"] / weights["dense"])
    facts: dict[str, Any] = {"n_encoders": len(folders), "encoders": fingerprints}
    with new_folder(Path(out), overwrite=overwrite) as work, torch.no_grad():
        first.save_pretrained(work, overwrite=True)
        if lexical:
            mean = facts["lexical_weight"] = sum(lexical) / len(lexical)
            write_weights(work, mean, {"averaged": lexical}, similarity=similarity)
        AVERAGE.write(work, facts)
    return {"checkpoint": str(out), **facts}


def _check_alike(first: TextEncoder, other: TextEncoder) -> None:
    """Refuse encoders that differ in more than the values of their weights."""
    ours, theirs = (
        {key: value.shape for key, value in encoder.network.state_dict().items()}
        for encoder in (first, other)
    )
    if first.settings != other.settings:
        what = f"their settings differ: {first.settings} and {other.settings}"
    elif describe_tokenizer(first.tokenizer) != describe_tokenizer(other.tokenizer):
        what = "their tokenizers differ"
    elif ours != theirs:
        what = "their weights have other names or shapes"
    else:
        return
    raise ConfigError(
        f"{other.name}: cannot be averaged with {first.name}, {what}; average runs of one recipe "
        "that differ in the seed"
    )

"""A memory bank of name vectors: fine-tuning with all names as candidates.

The main cost of fine-tuning is to encode the candidates of every mention. Here only mentions, and
a few correct names of each, are encoded in a step. The vectors of all other names are computed at
the start of the epoch, so that a step costs a tenth and every name is a negative. The mentions
are names of the bank, too, but not for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from biograft.kb.names import normalise
from biograft.linking.candidates import Rows
from biograft.linking.dense.build import encode
from biograft.linking.dense.config import DenseConfig
from biograft.linking.lexical.index import LexicalIndex
from biograft.models import TextEncoder
from biograft.training.linkers.finetuning.candidates import (
    EpochOrder,
    Flags,
    load_vectors,
    save_vectors,
)
from biograft.training.linkers.finetuning.config import FinetuneConfig
from biograft.training.linkers.finetuning.training_data import FinetuneData


@dataclass(frozen=True, slots=True)
class BankBatch:
    """A batch of texts, with the correct names of the bank for each."""

    texts: tuple[str, ...]
    """The mentions of all processes, then names of the bank that are encoded again."""
    n_mentions: int
    """The mentions of this process."""
    fresh: Rows  # (texts - mentions,): rows of those names in the bank
    bank: Tensor  # (names, width): vectors from the start of the epoch
    gold: Flags  # (texts, names)
    withheld: Flags  # (texts, names): the text itself

    def __len__(self) -> int:
        return self.n_mentions


class NameBank:
    """The texts of a bank, and the concepts that each of them names."""

    def __init__(self, data: FinetuneData, encoder: TextEncoder, config: FinetuneConfig) -> None:
        self.data, self.config, self._encoder = data, config, encoder
        concepts_of = _named_concepts(data, _reachable(data, config))
        for example in data.examples:
            concepts_of.setdefault(encoder.prepare(example.text), set()).update(example.concepts)
        self.texts = tuple(concepts_of)
        self._concepts = tuple(concepts_of.values())
        self._of_concept: dict[int, list[int]] = {}
        self._of_form: dict[str, list[int]] = {}
        for row, (text, concepts) in enumerate(concepts_of.items()):
            self._of_form.setdefault(normalise(text), []).append(row)
            for concept in concepts:
                self._of_concept.setdefault(concept, []).append(row)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def device(self) -> torch.device:
        """Device of the encoder."""
        return self._encoder.device

    def encode(self) -> npt.NDArray[np.float16]:
        """Compute the vectors of all texts with the current encoder."""
        config = DenseConfig(
            similarity=self.config.marginal.similarity,
            batch_size=self.config.encode_batch,
            precision=self.config.training.precision,
        )
        return encode(self._encoder, config, self.texts).astype(np.float16)

    def sample(self, epoch: int, indices: Sequence[int]) -> Rows:
        """Sample correct names of some examples, to be encoded again: distinct rows, ascending."""
        rows: set[int] = set()
        for index in indices:
            example = self.data.examples[index]
            right = self._right(example.text, example.concepts)
            rng = np.random.default_rng([self.config.training.seed, epoch, index])
            n = min(self.config.partners, len(right))
            rows.update(rng.choice(right, n, replace=False).tolist() if n else ())
        return np.array(sorted(rows), np.int64)

    def batch(
        self, vectors: Tensor, epoch: int, indices: Sequence[int], n_own: int | None = None
    ) -> BankBatch:
        """Assemble a batch of examples, of which ``n_own`` (all) belong to this process."""
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
        n_mentions = len(chosen) if n_own is None else n_own
        return BankBatch(texts, n_mentions, fresh, vectors, gold, withheld)

    def _itself(self, text: str) -> list[int]:
        return self._of_form.get(normalise(text), [])

    def _right(self, text: str, concepts: Sequence[int]) -> list[int]:
        """Return the rows that name any of some concepts and are not the text itself."""
        rows = {row for concept in concepts for row in self._of_concept.get(concept, ())}
        return sorted(rows.difference(self._itself(text)))


class BankBatches:
    """Batches that can resume at any position: the vectors of an epoch are kept in ``folder``.

    A batch has the mentions of all processes, because each is taught with the names of all.
    """

    def __init__(self, bank: NameBank, folder: Path, order: EpochOrder) -> None:
        self.bank, self.folder, self.order = bank, folder, order

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[BankBatch]:
        """Yield the batches of an epoch from a position on."""
        if not position:
            vectors = self.bank.encode()
            if self.order.shard.rank == 0:
                save_vectors(self.folder, epoch, vectors)
        else:
            vectors = load_vectors(self.folder, epoch, len(self.bank))
        bank = torch.from_numpy(vectors.astype(np.float32)).to(self.bank.device)
        for indices in self.order.together(epoch, position):
            n_own = len(indices) // self.order.shard.world
            yield self.bank.batch(bank, epoch, indices.tolist(), n_own)


def _reachable(data: FinetuneData, config: FinetuneConfig) -> Rows:
    """Return the names of the store that the bank keeps, ascending."""
    if config.refresh == "full":
        return np.arange(len(data.names))
    lexical = LexicalIndex.build(data.kb, config.lexical)
    rows = lexical.search([example.text for example in data.examples], config.reach).rows
    near = data.names.of_row[rows[rows >= 0]]
    gold = [name for example in data.examples for name in example.gold]
    return np.unique(np.concatenate((near[near >= 0], np.array(gold, np.int64))))


def _named_concepts(data: FinetuneData, indices: Rows) -> dict[str, set[int]]:
    """Return the concepts that each of some texts of the store names."""
    concepts = data.kb.table("names").column("concept").to_numpy()
    named: dict[int, set[int]] = {index: set() for index in indices.tolist()}
    for index, concept in zip(data.names.of_row.tolist(), concepts.tolist(), strict=True):
        if index in named:
            named[index].add(concept)
    texts = data.names.take(indices)
    return dict(zip(texts, named.values(), strict=True))

"""All names at once: a bank of vectors that a mention is told apart from.

Encoding the candidates of every mention is what fine-tuning costs. Here only mentions, and a few
right names of each, go through the encoder; the vectors of all other names are kept from the
start of the epoch, so that a step costs a tenth and every name is a wrong answer to learn from.
The mentions are names of the bank too, of the concepts they mean, but never of themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from biograft.linking.candidates import Rows
from biograft.linking.dense.build import encode
from biograft.linking.dense.config import DenseConfig
from biograft.linking.finetuning.candidates import EpochOrder, Flags, load_vectors, save_vectors
from biograft.linking.finetuning.config import FinetuneConfig
from biograft.linking.finetuning.training_data import FinetuneData
from biograft.linking.lexical.index import LexicalIndex
from biograft.nn import TextEncoder
from biograft.text import normalise


@dataclass(frozen=True, slots=True)
class BankBatch:
    """Texts that are asked, and the names of the bank: which are right for each of them."""

    texts: tuple[str, ...]
    """The mentions, then names of the bank to be encoded afresh."""
    n_mentions: int
    fresh: Rows  # (texts - n_mentions,): where those names stand in the bank
    bank: Tensor  # (names, width): as they were at the start of the epoch
    gold: Flags  # (texts, names)
    withheld: Flags  # (texts, names): the text itself

    def __len__(self) -> int:
        return self.n_mentions


class NameBank:
    """The texts of a bank, and which concepts each of them names."""

    def __init__(self, data: FinetuneData, encoder: TextEncoder, config: FinetuneConfig) -> None:
        self.data, self.config, self._encoder = data, config, encoder
        named = _named_concepts(data, _reachable(data, config))
        for example in data.examples:
            named.setdefault(encoder.prepare(example.text), set()).update(example.concepts)
        self.texts = tuple(named)
        self._concepts = tuple(named.values())
        self._of_concept: dict[int, list[int]] = {}
        self._of_form: dict[str, list[int]] = {}
        for row, (text, concepts) in enumerate(named.items()):
            self._of_form.setdefault(normalise(text), []).append(row)
            for concept in concepts:
                self._of_concept.setdefault(concept, []).append(row)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def device(self) -> torch.device:
        """Where the encoder computes."""
        return self._encoder.device

    def encode(self) -> npt.NDArray[np.float16]:
        """Give the vectors of all texts by the encoder as it stands."""
        config = DenseConfig(
            similarity=self.config.marginal.similarity,
            batch_size=self.config.encode_batch,
            precision=self.config.training.precision,
        )
        return encode(self._encoder, config, self.texts).astype(np.float16)

    def rng(self, epoch: int, places: Sequence[int]) -> Rows:
        """Draw right names of some data, to be encoded afresh: rows, each once."""
        drawn: set[int] = set()
        for place in places:
            example = self.data.examples[place]
            right = self._right(example.text, example.concepts)
            random = np.random.default_rng([self.config.training.seed, epoch, place])
            n = min(self.config.partners, len(right))
            drawn.update(random.choice(right, n, replace=False).tolist() if n else ())
        return np.array(sorted(drawn), np.int64)

    def batch(self, vectors: Tensor, epoch: int, places: Sequence[int]) -> BankBatch:
        """Put together what is asked at once."""
        chosen = [self.data.examples[place] for place in places]
        fresh = self.rng(epoch, places)
        asked = [(example.text, example.concepts) for example in chosen]
        asked += [(self.texts[row], tuple(self._concepts[row])) for row in fresh.tolist()]
        gold = np.zeros((len(asked), len(self)), np.bool_)
        withheld = np.zeros_like(gold)
        for line, (text, concepts) in enumerate(asked):
            gold[line, self._right(text, concepts)] = True
            withheld[line, self._itself(text)] = True
        texts = tuple(text for text, _ in asked)
        return BankBatch(texts, len(chosen), fresh, vectors, gold, withheld)

    def _itself(self, text: str) -> list[int]:
        return self._of_form.get(normalise(text), [])

    def _right(self, text: str, concepts: Sequence[int]) -> list[int]:
        """Give the rows that name any of some concepts and are not the text itself."""
        rows = {row for concept in concepts for row in self._of_concept.get(concept, ())}
        return sorted(rows.difference(self._itself(text)))


class BankBatches:
    """Batches that can be taken up anywhere: each epoch's vectors are kept in ``folder``."""

    def __init__(self, bank: NameBank, folder: Path, order: EpochOrder) -> None:
        self.bank, self.folder, self.order = bank, folder, order

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[BankBatch]:
        """Give the batches of an epoch from a position on."""
        if not position:
            vectors = self.bank.encode()
            if self.order.share.rank == 0:
                save_vectors(self.folder, epoch, vectors)
        else:
            vectors = load_vectors(self.folder, epoch, len(self.bank))
        kept = torch.from_numpy(vectors.astype(np.float32)).to(self.bank.device)
        for places in self.order.batches(epoch, position):
            yield self.bank.batch(kept, epoch, places.tolist())


def _reachable(data: FinetuneData, config: FinetuneConfig) -> Rows:
    """Choose the names of the store that are worth keeping, ascending."""
    if config.refresh == "full":
        return np.arange(len(data.names))
    lexical = LexicalIndex.build(data.kb, config.lexical)
    rows = lexical.search([example.text for example in data.examples], config.reach).rows
    near = data.names.of_row[rows[rows >= 0]]
    gold = [number for example in data.examples for number in example.gold]
    return np.unique(np.concatenate((near[near >= 0], np.array(gold, np.int64))))


def _named_concepts(data: FinetuneData, numbers: Rows) -> dict[str, set[int]]:
    """Say which concepts each of some texts of the store names."""
    concepts = data.kb.table("names").column("concept").to_numpy()
    named: dict[int, set[int]] = {number: set() for number in numbers.tolist()}
    for number, concept in zip(data.names.of_row.tolist(), concepts.tolist(), strict=True):
        if number in named:
            named[number].add(concept)
    texts = data.names.take(numbers)
    return dict(zip(texts, named.values(), strict=True))

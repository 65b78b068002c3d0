"""Training data of fine-tuning: labelled mentions, and the names of a store that are correct.

Names are prepared as the encoder sees them, each distinct text once: names that differ only in
case are one candidate. A text is correct if it names a gold concept, whatever else it names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.names import normalise
from biograft.linking.candidates import Rows
from biograft.linking.dense.build import collect_texts
from biograft.linking.queries import LabelledMention
from biograft.models import TextEncoder
from biograft.training.linkers.finetuning.config import FinetuneConfig


class NameTable:
    """The distinct texts of a store's names, by index."""

    def __init__(self, kb: KnowledgeBase, encoder: TextEncoder, languages: Sequence[str]) -> None:
        names = collect_texts(kb, encoder.prepare, languages)
        self._texts = names.texts
        self.first_rows = names.rows[names.starts[:-1]]
        """The first row of the names table with each text."""
        self.of_row = np.full(kb.n_names, -1, np.int64)
        self.of_row[names.rows] = np.repeat(np.arange(len(names)), np.diff(names.starts))
        self._concepts = kb.table("names").column("concept").to_numpy()  # ascending

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

    def to_json(self) -> dict[str, int]:
        """Return the counts as plain values."""
        return asdict(self)


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
    """Look up the gold concepts of mentions in the store; unusable mentions are counted."""
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
    """Return those of some texts that equal the mention, but for case and punctuation."""
    form = normalise(mention)
    return {index for index in indices if normalise(names.text(index)) == form}

"""Mentions brought together with a store: which of its names are right for each.

Names are taken as the encoder sees them, each distinct text once: names that differ in case only
are one candidate, and a text that names a gold concept is right whatever else it names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Rows
from biograft.linking.dense.build import collect_texts
from biograft.linking.finetuning.config import FinetuneConfig
from biograft.linking.queries import LabelledMention
from biograft.nn import TextEncoder
from biograft.text import normalise


class NameTable:
    """The distinct texts of a store's names, by number."""

    def __init__(self, kb: KnowledgeBase, encoder: TextEncoder, languages: Sequence[str]) -> None:
        pool = collect_texts(kb, encoder.prepare, languages)
        self._texts = pool.texts
        self.first_rows = pool.rows[pool.starts[:-1]]
        """The first row of the table of names that has each text."""
        self.of_row = np.full(kb.n_names, -1, np.int64)
        self.of_row[pool.rows] = np.repeat(np.arange(len(pool)), np.diff(pool.starts))
        self._concepts = kb.table("names").column("concept").to_numpy()  # ascending

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, number: int) -> str:
        """Give a text by its number."""
        text: str = self._texts[number].as_py()
        return text

    def take(self, numbers: Rows) -> list[str]:
        """Give texts by their numbers."""
        texts: list[str] = self._texts.take(numbers).to_pylist()
        return texts

    def of_concept(self, concept: int) -> Rows:
        """Give the numbers of the texts that name a concept, by its row."""
        start, stop = np.searchsorted(self._concepts, [concept, concept + 1])
        numbers: Rows = np.unique(self.of_row[start:stop])
        return numbers[numbers >= 0]


@dataclass(frozen=True, slots=True)
class MentionExample:
    """A mention, the rows of the concepts that it means, and the texts that name them."""

    text: str
    concepts: tuple[int, ...]
    gold: frozenset[int]


@dataclass(slots=True)
class MentionExampleCounts:
    """What became of the mentions."""

    n_mentions: int = 0
    n_unknown: int = 0
    """Mentions of concepts that the store does not have."""
    n_empty: int = 0
    """Mentions of blanks."""
    n_nameless: int = 0
    """Mentions for which there is no name to learn: none at all, or no other than themselves."""
    n_repeated: int = 0
    """Mentions like an earlier one, text and concepts, that are asked once."""
    n_examples: int = 0

    def to_json(self) -> dict[str, int]:
        """Give the counts as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FinetuneData:
    """All mentions that teach something, in the order given."""

    kb: KnowledgeBase
    names: NameTable
    lessons: tuple[MentionExample, ...]
    counts: MentionExampleCounts

    def __len__(self) -> int:
        return len(self.lessons)

    def fingerprint(self) -> str:
        """Hash what is learned from."""
        plain = [(lesson.text, lesson.concepts, sorted(lesson.gold)) for lesson in self.lessons]
        return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def make_examples(
    kb: KnowledgeBase,
    encoder: TextEncoder,
    mentions: Sequence[LabelledMention],
    config: FinetuneConfig,
) -> FinetuneData:
    """Find what the store has of the mentions' concepts; what teaches nothing is counted."""
    names = NameTable(kb, encoder, config.lexical.languages)
    counts, lessons = MentionExampleCounts(n_mentions=len(mentions)), []
    asked: set[tuple[str, tuple[int, ...]]] = set()
    for mention in mentions:
        concepts = kb.rows_of(mention.concepts)
        prepared = encoder.prepare(mention.text)
        if not prepared:
            counts.n_empty += 1
        elif not concepts:
            counts.n_unknown += 1
        elif config.distinct and (prepared, concepts) in asked:
            counts.n_repeated += 1
        else:
            asked.add((prepared, concepts))
            gold = {int(text) for concept in concepts for text in names.of_concept(concept)}
            if config.exclude_own_mention:
                gold -= equal_texts(names, mention.text, gold)
            if gold or config.loss != "marginal":
                lessons.append(MentionExample(mention.text, concepts, frozenset(gold)))
            else:
                counts.n_nameless += 1
    counts.n_examples = len(lessons)
    if not lessons:
        raise ConfigError(
            f"mentions: none of {counts.n_mentions} teaches anything: {counts.n_unknown} of "
            f"concepts that {kb.folder} does not have, {counts.n_nameless} without a name to "
            f"learn, {counts.n_empty} empty; give mentions of this knowledge base's concepts"
        )
    return FinetuneData(kb, names, tuple(lessons), counts)


def equal_texts(names: NameTable, mention: str, numbers: set[int]) -> set[int]:
    """Give those of some texts that are the mention itself, up to case and signs."""
    own = normalise(mention)
    return {number for number in numbers if normalise(names.text(number)) == own}

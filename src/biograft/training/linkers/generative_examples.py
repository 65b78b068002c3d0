"""Training examples of a generative linker: mentions in context, with a name of their concept.

Several names of a concept may be the target. ``similar`` chooses the name with the highest TF-IDF
cosine of character trigrams with the mention. Ties go to the shortest name, then to the first one
in the store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from biograft.kb import KnowledgeBase
from biograft.linking.forms import MentionForms
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.names import Ints, Selection
from biograft.linking.generative.ranker import make_input
from biograft.linking.lexical import LexicalConfig, LexicalIndex
from biograft.linking.queries import GoldQuery, overlapping
from biograft.training.objectives.name_examples import NameExample
from biograft.training.pretraining.stream_configs import NameTemplatesConfig
from biograft.training.pretraining.templates import NameTemplates

PLAIN = LexicalConfig(steps="unicode,case,hyphens", synonym_substitution=False)
"""Names are compared by their characters, but for case and punctuation."""
_CHUNK = 256
Floats = npt.NDArray[np.float32]


class TargetChooser:
    """Chooses the target among the names of the correct concepts by a rule."""

    def __init__(self, kb: KnowledgeBase, selected: Selection, rule: str, seed: int) -> None:
        self._selected, self._rule, self._seed = selected, rule, seed
        self._lengths = selected.lengths
        self._index = LexicalIndex.build(kb, PLAIN) if rule == "similar" else None
        self._rows = np.flatnonzero(selected.numbers >= 0)  # ascending by concept, as in the store
        n_concepts = int(selected.concepts.max(initial=-1)) + 1
        self._ends = np.searchsorted(selected.concepts[self._rows], np.arange(n_concepts), "right")

    def names_of(self, concepts: Sequence[int]) -> Ints:
        """Return the rows of the names of some concepts that may be generated, ascending."""
        n = len(self._ends)
        parts = [
            self._rows[self._ends[concept - 1] if concept else 0 : self._ends[concept]]
            for concept in sorted(concepts)
            if concept < n
        ]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def text_of(self, row: int) -> str:
        """Return a name as it is generated."""
        return self._selected.texts[int(self._selected.numbers[row])]

    def choose(self, mentions: Sequence[str], names: Sequence[Ints]) -> list[int]:
        """Choose a row for each mention among its names, of which there is at least one."""
        chosen: list[int] = []
        for start in range(0, len(mentions), _CHUNK):
            chunk = names[start : start + _CHUNK]
            scores = self._score(mentions[start : start + _CHUNK], chunk, start)
            for rows, score in zip(chunk, scores, strict=True):
                lengths = self._lengths[self._selected.numbers[rows]]
                chosen.append(int(rows[np.lexsort((rows, lengths, -score[: len(rows)]))[0]]))
        return chosen

    def _score(self, mentions: Sequence[str], names: Sequence[Ints], start: int) -> Floats:
        """Score the names of mentions, (mentions, max names); ties are resolved by length."""
        rows = np.full((len(names), max(map(len, names))), -1, np.int64)
        for line, name_rows in enumerate(names):
            rows[line, : len(name_rows)] = name_rows
        if self._index is not None:
            return self._index.score(mentions, rows)
        scores = np.zeros(rows.shape, np.float32)
        if self._rule == "random":
            for line, name_rows in enumerate(names):
                rng = np.random.default_rng([self._seed, start + line])
                scores[line, rng.integers(len(name_rows))] = 1
        return scores


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GenerationCounts:
    """Numbers of mentions, by what they were used for."""

    given: int = 0
    composite: int = 0
    """Skipped: it is unknown which part refers to which concept."""
    nil: int = 0
    unknown: int = 0
    """Skipped: no concept of the store has the id, or none of its names may be generated."""
    overlapping: int = 0
    """Skipped if ``drop_overlapping`` is set."""
    used: int = 0
    without_text: int = 0
    """Used mentions whose text is missing."""


@dataclass(frozen=True, slots=True)
class GenerationExamples:
    """Training examples, the same in every epoch."""

    examples: tuple[NameExample, ...]
    counts: GenerationCounts

    def __len__(self) -> int:
        return len(self.examples)

    def example(self, epoch: int, index: int) -> NameExample:
        """Return an example by its index."""
        return self.examples[index]

    def provenance(self) -> dict[str, Any]:
        """Return the counts and a hash of the examples."""
        digest = hashlib.sha256()
        for example in self.examples:
            digest.update(repr((example.source, example.prompt, example.target)).encode())
        return {"examples": digest.hexdigest(), "mentions": asdict(self.counts)}


_DEFINITION_WORDS = 16


class ExamplesWithNames:
    """Mentions, and in each epoch other names of the store in sentences about their concepts.

    A fraction ``config.names_ratio`` of the examples are names, sampled among those that may be
    generated; none is repeated before all have been seen.
    """

    def __init__(
        self,
        mentions: GenerationExamples,
        kb: KnowledgeBase,
        selected: Selection,
        config: GenerativeConfig,
    ) -> None:
        stream = NameTemplatesConfig(
            lower=config.names.lower,
            languages=config.names.languages,
            prompt=config.prompt,
            definition_words=config.context_words or _DEFINITION_WORDS,
            seed=config.training.seed,
        )
        self._mentions, self._seed = mentions, config.training.seed
        self._templates = NameTemplates(kb, stream)
        self._names = np.flatnonzero(selected.numbers[self._templates.concept_texts.names] >= 0)
        ratio = config.names_ratio
        self.n_names = max(1, round(len(mentions) * ratio / (1 - ratio)))
        """The number of names in an epoch."""
        self._order: tuple[int, Ints] = (-1, self._names)

    def __len__(self) -> int:
        return len(self._mentions) + self.n_names

    def example(self, epoch: int, index: int) -> NameExample:
        """Return an example as it is in an epoch: the mentions come first, then names."""
        if index < len(self._mentions):
            return self._mentions.example(epoch, index)
        position = epoch * self.n_names + index - len(self._mentions)
        turn, row = divmod(position, len(self._names))
        if self._order[0] != turn:
            rng = np.random.default_rng([self._seed, turn, 2])  # 1 orders batches
            self._order = (turn, rng.permutation(self._names))
        return self._templates.example(turn, int(self._order[1][row]))


def collect_mentions(
    kb: KnowledgeBase,
    chooser: TargetChooser,
    queries: Sequence[GoldQuery],
    config: GenerativeConfig,
) -> GenerationExamples:
    """Make an example of each mention of one concept of the store (or of one among several)."""
    mentions = list(queries)
    skipped = {"composite": _is_composite, "nil": _is_nil}
    counts = {"given": len(mentions)}
    if config.drop_overlapping:
        flags = overlapping(mentions)
        mentions = [query for query, flag in zip(mentions, flags, strict=True) if not flag]
        counts["overlapping"] = sum(flags)
    for name, matches in skipped.items():
        counts[name] = sum(map(matches, mentions))
        mentions = [query for query in mentions if not matches(query)]
    names = [chooser.names_of(kb.rows_of(query.gold)) for query in mentions]
    nameable = [len(rows) > 0 for rows in names]
    mentions, names = _only(mentions, nameable), _only(names, nameable)
    counts |= {"unknown": len(nameable) - len(mentions), "used": len(mentions)}
    forms = MentionForms(kb, abbreviations=True, composites=False).of_queries(mentions)
    counts["without_text"] = sum(not q.context or q.start is None for q in mentions)
    rows = chooser.choose([form for form, _ in forms], names)
    examples = tuple(
        NameExample(*make_input(form, context, config), chooser.text_of(row))
        for (form, context), row in zip(forms, rows, strict=True)
    )
    return GenerationExamples(examples, GenerationCounts(**counts))


def _is_composite(query: GoldQuery) -> bool:
    return len(query.needed) > 1 or len(query.parts) > 1


def _is_nil(query: GoldQuery) -> bool:
    return not query.gold


def _only(values: Sequence[T], flags: Sequence[bool]) -> list[T]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]

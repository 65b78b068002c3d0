"""When a filling is right, and whether a query gives its own answer away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from biograft.metrics import Difference, Interval, bootstrap_interval, paired_bootstrap
from biograft.metrics.metric import Flags, Values
from biograft.nn.masked_lm import MaskedLanguageModel
from biograft.probing.cloze_decoding import DecodingConfig, Filling, decode
from biograft.probing.cloze_queries import BLANK, ClozeQuery, answer_key, clean_name
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase


@dataclass(frozen=True, slots=True)
class Gold:
    """What is right for one query."""

    keys: frozenset[str]
    """All names of all right concepts, as ``answer_key`` writes them."""
    given_away: bool
    """A name of a right concept stands in the query (type 1); else it is of type 2."""

    def accepts(self, text: str) -> bool:
        """Whether a text is a name of a right concept, as it is or without blanks."""
        key = answer_key(text)
        return key in self.keys or key.replace(" ", "") in self.keys


def gold_of(base: KnowledgeBase, query: ClozeQuery, languages: tuple[str, ...]) -> Gold:
    """Look up the names of the right concepts."""
    names = {
        clean_name(name.text)
        for answer in query.answers
        for name in base[answer].names
        if name.language in languages
    }
    known = query.prompt.lower().replace(BLANK.lower(), "\n")  # no name reaches over the blank
    return Gold(frozenset(map(answer_key, names)), any(name in known for name in names))


@dataclass(slots=True)
class QueryAnswers:
    """What of a model's fillings of one query is worth showing."""

    single: Filling | None = None
    """The best of one mask."""
    several: Filling | None = None
    """The best of several masks, by the mean log probability of its tokens."""
    n_masks: int = 0
    """How many masks ``several`` has."""
    right: tuple[str, ...] = ()
    """All that are right."""

    def see(self, n_masks: int, best: Filling) -> None:
        """Keep the best filling of one number of masks if it is to be shown."""
        if n_masks == 1:
            self.single = best
        elif self.several is None or best.score / n_masks > self.several.score / self.n_masks:
            self.several, self.n_masks = best, n_masks


@dataclass(frozen=True, slots=True)
class ClozeAnswers:
    """How one model answered all queries."""

    model: str
    lengths: tuple[int, ...]
    right: Flags  # (queries, lengths): a filling of this many masks is right
    answers: tuple[QueryAnswers, ...]
    n_too_long: int
    """Pairs of query and length that the model has no room for; they count as wrong."""

    @property
    def hits(self) -> Flags:
        """Which queries are right with any number of masks."""
        return np.asarray(self.right.any(axis=1))


def ask(
    model: MaskedLanguageModel,
    queries: Sequence[ClozeQuery],
    gold: Sequence[Gold],
    config: DecodingConfig,
    progress: Progress | None = None,
) -> ClozeAnswers:
    """Have a model fill the blanks of all queries, and judge the fillings."""
    right = np.zeros((len(queries), len(config.lengths)), np.bool_)
    answers = tuple(QueryAnswers() for _ in queries)
    n_filled = 0
    for query, n_masks, fillings in decode(model, [q.prompt for q in queries], config, progress):
        accepted = [filling.text for filling in fillings if gold[query].accepts(filling.text)]
        right[query, config.lengths.index(n_masks)] = bool(accepted)
        answers[query].see(n_masks, fillings[0])
        answers[query].right = tuple(dict.fromkeys((*answers[query].right, *accepted)))
        n_filled += 1
    return ClozeAnswers(model.name, config.lengths, right, answers, right.size - n_filled)


def example(answers: QueryAnswers, gold: Gold) -> dict[str, Any]:
    """Show the best answers to one query: of one mask, and of several."""
    shown: dict[str, Any] = {"right": list(answers.right)}
    for key, filling, n_masks in (
        ("single", answers.single, 1),
        ("several", answers.several, answers.n_masks),
    ):
        if filling:
            shown[key] = {
                "text": filling.text,
                "masks": n_masks,
                "log_probability": round(filling.score, 4),
                "right": gold.accepts(filling.text),
            }
    return shown


PARTS = ("all", "type 1", "type 2")


@dataclass(frozen=True, slots=True)
class Recall:
    """Recall of some queries: the mean over relations, as each relation counts the same."""

    value: float
    interval: Interval
    """By drawing relations."""
    n_queries: int
    n_relations: int

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values, in percent."""
        return {
            "recall": _percent(self.value),
            "interval": [_percent(self.interval.low), _percent(self.interval.high)],
            "n_queries": self.n_queries,
            "n_relations": self.n_relations,
        }


@dataclass(frozen=True, slots=True)
class RelationRecall:
    """Recall of one relation: (share that is right, number of queries) of each part."""

    relation: str
    parts: dict[str, tuple[float, int]]

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values, in percent."""
        told: dict[str, Any] = {"relation": self.relation}
        for part, (share, n) in self.parts.items():
            told[part] = {"recall": _percent(share), "n": n} if n else {"n": 0}
        return told


@dataclass(frozen=True)
class ClozeReport:
    """What was asked, for the figures of any model that was asked it."""

    queries: Sequence[ClozeQuery]
    gold: Sequence[Gold]
    seed: int = 0

    def part(self, name: str) -> Flags:
        """Choose the queries of a part."""
        given_away = np.array([gold.given_away for gold in self.gold], np.bool_)
        if name == "all":
            return np.ones(len(given_away), np.bool_)
        return given_away if name == "type 1" else ~given_away

    def recall(self, hits: Flags, part: str = "all") -> Recall:
        """Compute the macro recall of a part."""
        values = self._by_relation(hits, self.part(part))
        return Recall(
            float(values.mean()) if len(values) else 0.0,
            bootstrap_interval(values, seed=self.seed),
            int(self.part(part).sum()),
            len(values),
        )

    def relations(self, hits: Flags) -> list[RelationRecall]:
        """Compute the recall of each relation, by name."""
        names = np.array([query.relation for query in self.queries], object)
        chosen = {part: self.part(part) for part in PARTS}
        return [
            RelationRecall(
                relation,
                {part: _share(hits[own & (names == relation)]) for part, own in chosen.items()},
            )
            for relation in sorted(set(names.tolist()))
        ]

    def compare(self, a: Flags, b: Flags, part: str = "all") -> Difference:
        """Say how much better ``a`` is than ``b``, by drawing relations."""
        own = self.part(part)
        return paired_bootstrap(
            self._by_relation(a, own), self._by_relation(b, own), seed=self.seed
        )

    def to_json(self, answers: ClozeAnswers) -> dict[str, Any]:
        """Give all figures of one model as plain values, in percent."""
        by_length = {
            str(n): _percent(self.recall(answers.right[:, k]).value)
            for k, n in enumerate(answers.lengths)
        }
        return {
            "model": answers.model,
            **{part: self.recall(answers.hits, part).to_json() for part in PARTS},
            "by_length": by_length,
            "n_too_long": answers.n_too_long,
            "relations": [each.to_json() for each in self.relations(answers.hits)],
        }

    def _by_relation(self, hits: Flags, own: Flags) -> Values:
        """Give the recall of each relation that has queries in a part, by name."""
        names = np.array([query.relation for query in self.queries], object)[own]
        _, numbers = np.unique(names.astype(str), return_inverse=True)
        n = np.bincount(numbers)
        return np.bincount(numbers, weights=hits[own].astype(np.float64)) / n


def _share(hits: Flags) -> tuple[float, int]:
    return (float(hits.mean()) if len(hits) else 0.0), len(hits)


def _percent(share: float) -> float:
    return round(100 * share, 2)

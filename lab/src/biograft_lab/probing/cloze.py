"""Cloze probe: judge a model's fillings, and report recall by relation and query type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from biograft.arrays import Flags
from biograft.metrics import Difference, Interval, bootstrap_interval, paired_bootstrap
from biograft.metrics.linking import Values
from biograft.models.masked_lm import MaskedLanguageModel
from biograft.progress import Progress
from biograft_lab.probing.cloze_decoding import Filling, decode
from biograft_lab.probing.cloze_queries import BLANK, ClozeQuery, answer_key, clean_name
from biograft_lab.probing.config import DecodingConfig

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase


@dataclass(frozen=True, slots=True)
class ClozeGold:
    """The right answers of one query."""

    keys: frozenset[str]
    """All names of all right concepts, as ``answer_key`` forms."""
    contains_answer: bool
    """Whether the query contains a name of a right concept (type 1; else type 2)."""

    def accepts(self, text: str) -> bool:
        """Whether a text is a name of a right concept, with or without spaces."""
        key = answer_key(text)
        return key in self.keys or key.replace(" ", "") in self.keys


def cloze_gold(base: KnowledgeBase, query: ClozeQuery, languages: tuple[str, ...]) -> ClozeGold:
    """Return the right answers of a query: the names of its concepts."""
    names = {
        clean_name(name.text)
        for answer in query.answers
        for name in base[answer].names
        if name.language in languages
    }
    context = query.prompt.lower().replace(BLANK.lower(), "\n")  # a name cannot span the blank
    return ClozeGold(frozenset(map(answer_key, names)), any(name in context for name in names))


@dataclass(slots=True)
class QueryAnswers:
    """The best fillings of one query by one model."""

    single: Filling | None = None
    """The best filling with one mask."""
    several: Filling | None = None
    """The best filling with several masks, by the mean log probability of its tokens."""
    n_masks: int = 0
    """Number of masks of ``several``."""
    right: tuple[str, ...] = ()
    """All right fillings."""

    def add(self, n_masks: int, best: Filling) -> None:
        """Add the best filling with one number of masks."""
        if n_masks == 1:
            self.single = best
        elif self.several is None or best.score / n_masks > self.several.score / self.n_masks:
            self.several, self.n_masks = best, n_masks


@dataclass(frozen=True, slots=True)
class ClozeAnswers:
    """The answers of one model to all queries."""

    model: str
    lengths: tuple[int, ...]
    right: Flags  # (queries, lengths): a filling of this many masks is right
    answers: tuple[QueryAnswers, ...]
    n_too_long: int
    """Pairs of query and length that exceed the model's maximum length; they count as wrong."""

    @property
    def hits(self) -> Flags:
        """Queries that are right with any number of masks."""
        return np.asarray(self.right.any(axis=1))


def answer_queries(
    model: MaskedLanguageModel,
    queries: Sequence[ClozeQuery],
    gold: Sequence[ClozeGold],
    config: DecodingConfig,
    progress: Progress | None = None,
) -> ClozeAnswers:
    """Fill the blanks of all queries with a model, and judge the fillings."""
    right = np.zeros((len(queries), len(config.lengths)), np.bool_)
    answers = tuple(QueryAnswers() for _ in queries)
    n_filled = 0
    for query, n_masks, fillings in decode(model, [q.prompt for q in queries], config, progress):
        accepted = [filling.text for filling in fillings if gold[query].accepts(filling.text)]
        right[query, config.lengths.index(n_masks)] = bool(accepted)
        answers[query].add(n_masks, fillings[0])
        answers[query].right = tuple(dict.fromkeys((*answers[query].right, *accepted)))
        n_filled += 1
    return ClozeAnswers(model.name, config.lengths, right, answers, right.size - n_filled)


def example_answers(answers: QueryAnswers, gold: ClozeGold) -> dict[str, Any]:
    """Return the best answers to one query as plain values: with one mask, and with several."""
    report: dict[str, Any] = {"right": list(answers.right)}
    for key, filling, n_masks in (
        ("single", answers.single, 1),
        ("several", answers.several, answers.n_masks),
    ):
        if filling:
            report[key] = {
                "text": filling.text,
                "masks": n_masks,
                "log_probability": round(filling.score, 4),
                "right": gold.accepts(filling.text),
            }
    return report


QUERY_TYPES = ("all", "type 1", "type 2")


@dataclass(frozen=True, slots=True)
class Recall:
    """Macro recall: the mean over relations."""

    value: float
    interval: Interval
    """By resampling relations."""
    n_queries: int
    n_relations: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values, in percent."""
        return {
            "recall": _percent(self.value),
            "interval": [_percent(self.interval.low), _percent(self.interval.high)],
            "n_queries": self.n_queries,
            "n_relations": self.n_relations,
        }


@dataclass(frozen=True)
class ClozeReport:
    """Computes metrics of any model on the same queries."""

    queries: Sequence[ClozeQuery]
    gold: Sequence[ClozeGold]
    seed: int = 0

    def of_type(self, name: str) -> Flags:
        """Return the mask of the queries of a type."""
        contains_answer = np.array([gold.contains_answer for gold in self.gold], np.bool_)
        if name == "all":
            return np.ones(len(contains_answer), np.bool_)
        return contains_answer if name == "type 1" else ~contains_answer

    def recall(self, hits: Flags, query_type: str = "all") -> Recall:
        """Compute the macro recall of a query type."""
        values = self._by_relation(hits, self.of_type(query_type))
        return Recall(
            float(values.mean()) if len(values) else 0.0,
            bootstrap_interval(values, seed=self.seed),
            int(self.of_type(query_type).sum()),
            len(values),
        )

    def relations(self, hits: Flags) -> list[dict[str, Any]]:
        """Compute the recall of each relation, by name, in percent."""
        names = np.array([query.relation for query in self.queries], object)
        rows: list[dict[str, Any]] = [{"relation": name} for name in sorted(set(names.tolist()))]
        for query_type in QUERY_TYPES:
            mask = self.of_type(query_type)
            for row in rows:
                own = hits[mask & (names == row["relation"])]
                row[query_type] = {"n": len(own)}
                if len(own):
                    row[query_type]["recall"] = _percent(float(own.mean()))
        return rows

    def compare(self, a: Flags, b: Flags, query_type: str = "all") -> Difference:
        """Compare the recall of ``a`` and ``b``, by resampling relations."""
        mask = self.of_type(query_type)
        return paired_bootstrap(
            self._by_relation(a, mask), self._by_relation(b, mask), seed=self.seed
        )

    def differences(self, a: ClozeAnswers, b: ClozeAnswers) -> dict[str, Any]:
        """Return the differences of two models by query type as plain values, in percent.

        Args:
            a: Answers of one model.
            b: Answers of the other.
        """
        rows = {}
        for query_type in QUERY_TYPES:
            found = self.compare(a.hits, b.hits, query_type)
            rows[query_type] = {
                "difference": _percent(found.difference),
                "interval": [_percent(found.interval.low), _percent(found.interval.high)],
                "p": round(found.p, 4),
            }
        return rows

    def to_json(self, answers: ClozeAnswers) -> dict[str, Any]:
        """Return all metrics of one model as plain values, in percent."""
        by_length = {
            str(n): _percent(self.recall(answers.right[:, k]).value)
            for k, n in enumerate(answers.lengths)
        }
        return {
            "model": answers.model,
            **{
                query_type: self.recall(answers.hits, query_type).to_json()
                for query_type in QUERY_TYPES
            },
            "by_length": by_length,
            "n_too_long": answers.n_too_long,
            "relations": self.relations(answers.hits),
        }

    def _by_relation(self, hits: Flags, mask: Flags) -> Values:
        """Return the recall of each relation with queries in a mask, by name."""
        names = np.array([query.relation for query in self.queries], object)[mask]
        _, codes = np.unique(names.astype(str), return_inverse=True)
        n = np.bincount(codes)
        return np.bincount(codes, weights=hits[mask].astype(np.float64)) / n


def _percent(fraction: float) -> float:
    return round(100 * fraction, 2)

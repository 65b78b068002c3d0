"""Ask a model what it knows of a store's relations, and count what is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from biograft.metrics.judgements import Flags
from biograft.nn.masked_lm import MaskedLanguageModel
from biograft.probing.decoding import DecodingConfig, Filling, decode
from biograft.probing.judging import Gold
from biograft.probing.queries import ClozeQuery
from biograft.progress import Progress


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

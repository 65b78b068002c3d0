"""The same for many sentences: how far the other curves lie from the entity's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from biograft.probing.attention.config import AttentionConfig
from biograft.probing.attention.curves import OTHERS, Curves, ReplacedSentence, compare_names
from biograft.probing.attention.maps import UnfitError, Values
from biograft.probing.attention.reading import AttentionReader
from biograft.progress import Progress


@dataclass(frozen=True, slots=True)
class EncoderSummary:
    """What one encoder made of all sentences."""

    encoder: str
    layer: int
    differences: dict[str, Values]  # of each other name (sentences,)

    def to_json(self) -> dict[str, Any]:
        """Give mean and sample deviation, and how often the synonym is nearer, as plain values."""
        told: dict[str, Any] = {"encoder": self.encoder, "layer": self.layer}
        for name, values in self.differences.items():
            deviation = float(values.std(ddof=1)) if len(values) > 1 else None
            told[name] = {
                "mean": round(float(values.mean()), 6),
                "deviation": None if deviation is None else round(deviation, 6),
            }
        nearer = self.differences["synonym"] < self.differences["random"]
        return told | {"n_synonym_nearer": int(nearer.sum())}


@dataclass(frozen=True, slots=True)
class AttentionSummary:
    """What several encoders made of the same sentences."""

    sentences: tuple[ReplacedSentence, ...]
    encoders: tuple[EncoderSummary, ...]
    left_out: Counter[str] = field(default_factory=Counter)
    """Sentences by why they could not be looked at, by one of the encoders at least."""

    def to_json(self) -> dict[str, Any]:
        """Give all figures as plain values."""
        return {
            "n_sentences": len(self.sentences),
            "left_out": dict(self.left_out.most_common()),
            "models": [each.to_json() for each in self.encoders],
            "sentences": [self._row(k) for k in range(len(self.sentences))],
        }

    def _row(self, k: int) -> dict[str, Any]:
        sentence = self.sentences[k]
        return {
            "id": sentence.id,
            "entity": sentence.entity,
            "synonym": sentence.synonym,
            "random": sentence.random,
            "differences": [
                {name: round(float(each.differences[name][k]), 6) for name in OTHERS}
                for each in self.encoders
            ],
        }


def compare_many(
    readers: Sequence[AttentionReader],
    sentences: Sequence[ReplacedSentence],
    config: AttentionConfig,
    fill: Callable[[ReplacedSentence], ReplacedSentence] | None = None,
    progress: Progress | None = None,
) -> AttentionSummary:
    """Read many sentences; all encoders are judged by those that every one of them can read.

    ``fill`` gives a sentence the names that it lacks.
    """
    kept: list[ReplacedSentence] = []
    found: list[list[Curves]] = []
    left_out: Counter[str] = Counter()
    for n, sentence in enumerate(sentences, 1):
        try:
            filled = fill(sentence) if fill else sentence
            found.append([compare_names(reader, filled, config) for reader in readers])
        except UnfitError as error:
            left_out[error.reason] += 1
        else:
            kept.append(filled)
        if progress:
            progress.advance(1, n / len(sentences))
    if not kept:
        reasons = "; ".join(f"{n:,}: {reason}" for reason, n in left_out.most_common())
        raise UnfitError("no sentence can be looked at", reasons or "there is none")
    columns = [[row[k] for row in found] for k in range(len(readers))]
    return AttentionSummary(tuple(kept), tuple(map(_summary, columns)), left_out)


def _summary(curves: Sequence[Curves]) -> EncoderSummary:
    differences = {
        name: np.array([each.differences[name] for each in curves], np.float64) for name in OTHERS
    }
    return EncoderSummary(curves[0].encoder, curves[0].layer, differences)

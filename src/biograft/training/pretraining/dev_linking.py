"""The accuracy of linking by the encoder in training, on the mentions of a dev set.

It is what an aligned encoder is for, and what decides which step is kept: the loss of pairs goes
on falling after linking has begun to suffer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from biograft.artifacts import new_file
from biograft.errors import ConfigError
from biograft.evaluation.gold import GOLD_FORMATS, read_gold
from biograft.kb import KnowledgeBase
from biograft.linking.dense.index import collect_texts
from biograft.linking.dense.search import ExactSearch, VectorTable
from biograft.models import TextEncoder
from biograft.training.pretraining.recipe import PairStreamConfig

BEST, _SCORE = "best", "best.json"


class DevLinking:
    """Links the mentions of a dev set to the concepts of their nearest names.

    Args:
        kb: Knowledge base of the names.
        encoder: Encoder in training.
        config: Gold standard, its format, and the languages of names.
        run: Folder of the run, in which the best encoder is kept.
    """

    def __init__(
        self, kb: KnowledgeBase | None, encoder: TextEncoder, config: PairStreamConfig, run: Path
    ) -> None:
        if kb is None or config.dev is None:
            raise ConfigError("stream.dev: mentions are linked to a knowledge base; give --kb")
        if config.dev_format not in GOLD_FORMATS:
            raise ConfigError(
                f"stream.dev_format: expected one of {', '.join(GOLD_FORMATS)}, found "
                f"{config.dev_format!r}"
            )
        queries = read_gold(config.dev, config.dev_format).queries
        parts = [(part, query.gold) for query in queries if query.gold for part in query.parts]
        self._mentions = [text for text, _ in parts]
        self._gold = [kb.rows_of(gold) for _, gold in parts]
        self._names = collect_texts(kb, encoder.prepare, config.languages)
        concepts = kb.table("names").column("concept").to_numpy()[self._names.rows]
        self._concepts = np.split(concepts, self._names.starts[1:-1])
        self._encoder, self._run = encoder, run

    def accuracy(self, precision: str) -> float:
        """Return the percentage of mentions whose nearest name is one of a correct concept.

        Args:
            precision: One of ``models.precision.PRECISIONS``.
        """
        names = self._encoder.encode(self._names.texts.to_pylist(), precision=precision)
        queries = self._encoder.encode(self._mentions, prompt_name="query", precision=precision)
        hits = ExactSearch(VectorTable("float32", names, None), 1.0).search(queries, 1)
        right = [
            row >= 0 and int(self._concepts[row][0]) in gold
            for row, gold in zip(hits.rows[:, 0], self._gold, strict=True)
        ]
        return round(100 * float(np.mean(right)), 4)

    def keep_best(self, accuracy: float) -> None:
        """Save the encoder if no earlier evaluation of the run was as good.

        Args:
            accuracy: Its accuracy.
        """
        best = self.best()
        if best is None or accuracy > best["acc@1"]:
            self._encoder.save_pretrained(self._run / BEST, overwrite=True)
            with new_file(self._run / _SCORE, overwrite=True) as file:
                file.write(json.dumps({"acc@1": accuracy}).encode())

    def best(self) -> dict[str, Any] | None:
        """Return the accuracy of the encoder that is kept; None before the first evaluation."""
        path = self._run / _SCORE
        return json.loads(path.read_bytes()) if path.exists() else None

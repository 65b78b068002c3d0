"""Detection by a trained model of named entity recognition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.documents import Document, Mention
from biograft.errors import ConfigError, MissingExtraError, nearest
from biograft.linking.detection.detector import in_text_order

if TYPE_CHECKING:
    from biograft.tasks.model import TaskModel

NER = "ner"
"""The task whose models find mentions."""


class ModelDetector:
    """Finds the entities that a trained model predicts, all or those of some types.

    >>> detector = ModelDetector.open("RUN", types=("Disease",))  # doctest: +SKIP
    >>> detector.detect([Document("1", "No flu.")])  # doctest: +SKIP
    [[Mention(start=3, end=6, text='flu', type='Disease')]]
    """

    def __init__(self, model: TaskModel[Document, Document], types: tuple[str, ...] = ()) -> None:
        for name in types:
            if name not in model.labels:
                raise ConfigError(f"mention_types: no {name!r}; {nearest(name, model.labels)}")
        self._model, self._types = model, types or model.labels

    @classmethod
    def open(cls, folder: str | Path, types: tuple[str, ...] = ()) -> ModelDetector:
        """Open the model in the folder of a run of the task ``ner``."""
        try:
            from biograft.tasks.folder import open_task
        except ModuleNotFoundError as error:
            raise MissingExtraError("models", "a trained detector") from error
        model = open_task(folder)
        if model.kind != NER:
            raise ConfigError(
                f"{folder}: is a model of the task {model.kind!r}, which finds no mentions; "
                f"expected one of {NER!r}"
            )
        return cls(model, types)

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Predict the entities of documents, whose own mentions are ignored."""
        predictions = self._model.predict([replace(each, mentions=()) for each in documents])
        return [
            in_text_order([mention for mention in each.mentions if mention.type in self._types])
            for each in predictions
        ]

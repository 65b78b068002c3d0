"""Named entity recognition: an encoder with a head over words, trained on documents.

Documents are split into texts, words and windows (``ner_text.py``); the head tags words or scores
spans (``ner_heads.py``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from biograft.metrics import ClassReport, entity_report
from biograft.metrics.precision_recall import Entity
from biograft.models import TextEncoder
from biograft.models.tasks.configs import NerConfig
from biograft.models.tasks.ner_heads import CrfHead, SpanHead, TagHead
from biograft.models.tasks.ner_text import (
    TagSet,
    TextUnit,
    Window,
    WordSpan,
    cut_windows,
    find_spans,
    owner_of,
    split_texts,
)
from biograft.models.tasks.network import Outputs, TaskNetwork
from biograft.models.tasks.tokens import TaskTokenizer
from biograft.text.alignment import NONE
from biograft.text.documents import Document, Mention
from biograft.text.formats import write_documents

_BATCH_DOCUMENTS = 2000


class NerModel:
    """An encoder with a head that finds entities of some types."""

    kind = "ner"

    def __init__(self, encoder: TextEncoder, config: NerConfig, labels: tuple[str, ...]) -> None:
        self.config, self.labels = config, labels
        self.tokenizer = TaskTokenizer(encoder)
        self.head = _make_head(encoder.dim, config, labels)
        self.network = TaskNetwork(encoder, self.head, config.dropout)

    @classmethod
    def from_examples(
        cls, encoder: TextEncoder, config: NerConfig, documents: Sequence[Document]
    ) -> NerModel:
        """Create an untrained model for the entity types of some documents.

        With ``types = "ignore"`` there is one type; it has a name if the documents have just one.
        """
        types = sorted({mention.type for document in documents for mention in document.mentions})
        if config.types == "ignore":
            types = types if len(types) == 1 else [""]
        return cls(encoder, config, tuple(types))

    def settings(self) -> Mapping[str, Any]:
        """Return nothing: labels, configuration and weights are all."""
        return {}

    def training_items(self, examples: Sequence[Document]) -> tuple[list[Window], Counter[str]]:
        """Return the windows with gold tags or spans; mentions that are lost are counted."""
        lost: Counter[str] = Counter()
        texts = split_texts(examples, self.tokenizer, self.config.read)
        windows: list[Window] = []
        by_text = _mentions_of_texts(examples, texts, lost)
        for index, text in enumerate(texts):
            mentions = [replace(m, type=self._type_of(m)) for m in by_text[index]]
            nested = self.config.head == "spans"
            spans = find_spans(text, mentions, nested=nested, lost=lost)
            cut = list(cut_windows(index, text, self.tokenizer, self.config.overlap))
            if nested:
                spans = self._learnable_spans(spans, cut, lost)
            windows += [self._labelled(window, text, spans) for window in cut]
        return windows, lost

    def loss(self, network: nn.Module, items: Sequence[Window]) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a batch of windows."""
        batch = self.network.collate(items)
        return self.head.loss(network(batch), items, batch.mask), {}

    def count(self, items: Sequence[Window]) -> int:
        """Count the words, or windows, that the loss of a batch is a mean over."""
        return self.head.count(items)

    def predict(self, examples: Sequence[Document], precision: str = "auto") -> list[Document]:
        """Return the documents with predicted entities as their mentions."""
        predictions: list[Document] = []
        for start in range(0, len(examples), _BATCH_DOCUMENTS):
            predictions += self._predict(examples[start : start + _BATCH_DOCUMENTS], precision)
        return predictions

    def report(self, examples: Sequence[Document], predictions: Sequence[Document]) -> ClassReport:
        """Evaluate entities by exact span and type; those lost in training count as missed."""
        return entity_report(self._entities(examples), self._entities(predictions))

    def write(
        self, examples: Sequence[Document], predictions: Sequence[Document], path: Path
    ) -> None:
        """Write the documents with predicted entities."""
        write_documents(predictions, path, "jsonl", overwrite=True)

    def _predict(self, documents: Sequence[Document], precision: str) -> list[Document]:
        texts = split_texts(documents, self.tokenizer, self.config.read)
        windows = [
            window
            for index, text in enumerate(texts)
            for window in cut_windows(index, text, self.tokenizer, self.config.overlap)
        ]
        of_text: dict[int, dict[int, tuple[Window, Outputs]]] = defaultdict(dict)
        for row, outputs in self.network.predict(windows, precision):
            of_text[windows[row].text][row] = (windows[row], outputs)
        mentions: dict[int, list[Mention]] = defaultdict(list)
        for index, by_row in sorted(of_text.items()):
            text = texts[index]
            spans = self.head.join([by_row[row] for row in sorted(by_row)])
            mentions[text.document] += _mentions(documents[text.document], text, spans)
        return [
            replace(document, mentions=tuple(mentions[row]), relations=())
            for row, document in enumerate(documents)
        ]

    def _learnable_spans(
        self, spans: Sequence[WordSpan], windows: Sequence[Window], lost: Counter[str]
    ) -> list[WordSpan]:
        """Drop, and count, the spans that are too long or in no window."""
        learnable = []
        for first, end, kind in spans:
            if end - first > self.config.max_span:
                lost["entities longer than max_span"] += 1
            elif owner_of(windows, first, end - 1) == NONE:
                lost["entities that no window holds"] += 1
            else:
                learnable.append((first, end, kind))
        return learnable

    def _labelled(self, window: Window, text: TextUnit, spans: Sequence[WordSpan]) -> Window:
        """Return a window with the gold tags or spans of its words."""
        if isinstance(self.head, TagHead):
            tags = self.head.tags.encode(len(text.words), spans)
            return replace(window, tags=tuple(tags[window.first : window.first + window.n_words]))
        inside = tuple(
            (first - window.first, end - 1 - window.first, self.labels.index(kind))
            for first, end, kind in spans
            if window.holds(first, end - 1)
        )
        return replace(window, spans=inside)

    def _type_of(self, mention: Mention) -> str:
        return self.labels[0] if self.config.types == "ignore" else mention.type

    def _entities(self, documents: Sequence[Document]) -> Iterable[Entity]:
        for row, document in enumerate(documents):
            for mention in document.mentions:
                yield row, mention.start, mention.end, self._type_of(mention)


def _make_head(
    width: int, config: NerConfig, labels: tuple[str, ...]
) -> TagHead | CrfHead | SpanHead:
    if config.head == "spans":
        return SpanHead(width, labels, config.max_span)
    kind = CrfHead if config.head == "crf" else TagHead
    return kind(width, TagSet(labels, config.scheme))


def _mentions_of_texts(
    documents: Sequence[Document], texts: Sequence[TextUnit], lost: Counter[str]
) -> dict[int, list[Mention]]:
    """Return the mentions of each text, by the words that it covers."""
    texts_of: dict[int, list[int]] = defaultdict(list)
    for index, text in enumerate(texts):
        if len(text.words):
            texts_of[text.document].append(index)
    mentions: dict[int, list[Mention]] = defaultdict(list)
    for row, document in enumerate(documents):
        ends = [int(texts[index].words[-1, 1]) for index in texts_of[row]]
        starts = [int(texts[index].words[0, 0]) for index in texts_of[row]]
        for mention in document.mentions:
            position = bisect_right(starts, mention.start) - 1
            if position >= 0 and mention.end <= ends[position]:
                mentions[texts_of[row][position]].append(mention)
            else:
                lost["mentions that are in no single text"] += 1
    return mentions


def _mentions(document: Document, text: TextUnit, spans: Sequence[WordSpan]) -> Iterable[Mention]:
    for first, end, kind in spans:
        start, stop = int(text.words[first, 0]), int(text.words[end - 1, 1])
        yield Mention(start, stop, document.text[start:stop], type=kind)

"""A model that finds entities in documents."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from biograft.corpus.alignment import NONE
from biograft.corpus.formats import read_documents, write_documents
from biograft.documents import Document, Mention
from biograft.errors import ConfigError, InputError
from biograft.metrics import ClassReport, entity_report
from biograft.metrics.precision_recall import Entity
from biograft.nn import TextEncoder
from biograft.sources.log import ReadLog
from biograft.tasks.configs import DataConfig, NerConfig
from biograft.tasks.ner_heads import CrfHead, SpanHead, TagHead
from biograft.tasks.ner_text import (
    ReadText,
    TagSet,
    Window,
    WordSpan,
    cut_windows,
    find_spans,
    owner_of,
    read_texts,
)
from biograft.tasks.network import Outputs, TaskNetwork
from biograft.tasks.task import TaskExamples, TaskKind
from biograft.tasks.tokens import TaskTokenizer

_DOCUMENTS_AT_ONCE = 2000


class NerModel:
    """An encoder with a head that marks entities of some types."""

    kind = "ner"

    def __init__(self, encoder: TextEncoder, config: NerConfig, labels: tuple[str, ...]) -> None:
        self.config, self.labels = config, labels
        self.tokenizer = TaskTokenizer(encoder)
        self.head = _make_head(encoder.dim, config, labels)
        self.network = TaskNetwork(encoder, self.head, config.dropout)

    @classmethod
    def start(
        cls, encoder: TextEncoder, config: NerConfig, documents: Sequence[Document]
    ) -> NerModel:
        """Make a model for the types of some documents; it has learnt nothing yet.

        Where types are ignored the one type keeps its name if the documents know just one.
        """
        types = sorted({mention.type for document in documents for mention in document.mentions})
        if config.types == "ignore":
            types = types if len(types) == 1 else [""]
        return cls(encoder, config, tuple(types))

    def settings(self) -> Mapping[str, Any]:
        """There is nothing more to know."""
        return {}

    def learnable(self, examples: Sequence[Document]) -> tuple[list[Window], Counter[str]]:
        """Make the windows to learn from, each word with its tag or the spans marked."""
        lost: Counter[str] = Counter()
        texts = read_texts(examples, self.tokenizer, self.config.read)
        windows: list[Window] = []
        by_text = _mentions_of_texts(examples, texts, lost)
        for number, text in enumerate(texts):
            mentions = [replace(m, type=self._type_of(m)) for m in by_text[number]]
            nested = self.config.head == "spans"
            spans = find_spans(text, mentions, nested=nested, lost=lost)
            cut = list(cut_windows(number, text, self.tokenizer, self.config.overlap))
            if nested:
                spans = self._learnable_spans(spans, cut, lost)
            windows += [self._marked(window, text, spans) for window in cut]
        return windows, lost

    def loss(self, network: nn.Module, items: Sequence[Window]) -> tuple[Tensor, dict[str, float]]:
        """Compute the head's loss of some windows."""
        batch = self.network.collate(items)
        return self.head.loss(network(batch), items, batch.held), {}

    def predict(self, examples: Sequence[Document], precision: str = "auto") -> list[Document]:
        """Give the documents with the entities found in place of their own mentions."""
        answers: list[Document] = []
        for start in range(0, len(examples), _DOCUMENTS_AT_ONCE):
            answers += self._predict(examples[start : start + _DOCUMENTS_AT_ONCE], precision)
        return answers

    def report(self, examples: Sequence[Document], answers: Sequence[Document]) -> ClassReport:
        """Compare entities by span and type; those that could never be found are missed."""
        return entity_report(self._entities(examples), self._entities(answers))

    def write(self, examples: Sequence[Document], answers: Sequence[Document], path: Path) -> None:
        """Write the documents with the entities found."""
        write_documents(answers, path, "jsonl", overwrite=True)

    def _predict(self, documents: Sequence[Document], precision: str) -> list[Document]:
        texts = read_texts(documents, self.tokenizer, self.config.read)
        windows = [
            window
            for number, text in enumerate(texts)
            for window in cut_windows(number, text, self.tokenizer, self.config.overlap)
        ]
        pieces: dict[int, dict[int, tuple[Window, Outputs]]] = defaultdict(dict)
        for row, outputs in self.network.read(windows, precision):
            pieces[windows[row].text][row] = (windows[row], outputs)
        found: dict[int, list[Mention]] = defaultdict(list)
        for number, said in sorted(pieces.items()):
            text = texts[number]
            spans = self.head.join([said[row] for row in sorted(said)])
            found[text.document] += _mentions(documents[text.document], text, spans)
        return [
            replace(document, mentions=tuple(found[number]), relations=())
            for number, document in enumerate(documents)
        ]

    def _learnable_spans(
        self, spans: Sequence[WordSpan], windows: Sequence[Window], lost: Counter[str]
    ) -> list[WordSpan]:
        """Leave out, and count, the spans that are too long or that no window holds."""
        kept = []
        for first, behind, kind in spans:
            if behind - first > self.config.max_span:
                lost["entities longer than max_span"] += 1
            elif owner_of(windows, first, behind - 1) == NONE:
                lost["entities that no window holds"] += 1
            else:
                kept.append((first, behind, kind))
        return kept

    def _marked(self, window: Window, text: ReadText, spans: Sequence[WordSpan]) -> Window:
        """Add to a window what is to be learned of its words."""
        if isinstance(self.head, TagHead):
            tags = self.head.tags.encode(len(text.words), spans)
            return replace(window, tags=tuple(tags[window.first : window.first + window.n_words]))
        inside = tuple(
            (first - window.first, behind - 1 - window.first, self.labels.index(kind))
            for first, behind, kind in spans
            if window.holds(first, behind - 1)
        )
        return replace(window, spans=inside)

    def _type_of(self, mention: Mention) -> str:
        return self.labels[0] if self.config.types == "ignore" else mention.type

    def _entities(self, documents: Sequence[Document]) -> Iterable[Entity]:
        for number, document in enumerate(documents):
            for mention in document.mentions:
                yield number, mention.start, mention.end, self._type_of(mention)


def _make_head(
    width: int, config: NerConfig, labels: tuple[str, ...]
) -> TagHead | CrfHead | SpanHead:
    if config.head == "spans":
        return SpanHead(width, labels, config.max_span)
    kind = CrfHead if config.head == "crf" else TagHead
    return kind(width, TagSet(labels, config.scheme))


def _mentions_of_texts(
    documents: Sequence[Document], texts: Sequence[ReadText], lost: Counter[str]
) -> dict[int, list[Mention]]:
    """Give each text its mentions, by the words that it covers."""
    texts_of: dict[int, list[int]] = defaultdict(list)
    for number, text in enumerate(texts):
        if len(text.words):
            texts_of[text.document].append(number)
    found: dict[int, list[Mention]] = defaultdict(list)
    for row, document in enumerate(documents):
        ends = [int(texts[number].words[-1, 1]) for number in texts_of[row]]
        starts = [int(texts[number].words[0, 0]) for number in texts_of[row]]
        for mention in document.mentions:
            place = bisect_right(starts, mention.start) - 1
            if place >= 0 and mention.end <= ends[place]:
                found[texts_of[row][place]].append(mention)
            else:
                lost["mentions that are in no single text"] += 1
    return found


def _mentions(document: Document, text: ReadText, spans: Sequence[WordSpan]) -> Iterable[Mention]:
    for first, end, kind in spans:
        start, stop = int(text.words[first, 0]), int(text.words[end - 1, 1])
        yield Mention(start, stop, document.text[start:stop], type=kind)


def read(paths: Sequence[str], part: str, data: DataConfig) -> TaskExamples:
    """Read documents of any format."""
    if data.has_parts or data.dev_list or data.grouped:
        raise ConfigError(
            "data: has_parts, dev_list and grouped mean nothing to documents; leave them out"
        )
    documents: list[Document] = []
    rejected: Counter[str] = Counter()
    for path in paths:
        log = ReadLog(Path(path))
        found = list(read_documents(path, data.format, log))
        if not any(document.mentions for document in found):
            raise InputError(
                f"holds no mention in {len(found):,} documents",
                path=path,
                remedy="check the format",
            )
        documents += found
        rejected += log.rejected.counts
    return TaskExamples(documents, rejected)


KIND = TaskKind(config=NerConfig, read=read, start=NerModel.start, build=NerModel)

"""Named entity recognition: an encoder with a head over words, trained on documents.

Documents are split into texts, words and windows; the head tags words or scores spans. A word is
the unit that gets a label. Words are the tokens of a tokenised file (CoNLL); otherwise texts are
split by one rule for all encoders: runs of letters and digits, each punctuation character, each
Chinese character.

There are three heads: token classification (softmax), linear-chain CRF, and span scoring. The CRF
adds scores for transitions between tags, and for the first and the last tag; its loss is -log p of
the whole tag sequence, and its predictions obey the tag scheme. The span head scores every span
and type by itself (global pointer), so that it finds nested entities.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from biograft.metrics import ClassReport, entity_report
from biograft.metrics.precision_recall import Entity
from biograft.models import TextEncoder
from biograft.models.tasks.model import LabelNetwork, NoHead, Outputs, Predicting, TaskNetwork
from biograft.models.tasks.task import NerConfig
from biograft.models.tasks.tokens import Ints, TaskTokenizer, TextTokens, tokens_of_words
from biograft.text.alignment import NONE, align_spans, split_tokens
from biograft.text.documents import Document, Mention, Passage, Relation
from biograft.text.formats import write_documents
from biograft.text.formats.conll import OUTSIDE, TOKENS, Scheme, decode, encode, tokens_of
from biograft.text.sentences import split_sentences
from biograft.text.tasks.rows import DOCUMENT, to_examples

WordSpan = tuple[int, int, str]
"""First word, end (exclusive), type."""


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A text that is encoded by itself: a passage, a sentence or a whole document."""

    document: int
    """Row of its document."""
    words: Ints
    """(words, 2): offsets in the document; words without tokens are left out."""
    tokens: tuple[tuple[int, ...], ...]
    """The tokens of each word."""


def split_texts(
    documents: Sequence[Document], tokenizer: TaskTokenizer, read: str
) -> list[TextUnit]:
    """Split documents into texts, and these into words.

    Args:
        documents: Documents.
        tokenizer: Tokenizer of the encoder.
        read: Part of a document that is read at once: a sentence, a passage, the whole.
    """
    sections = [
        (row, section)
        for row, document in enumerate(documents)
        for section in _sections(document, read)
    ]
    texts = [documents[row].text[section.start : section.end] for row, section in sections]
    return [
        _text_unit(row, documents[row], section, tokens, tokenizer)
        for (row, section), tokens in zip(sections, tokenizer.read(texts), strict=True)
    ]


def _sections(document: Document, read: str) -> Iterator[Passage]:
    """Yield disjoint sections in order; mentions outside of them are lost."""
    whole = Passage(0, len(document.text), "")
    passages = sorted(document.passages, key=lambda p: (p.start, -p.end)) or [whole]
    if read == "documents":
        in_tokens = all(passage.kind == TOKENS for passage in passages)
        passages = [Passage(0, len(document.text), TOKENS if in_tokens else "")]
    reached = 0
    for passage in passages:
        if passage.start < reached:
            continue  # inside the one before
        reached = passage.end
        if read == "sentences" and passage.kind != TOKENS:
            for start, end in split_sentences(document.text[passage.start : passage.end]):
                yield Passage(passage.start + start, passage.start + end, "")
        else:
            yield passage


def _text_unit(
    row: int, document: Document, section: Passage, tokens: TextTokens, tokenizer: TaskTokenizer
) -> TextUnit:
    text = document.text[section.start : section.end]
    spans = _given_tokens(document, section) if section.kind == TOKENS else split_tokens(text)
    words = np.array(spans, np.int64).reshape(-1, 2)
    if section.kind == TOKENS:
        words -= section.start
    of_words = tokens_of_words(text, words, tokens, tokenizer)
    has_tokens = np.array([bool(ids) for ids in of_words], bool)
    cut = tuple(tuple(ids[: tokenizer.room]) for ids in of_words if ids)
    return TextUnit(row, words[has_tokens] + section.start, cut)


def _given_tokens(document: Document, section: Passage) -> list[tuple[int, int]]:
    """Return the offsets of the whitespace-separated tokens of a tokenised section."""
    lines = [p for p in document.passages if section.start <= p.start and p.end <= section.end]
    return [span for line in lines or [section] for span in tokens_of(document, line)]


def find_spans(
    text: TextUnit, mentions: Sequence[Mention], *, nested: bool, lost: Counter[str]
) -> list[WordSpan]:
    """Return the word spans of the mentions of a text, in order; what is lost is counted.

    A mention whose bounds are not word bounds is widened to whole words, so that a prediction
    cannot match it exactly.

    Args:
        text: Text in words.
        mentions: Its mentions.
        nested: Keep overlapping mentions; without, only the longest of them stays.
        lost: Counts what is lost, by reason.
    """
    bounds = [(mention.start, mention.end) for mention in mentions]
    exact: dict[WordSpan, bool] = {}
    for mention, (first, last) in zip(mentions, align_spans(text.words, bounds), strict=True):
        if first == NONE:
            lost["mentions without any token"] += 1
            continue
        span = (int(first), int(last) + 1, mention.type)
        fits = (text.words[first, 0], text.words[last, 1]) == (mention.start, mention.end)
        if not fits:
            lost["mentions whose bounds are not those of words"] += 1
        exact[span] = exact.get(span, False) or fits
    return sorted(exact) if nested else _disjoint(exact, len(text.words), lost)


def _disjoint(exact: Mapping[WordSpan, bool], n_words: int, lost: Counter[str]) -> list[WordSpan]:
    """Keep the longest of overlapping spans; count the exact ones that are dropped."""
    taken = np.zeros(n_words, bool)
    disjoint = []
    for first, end, kind in sorted(exact, key=lambda span: (span[0] - span[1], span)):
        if not taken[first:end].any():
            taken[first:end] = True
            disjoint.append((first, end, kind))
        elif exact[first, end, kind]:
            lost["mentions that share words with a longer one"] += 1
    return sorted(disjoint)


@dataclass(frozen=True, slots=True)
class Window:
    """A sequence of consecutive words of a text; windows of a text overlap."""

    text: int
    """Index of the text."""
    first: int
    """Index of the first word in the text."""
    own: tuple[int, int]
    """The words of the text, end exclusive, whose tags are taken from this window."""
    tokens: tuple[int, ...]
    """Ids of the tokens, with the special ones."""
    positions: tuple[int, ...]
    """The first token of each word."""
    tags: tuple[int, ...] = ()
    """The gold tag of each word, for training."""
    spans: tuple[tuple[int, int, int], ...] = ()
    """The gold entities, for training: first word of the window, last word (inclusive), type."""
    n_after: int = 0
    """Number of special tokens after the text."""

    @property
    def n_words(self) -> int:
        """The number of words."""
        return len(self.positions)

    def holds(self, first: int, last: int) -> bool:
        """Whether the window holds the words of the text from ``first`` to ``last`` inclusive.

        Args:
            first: First word.
            last: Last word.
        """
        return self.first <= first and last < self.first + self.n_words

    def context(self, first: int, last: int) -> int:
        """Count the context tokens of words, on the side that has fewer.

        Args:
            first: First word.
            last: Last word.
        """
        end, after = len(self.tokens) - self.n_after, last + 1 - self.first
        next_word = self.positions[after] if after < self.n_words else end
        return min(self.positions[first - self.first] - self.positions[0], end - next_word)


def cut_windows(
    index: int, text: TextUnit, tokenizer: TaskTokenizer, overlap: int
) -> Iterator[Window]:
    """Yield the windows of a text; none for a text without words.

    Args:
        index: Number of the text.
        text: Text in words.
        tokenizer: Tokenizer of the encoder, which knows how much is read at once.
        overlap: Tokens that successive windows share, at most half of what is read at once.
    """
    if not text.tokens:
        return
    ends = np.cumsum([len(ids) for ids in text.tokens], dtype=np.int64)
    starts = ends - np.array([len(ids) for ids in text.tokens], np.int64)
    bounds = _bounds(starts, ends, tokenizer.room, min(overlap, tokenizer.room // 2))
    cuts = [0, *_cuts(bounds, starts, ends), len(ends)]
    for (first, end), own in zip(bounds, pairwise(cuts), strict=True):
        ids = [i for word in text.tokens[first:end] for i in word]
        tokens = tokenizer.frame(ids)
        positions = starts[first:end] - starts[first] + tokenizer.n_before
        n_after = len(tokens) - tokenizer.n_before - len(ids)
        yield Window(index, first, own, tuple(tokens), tuple(positions.tolist()), n_after=n_after)


def owner_of(windows: Sequence[Window], first: int, last: int) -> int:
    """Return the index of the window that holds words with the most context, or ``NONE``.

    The first of equal windows is chosen.

    Args:
        windows: Windows of a text.
        first: First word.
        last: Last word.
    """
    holding = [index for index, window in enumerate(windows) if window.holds(first, last)]
    return max(holding, key=lambda index: windows[index].context(first, last), default=NONE)


def _bounds(starts: Ints, ends: Ints, room: int, overlap: int) -> list[tuple[int, int]]:
    """Return the first and the end word of each window."""
    bounds: list[tuple[int, int]] = []
    first, n_words = 0, len(starts)
    while first < n_words:
        end = int(np.searchsorted(ends, starts[first] + room, side="right"))
        bounds.append((first, end))
        if end == n_words:
            break
        back = int(np.searchsorted(starts, ends[end - 1] - overlap, side="left"))
        first = min(max(back, first + 1), end)
    return bounds


def _cuts(bounds: list[tuple[int, int]], starts: Ints, ends: Ints) -> Iterator[int]:
    """Yield, for each window but the first, its first word with more context than before."""
    reached = 0
    for (_, end), (first, _) in pairwise(bounds):
        before = starts[first:end] - starts[first]
        after = ends[end - 1] - ends[first:end]
        reached = max(reached, first + int(np.searchsorted(before > after, True)))
        yield reached


Flags = npt.NDArray[np.bool_]
_SCHEMES = {"bio": (Scheme.IOB2, "BI"), "bioes": (Scheme.IOBES, "BIES")}
_CONTINUES, _ENDS = "IE", "ES"


@dataclass(frozen=True, slots=True)
class TagSet:
    """The tags of some entity types in a scheme, by index; 0 is outside."""

    types: tuple[str, ...]
    """Entity types."""
    scheme: str
    """Tagging scheme, as ``bio``."""

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, such as ``B-Disease``; the prefix alone for a type without a name."""
        prefixes = _SCHEMES[self.scheme][1]
        inside = [
            f"{prefix}-{kind}" if kind else prefix for kind in self.types for prefix in prefixes
        ]
        return (OUTSIDE, *inside)

    @property
    def named(self) -> tuple[str, ...]:
        """All tags with a type, as transformers groups them: ``B-Entity`` for ``B``."""
        return tuple(f"{tag}-Entity" if tag in "BIES" else tag for tag in self.tags)

    def encode(self, n_words: int, spans: Sequence[WordSpan]) -> list[int]:
        """Return the tag of each word; spans are in order and disjoint.

        Args:
            n_words: Number of words.
            spans: First word, end and type of each, in order and disjoint.
        """
        index = {tag: row for row, tag in enumerate(self.tags)}
        return [index[tag] for tag in encode(n_words, spans, _SCHEMES[self.scheme][0])]

    def decode(self, tags: Sequence[int]) -> list[WordSpan]:
        """Return the spans of tags; an ``I`` without a ``B`` also begins an entity."""
        names = self.tags
        return decode(names[tag] for tag in tags)

    def may_follow(self) -> tuple[Flags, Flags, Flags]:
        """Return the allowed transitions (from, to), and the allowed first and last tags."""
        names = self.tags
        begins = np.array([tag[0] not in _CONTINUES for tag in names])
        # in BIO any tag may be the last of an entity
        open_ends = self.scheme == "bio"
        ends = np.array([open_ends or tag == OUTSIDE or tag[0] in _ENDS for tag in names])
        follows = ends[:, None] & begins[None, :]
        for before, tag in enumerate(names):
            if tag != OUTSIDE and tag[0] not in _ENDS:
                for after, other in enumerate(names):
                    if other[0] in _CONTINUES and other[1:] == tag[1:]:
                        follows[before, after] = True
        return follows, begins, ends


Scores = npt.NDArray[np.float32]
_INIT_STD = 0.02

IGNORED = -100
"""The label of tokens that a loss leaves out, as in torch."""


class TagHead(NoHead):
    """Tags from the scores of each word's first token."""

    def __init__(self, tags: TagSet) -> None:
        super().__init__()
        self.tags = tags

    def loss(self, outputs: Outputs, windows: Sequence[Window], mask: Tensor) -> Tensor:
        """Compute the mean over words of -log p of the gold tag.

        Args:
            outputs: Outputs of the forward pass.
            windows: Windows of the batch, with gold tags.
            mask: True where there is a word: (windows, words).
        """
        scores = outputs[0]
        labels = _labels(windows, mask, IGNORED)
        return nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())

    def count(self, windows: Sequence[Window]) -> int:
        """Count the words."""
        return sum(window.n_words for window in windows)

    def join(self, windows: Sequence[tuple[Window, Outputs]]) -> list[WordSpan]:
        """Return the spans of a text from the outputs of its windows, in order."""
        own = [
            outputs[0][window.own[0] - window.first : window.own[1] - window.first]
            for window, outputs in windows
        ]
        return self.tags.decode(self.best(torch.cat(own).numpy()).tolist())

    def best(self, scores: Scores) -> npt.NDArray[np.int64]:
        """Choose the tags of a text: (words, tags) to (words,)."""
        best: npt.NDArray[np.int64] = scores.argmax(axis=1)
        return best


class CrfHead(TagHead):
    """A linear-chain CRF: learned scores for transitions between tags."""

    def __init__(self, tags: TagSet) -> None:
        super().__init__(tags)
        n_tags = len(tags.tags)
        self.transitions = nn.Parameter(torch.zeros(n_tags, n_tags))  # (from, to)
        self.begin = nn.Parameter(torch.zeros(n_tags))
        self.end = nn.Parameter(torch.zeros(n_tags))

    def forward(self, scores: Tensor) -> Outputs:
        """Return the tag scores, and the transition scores repeated for each text."""
        transitions = (self.transitions, self.begin, self.end)
        repeated = (each.float().expand(len(scores), *each.shape) for each in transitions)
        return (scores, *repeated)

    def loss(self, outputs: Outputs, windows: Sequence[Window], mask: Tensor) -> Tensor:
        """Compute -log p of the gold tag sequences, divided by the number of words.

        Args:
            outputs: Outputs of the forward pass.
            windows: Windows of the batch, with gold tags.
            mask: True where there is a word: (windows, words).
        """
        scores, follow, begin, end = outputs
        transitions = (follow[0], begin[0], end[0])
        labels = _labels(windows, mask, 0)
        gold = sequence_scores(scores, labels, mask, transitions)
        return (log_partition(scores, mask, transitions) - gold).sum() / mask.sum()

    def best(self, scores: Scores) -> npt.NDArray[np.int64]:
        """Choose the best tag sequence that the scheme allows."""
        transitions = [
            np.where(allowed, score.detach().float().cpu().numpy(), -np.inf)
            for allowed, score in zip(
                self.tags.may_follow(), (self.transitions, self.begin, self.end), strict=True
            )
        ]
        return viterbi(scores, *transitions)


def sequence_scores(
    scores: Tensor, labels: Tensor, mask: Tensor, transitions: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Compute the scores of given tag sequences: (texts,); every text has at least one word.

    Args:
        scores: Score of each tag at each word: (texts, words, tags).
        labels: Tags: (texts, words).
        mask: True where there is a word: (texts, words).
        transitions: Scores of a tag after another, of the first tag, and of the last.
    """
    follow, begin, end = transitions
    by_word = scores.gather(2, labels[:, :, None])[:, :, 0] * mask
    steps = follow[labels[:, :-1], labels[:, 1:]] * mask[:, 1:]
    last = labels.gather(1, mask.sum(1, keepdim=True) - 1)[:, 0]
    return by_word.sum(1) + steps.sum(1) + begin[labels[:, 0]] + end[last]


def log_partition(
    scores: Tensor, mask: Tensor, transitions: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Compute the log of the sum over all tag sequences of e^score: (texts,).

    Args:
        scores: Score of each tag at each word: (texts, words, tags).
        mask: True where there is a word: (texts, words).
        transitions: Scores of a tag after another, of the first tag, and of the last.
    """
    follow, begin, end = transitions
    reached = begin + scores[:, 0]  # (texts, tags): all ways to the tag of this word
    for word in range(1, scores.shape[1]):
        ways = reached[:, :, None] + follow[None]  # (texts, from, to)
        step = torch.logsumexp(ways, dim=1) + scores[:, word]
        reached = torch.where(mask[:, word, None], step, reached)
    return torch.logsumexp(reached + end, dim=1)


def viterbi(scores: Any, follow: Any, begin: Any, end: Any) -> npt.NDArray[np.int64]:
    """Find the best tag sequence of one text; ties go to the lower tags.

    Args:
        scores: Score of each tag at each word: (words, tags).
        follow: Score of a tag after another: (from, to).
        begin: Score of each tag as the first.
        end: Score of each tag as the last.
    """
    n_words = len(scores)
    back = np.zeros(scores.shape, np.int64)
    reached = begin + scores[0]
    for word in range(1, n_words):
        ways = reached[:, None] + follow  # (from, to)
        back[word] = ways.argmax(axis=0)
        reached = ways.max(axis=0) + scores[word]
    tags = np.zeros(n_words, np.int64)
    tags[-1] = (reached + end).argmax()
    for word in range(n_words - 1, 0, -1):
        tags[word - 1] = back[word, tags[word]]
    return tags


def _labels(windows: Sequence[Window], mask: Tensor, padding: int) -> Tensor:
    """Return the gold tags of windows, padded: (texts, words)."""
    labels = torch.full(mask.shape, padding, dtype=torch.int64)
    for row, window in enumerate(windows):
        labels[row, : window.n_words] = torch.tensor(window.tags)
    return labels.to(mask.device)


_DIM = 64
FIRST, LAST = "first>", "last>"
"""Before the name of a relation: its links between first and between last words, which are spans
whose two words may be in any order."""


class SpanHead(nn.Module):
    """Scores of all spans up to a length, for each entity type (global pointer).

    Args:
        width: Width of the states.
        types: Entity types; those that begin with ``FIRST`` or ``LAST`` are links of relations.
        max_span: Maximum number of words of an entity.
    """

    def __init__(self, width: int, types: tuple[str, ...], max_span: int) -> None:
        super().__init__()
        self.types, self.max_span = types, max_span
        self.first = nn.Linear(width, len(types) * _DIM)
        self.last = nn.Linear(width, len(types) * _DIM)
        self.length = nn.Parameter(torch.zeros(len(types), max_span))
        for layer in (self.first, self.last):
            nn.init.normal_(layer.weight, std=_INIT_STD)
            nn.init.zeros_(layer.bias)
        self._is_link = torch.tensor([kind.startswith((FIRST, LAST)) for kind in types])

    def forward(self, states: Tensor) -> Outputs:
        """Compute span scores: (texts, types, first word, last word), -inf for invalid spans."""
        shape = (*states.shape[:2], len(self.types), _DIM)
        first, last = self.first(states).view(shape), self.last(states).view(shape)
        scores = torch.einsum("bitd,bjtd->btij", first, last) / _DIM**0.5
        words = torch.arange(states.shape[1], device=states.device)
        length = words[None, :] - words[:, None]  # (first, last)
        fits = (length >= 0) & (length < self.max_span)
        bias = self.length.float()[:, length.clamp(0, self.max_span - 1)]
        spans = (scores + bias).masked_fill(~fits, -torch.inf)
        return (torch.where(self._is_link.to(states.device)[:, None, None], scores, spans),)

    def loss(self, outputs: Outputs, windows: Sequence[Window], mask: Tensor) -> Tensor:
        """Compute the multi-label cross-entropy with threshold 0, mean over texts and types.

        Args:
            outputs: Outputs of the forward pass.
            windows: Windows of the batch, with gold spans.
            mask: True where there is a word: (windows, words).
        """
        scores = outputs[0]
        scores = scores.masked_fill(~(mask[:, None, :, None] & mask[:, None, None, :]), -torch.inf)
        gold = torch.zeros(scores.shape, dtype=torch.bool)
        for row, window in enumerate(windows):
            for first, last, kind in window.spans:
                gold[row, kind, first, last] = True
        gold = gold.to(scores.device)
        of_negatives = _log_one_plus(scores.masked_fill(gold, -torch.inf))
        of_positives = _log_one_plus((-scores).masked_fill(~gold, -torch.inf))
        return (of_negatives + of_positives).mean()

    def count(self, windows: Sequence[Window]) -> int:
        """Count the windows."""
        return len(windows)

    def join(self, windows: Sequence[tuple[Window, Outputs]]) -> list[WordSpan]:
        """Return the spans of a text, each from the window where it has the most context."""
        alone = [window for window, _ in windows]
        spans = []
        for index, (window, outputs) in enumerate(windows):
            n_words = window.n_words
            scores = outputs[0][:, :n_words, :n_words]
            for kind, first, last in (scores > 0).nonzero().tolist():
                start, end = window.first + first, window.first + last
                if owner_of(alone, min(start, end), max(start, end)) == index:
                    spans.append((start, end + 1, self.types[kind]))
        return sorted(spans)


def _log_one_plus(scores: Tensor) -> Tensor:
    """Compute log(1 + sum of e^s) over the spans: (texts, types)."""
    flat = scores.flatten(2)
    return torch.logsumexp(torch.cat([flat, torch.zeros_like(flat[:, :, :1])], dim=2), dim=2)


_BATCH_DOCUMENTS = 2000


class NerModel(Predicting[Document]):
    """An encoder with a head that finds entities of some types.

    Args:
        encoder: Encoder, which is trained.
        config: Settings of the task.
        labels: Entity types.
    """

    kind = "ner"
    record = DOCUMENT

    def __init__(self, encoder: TextEncoder, config: NerConfig, labels: tuple[str, ...]) -> None:
        self.config, self.labels = config, labels
        self.tokenizer = TaskTokenizer(encoder)
        self.head: TagHead | SpanHead
        if config.head == "spans":
            self.head = SpanHead(encoder.dim, labels, config.max_span)
            self.network = TaskNetwork(encoder, self.head, config.dropout)
            return
        tags = TagSet(labels, config.scheme)
        self.head = CrfHead(tags) if config.head == "crf" else TagHead(tags)
        self.network = LabelNetwork(
            encoder, tags.named, config.dropout, of_tokens=True, head=self.head
        )

    @classmethod
    def from_examples(
        cls, encoder: TextEncoder, config: NerConfig, documents: Sequence[Document]
    ) -> NerModel:
        """Create an untrained model for the entity types of some documents.

        With ``types = "ignore"`` there is one type; it has a name if the documents have just one.

        Args:
            encoder: Encoder, which is trained.
            config: Settings of the task.
            documents: Training documents.
        """
        types = sorted({mention.type for document in documents for mention in document.mentions})
        if config.types == "ignore":
            types = types if len(types) == 1 else [""]
        if config.relations:
            found = {kind for document in documents for kind, *_ in _related(document)}
            types += [f"{side}{kind}" for kind in sorted(found) for side in (FIRST, LAST)]
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
                links = self._links(examples[text.document], text)
                spans = self._learnable_spans(spans, cut, lost) + links
            windows += [self._labelled(window, text, spans) for window in cut]
        return windows, lost

    def loss(self, network: nn.Module, items: Sequence[Window]) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of a batch of windows."""
        batch = self.network.collate(items)
        return self.head.loss(network(batch), items, batch.mask), {}

    def count(self, items: Sequence[Window]) -> int:
        """Count the words, or windows, that the loss of a batch is a mean over."""
        return self.head.count(items)

    def predict(self, examples: Any, precision: str = "auto") -> list[Document]:
        """Return the documents, or texts, with predicted entities as their mentions."""
        examples, predictions = to_examples(self.record, examples), []
        for start in range(0, len(examples), _BATCH_DOCUMENTS):
            predictions += self._predict(examples[start : start + _BATCH_DOCUMENTS], precision)
        return predictions

    def report(self, examples: Sequence[Document], predictions: Sequence[Document]) -> ClassReport:
        """Evaluate entities by exact span and type; those lost in training count as missed."""
        return entity_report(self._entities(examples), self._entities(predictions))

    def write(
        self, examples: Sequence[Document], predictions: Sequence[Document], path: Path
    ) -> None:
        """Write the documents with predicted entities.

        Args:
            examples: Documents of the file; unused.
            predictions: The documents with predicted entities.
            path: File to write.
        """
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
        relations: dict[int, list[Relation]] = defaultdict(list)
        for index, by_row in sorted(of_text.items()):
            text = texts[index]
            spans = self.head.join([by_row[row] for row in sorted(by_row)])
            found = [span for span in spans if not span[2].startswith((FIRST, LAST))]
            new = list(_mentions(documents[text.document], text, found))
            if self.config.relations:
                first = len(mentions[text.document]) + 1
                new = [replace(each, id=f"T{number}") for number, each in enumerate(new, first)]
                relations[text.document] += _join_links(new, found, {*spans})
            mentions[text.document] += new
        return [
            replace(document, mentions=tuple(mentions[row]), relations=tuple(relations[row]))
            for row, document in enumerate(documents)
        ]

    def _links(self, document: Document, text: TextUnit) -> list[WordSpan]:
        """Return the links of the relations whose mentions are in a text."""
        if not self.config.relations:
            return []
        links = []
        for kind, *pair in _related(document):
            subject, other = align_spans(text.words, pair).tolist()
            if NONE not in (subject[0], other[0]):
                for side, word in ((FIRST, 0), (LAST, 1)):
                    links.append((subject[word], other[word] + 1, f"{side}{kind}"))
        return links

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
            if window.holds(min(first, end - 1), max(first, end - 1))
        )
        return replace(window, spans=inside)

    def _type_of(self, mention: Mention) -> str:
        return self.labels[0] if self.config.types == "ignore" else mention.type

    def _entities(self, documents: Sequence[Document]) -> Iterable[Entity]:
        """Yield what F1 counts: mentions, or relations."""
        for row, document in enumerate(documents):
            if self.config.relations:
                for kind, subject, other in _related(document):
                    yield (row, *subject), *other, kind
                continue
            for mention in document.mentions:
                yield row, mention.start, mention.end, self._type_of(mention)


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


def _related(document: Document) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Yield the type of each relation of two mentions, and their spans."""
    spans = {mention.id: (mention.start, mention.end) for mention in document.mentions}
    for relation in document.relations:
        pair = [spans[name] for _, name in relation.arguments if name in spans]
        if relation.of == "mentions" and len(pair) == 2:
            yield relation.type, pair[0], pair[1]


def _join_links(
    mentions: Sequence[Mention], spans: Sequence[WordSpan], found: Collection[WordSpan]
) -> Iterable[Relation]:
    """Yield a relation for each two mentions whose first words and last words are linked.

    Args:
        mentions: Mentions of a text.
        spans: Span of each.
        found: All spans and links.
    """
    starting: dict[int, list[int]] = defaultdict(list)
    for index, (first, _, _) in enumerate(spans):
        starting[first].append(index)
    for subject, other, kind in sorted(found):
        name = kind.removeprefix(FIRST)
        for one, two in product(starting[subject], starting[other - 1]) if name != kind else ():
            if (spans[one][1] - 1, spans[two][1], f"{LAST}{name}") in found:
                ids = (("subject", mentions[one].id), ("object", mentions[two].id))
                yield Relation(name, ids)

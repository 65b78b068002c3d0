"""Word vectors (skip-gram, GloVe) trained on text, as a similarity measure of names.

Tokens are words, and in Chinese its characters, or its words as rjieba segments them. A name is the
mean of its tokens' vectors; rare tokens are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.errors import InputError
from biograft.kb.names import HAN, normalise
from biograft.kb.sources.files import read_lines
from biograft.progress import Progress
from biograft.text.segmentation.config import CHINESE
from biograft.text.segmentation.words import RjiebaWordSegmenter, Unit, runs
from biograft.text.shards import Shards
from biograft_lab.probing.config import WordVectorConfig
from biograft_lab.probing.similarity.lexical import lexical_similarity
from biograft_lab.probing.similarity.report import QueryNames, Scores, Similarity, Vectors

MIN_COUNT = 5
"""Minimum frequency of a token."""
_SINGLE = rf"\u3005-\u3007\u3041-\u312f{HAN}"  # kana, bopomofo, Chinese characters
_TOKEN = re.compile(rf"[{_SINGLE}]|[^\s{_SINGLE}]+")


Tokenizer = Callable[[str], list[str]]


def tokenize(text: str) -> list[str]:
    """Split a text into Chinese characters and other words, without punctuation.

    >>> tokenize("2型糖尿病 (Type-2)")
    ['2', '型', '糖', '尿', '病', 'type', '2']
    """
    return _TOKEN.findall(normalise(text))


class ChineseWordTokenizer:
    """Splits a text into words, Chinese ones by rjieba with the given names as dictionary."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._segmenter = RjiebaWordSegmenter()
        for name in names:
            grouped = runs(name, CHINESE)
            if len(grouped) == 1 and len(grouped[0]) > 1:
                self._segmenter.add(_form(grouped[0]))

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text, without punctuation."""
        return [_form(word) for run in runs(text, CHINESE) for word in self._segmenter.split(run)]


def _form(units: Iterable[Unit]) -> str:
    return "".join(unit.form for unit in units)


@dataclass(frozen=True)
class TrainingText:
    """Text as token indices, most frequent first, without rare tokens."""

    tokens: list[str]
    counts: npt.NDArray[np.int64]
    token_ids: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int64]  # (lines,)
    split: Tokenizer = tokenize

    def lines(self) -> Iterator[npt.NDArray[np.int32]]:
        """Yield the token indices of each line that is not empty."""
        start = 0
        for end in self.ends.tolist():
            if end > start:
                yield self.token_ids[start:end]
            start = end


@dataclass(frozen=True)
class WordVectors:
    """A vector for each token."""

    tokens: list[str]
    vectors: Vectors
    split: Tokenizer = tokenize
    """Function that splits a text into tokens."""

    def __call__(self, names: QueryNames, progress: Progress | None = None) -> Scores:
        """Score the candidates of each query."""
        return names.cosines(self.encode(names.texts))

    def encode(self, texts: Iterable[str]) -> Vectors:
        """Return the mean token vector of each text; zeros without known tokens.

        A text whose words are all rare has the mean of its characters' vectors.
        """
        rows = {token: row for row, token in enumerate(self.tokens)}
        zeros = np.zeros(self.vectors.shape[1], np.float32)
        means = []
        for text in texts:
            known = [rows[t] for t in self.split(text) if t in rows]
            known = known or [rows[t] for t in tokenize(text) if t in rows]
            means.append(self.vectors[known].mean(axis=0) if known else zeros)
        return np.array(means, np.float32).reshape(-1, self.vectors.shape[1])


def read_text_lines(path: Path) -> Iterator[str]:
    """Read the texts of a file, one a line, or of a folder of annotated text."""
    if path.is_dir():
        yield from (document.text for document in Shards.open(path))
    else:
        yield from (line for _, line in read_lines(path))


def read_training_text(
    path: Path, progress: Progress | None = None, split: Tokenizer = tokenize
) -> TrainingText:
    """Read a text and index its tokens, the same way each time."""
    ids: dict[str, int] = {}
    rows_of_lines: list[npt.NDArray[np.int32]] = []
    for line in read_text_lines(path):
        tokens = split(line)
        row = [ids.setdefault(token, len(ids)) for token in tokens]
        rows_of_lines.append(np.array(row, np.int32))
        if progress:
            progress.advance(1)
    lengths = np.fromiter(map(len, rows_of_lines), np.int64, len(rows_of_lines))
    tokens_of_text = np.concatenate([np.zeros(0, np.int32), *rows_of_lines])
    counts = np.bincount(tokens_of_text, minlength=len(ids))
    order = np.argsort(-counts, kind="stable")
    frequent = order[counts[order] >= MIN_COUNT]
    if not len(frequent):
        raise InputError(
            f"has no word or character {MIN_COUNT} times", path=path, remedy="give more text"
        )
    new_ids = np.full(len(ids), -1, np.int32)
    new_ids[frequent] = np.arange(len(frequent), dtype=np.int32)
    tokens_of_text = new_ids[tokens_of_text]
    lines = np.repeat(np.arange(len(rows_of_lines)), lengths)[tokens_of_text >= 0]
    token_list = list(ids)
    return TrainingText(
        [token_list[k] for k in frequent.tolist()],
        counts[frequent],
        tokens_of_text[tokens_of_text >= 0],
        np.cumsum(np.bincount(lines, minlength=len(rows_of_lines))),
        split,
    )


SGNS_EPOCHS, SGNS_WINDOW, NEGATIVES = 5, 5, 5
_MAX_LINE_TOKENS = 10_000
"""Maximum length of a line for gensim, which would drop the rest."""


def train_sgns(text: TrainingText, config: WordVectorConfig) -> WordVectors:
    """Train skip-gram vectors on text; single-threaded, so reproducible with the same seed."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        _Lines(text),
        vector_size=config.dim,
        window=SGNS_WINDOW,
        min_count=MIN_COUNT,
        sg=1,
        negative=NEGATIVES,
        epochs=config.epochs or SGNS_EPOCHS,
        seed=config.seed,
        workers=1,
    )
    tokens = list(model.wv.index_to_key)
    return WordVectors(tokens, np.asarray(model.wv.vectors, np.float32), text.split)


class _Lines:
    """The lines of a text as tokens; may be iterated several times."""

    def __init__(self, text: TrainingText) -> None:
        self.text = text

    def __iter__(self) -> Iterator[list[str]]:
        for line in self.text.lines():
            for start in range(0, len(line), _MAX_LINE_TOKENS):
                yield [self.text.tokens[k] for k in line[start : start + _MAX_LINE_TOKENS].tolist()]


GLOVE_EPOCHS, GLOVE_WINDOW = 25, 10
FULL_WEIGHT, POWER = 100.0, 0.75
RATE = 0.05
_BATCH = 512
"""Co-occurrences of an update."""


def train_glove(
    text: TrainingText, config: WordVectorConfig, progress: Progress | None = None
) -> WordVectors:
    """Train GloVe vectors on text by AdaGrad; reproducible with the same seed.

    Args:
        text: The training text.
        config: Dimension, epochs and seed.
        progress: Shows the epochs.
    """
    import torch

    counts = count_neighbours(text)
    pairs = torch.from_numpy(np.stack(counts.nonzero()).astype(np.int64))
    values = torch.from_numpy(counts.data).float()
    generator = torch.Generator().manual_seed(config.seed)
    shape = (2, len(text.tokens), config.dim + 1)  # the bias last
    weights = (torch.rand(shape, generator=generator) - 0.5) / config.dim
    tables = [torch.nn.Parameter(table) for table in weights]
    optimizer = torch.optim.Adagrad(tables, lr=RATE, initial_accumulator_value=1)
    n_epochs = config.epochs or GLOVE_EPOCHS
    for epoch in range(n_epochs):
        order = torch.randperm(len(values), generator=generator)
        for batch in torch.split(order, _BATCH):
            optimizer.zero_grad()
            glove_loss(tables[0], tables[1], pairs[:, batch], values[batch]).backward()
            optimizer.step()
        if progress:
            progress.advance(len(values), (epoch + 1) / n_epochs)
    vectors = (tables[0] + tables[1]).detach().numpy()[:, :-1]
    return WordVectors(text.tokens, vectors.astype(np.float32), text.split)


def glove_loss(words: Any, contexts: Any, pairs: Any, counts: Any) -> Any:
    """Return the weighted squared error of the logarithms of co-occurrences, summed.

    Args:
        words: Vectors of the tokens, (tokens, dim + 1): the bias last.
        contexts: Vectors of the tokens as contexts, alike.
        pairs: Token and context of each co-occurrence, (2, pairs).
        counts: How often each occurs, (pairs,).
    """
    w, c = words[pairs[0]], contexts[pairs[1]]
    found = (w[:, :-1] * c[:, :-1]).sum(1) + w[:, -1] + c[:, -1]
    weight = (counts / FULL_WEIGHT).clamp(max=1) ** POWER
    return 0.5 * (weight * (found - counts.log()) ** 2).sum()


def count_neighbours(text: TrainingText) -> Any:
    """Return the co-occurrences of tokens in lines, 1 / distance each: a sparse matrix."""
    from scipy.sparse import coo_matrix, csr_matrix

    n, ids = len(text.tokens), text.token_ids
    lines = np.searchsorted(text.ends, np.arange(len(ids)), side="right")
    total = csr_matrix((n, n))
    for distance in range(1, GLOVE_WINDOW + 1):
        same = lines[distance:] == lines[:-distance]
        ends = ids[:-distance][same], ids[distance:][same]
        found = coo_matrix((np.full(len(ends[0]), 1 / distance), ends), (n, n)).tocsr()
        total = total + found + found.T
    return total.tocoo()


def train_baseline(
    name: str,
    text: Path,
    names: Sequence[str],
    config: WordVectorConfig,
    progress: Progress | None = None,
) -> Similarity:
    """Return a baseline; vectors are trained on a text.

    Args:
        name: ``lexical``, ``sgns`` or ``glove``; with ``-words`` on Chinese words.
        text: The training text.
        names: Names that are words, too.
        config: Settings of the training.
        progress: Shows the steps.
    """
    if name == "lexical":
        return lexical_similarity
    split = ChineseWordTokenizer(names) if name.endswith("-words") else tokenize
    tokens = read_training_text(text, progress, split)
    if name.startswith("sgns"):
        return train_sgns(tokens, config)
    return train_glove(tokens, config, progress)

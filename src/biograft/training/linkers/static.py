"""Distil a static encoder from a transformers encoder whose vectors of all names are in an index.

The table starts with the teacher's vectors of single tokens and words, reduced to its width by
their principal axes. Training makes the vector of each name similar to the teacher's, and the
similarities of the names in a batch distributed like the teacher's. Where mentions with their
concepts are given, those are to be more similar to a name of the concept than to other names.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from biograft.arrays import Flags
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.config import LinkerConfig
from biograft.linking.dense import DenseConfig
from biograft.linking.dense.index import DenseIndex
from biograft.linking.index import IndexConfig, build_index, open_search
from biograft.linking.lexical import LexicalConfig
from biograft.linking.queries import GoldQuery
from biograft.linking.static import (
    POOLING,
    Rows,
    Starts,
    StaticEncoder,
    StaticWeights,
    Vectors,
    WordPieceTokenizer,
    learned_scripts,
    quantise,
    read_tokenizer,
)
from biograft.linking.trained_configs import StaticConfig
from biograft.models import TextEncoder
from biograft.models.batches import pad
from biograft.models.encoder import to_unit_length
from biograft.models.pretrained import describe_tokenizer
from biograft.models.settings import EncoderSettings
from biograft.progress import Progress
from biograft.training import Task, TrainingResult, check_run, start_run, train
from biograft.training.batches import IndependentBatches
from biograft.training.checkpoint import find_checkpoints
from biograft.training.linkers.recipes import LinkerRecipe, LinkerTrainingData, Outcome
from biograft.training.processes import refuse_several

_BLOCK = 8
"""Consecutive names that stay together in a batch: they are often of one concept."""
_TOKEN_BATCH = 512
_SAMPLE = 2048
"""Names by which a finished encoder is compared with its teacher."""
_EXCLUDED = -1e4
"""The logit of a name's similarity to itself."""


class StaticNetwork(nn.Module):
    """The weights of a static encoder in training; the forward pass is that of the encoder.

    Args:
        table: Vectors of tokens and words: (rows, width).
        importance: Weight of each row.
        projection: Maps a mean to the output: (width, dim).
        hidden: Width of the perceptron after it.
    """

    def __init__(self, table: Tensor, importance: Tensor, projection: Tensor, hidden: int) -> None:
        super().__init__()
        dim = projection.shape[1]
        self.table = nn.Parameter(table)  # (rows, width)
        self.importance = nn.Parameter(importance)  # (rows,)
        self.projection = nn.Parameter(projection)  # (width, dim)
        self.expand = nn.Parameter(torch.randn(dim, hidden) / math.sqrt(dim))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.contract = nn.Parameter(torch.zeros(hidden, dim))  # the perceptron starts neutral

    def forward(self, rows: Tensor, starts: Tensor) -> Tensor:
        """Compute the vectors of tokenised texts: (texts, dim), of length 1.

        Args:
            rows: Rows of the table, those of all texts one after the other.
            starts: Start of each text in them, and the end.
        """
        n_texts = len(starts) - 1
        text = torch.arange(n_texts, device=rows.device).repeat_interleave(starts.diff())
        importance = self.importance[rows]
        largest = importance.new_full((n_texts,), -math.inf)
        largest = largest.scatter_reduce(0, text, importance.detach(), "amax")
        weights = (importance - largest[text]).exp()
        total = weights.new_zeros(n_texts).index_add(0, text, weights)
        pooled = functional.embedding_bag(
            rows, self.table, starts[:-1], mode="sum", per_sample_weights=weights / total[text]
        )
        vectors = pooled @ self.projection
        vectors = vectors + (vectors @ self.expand + self.bias).relu() @ self.contract
        return functional.normalize(vectors, dim=1)

    def export(
        self,
        tokenizer: WordPieceTokenizer,
        settings: EncoderSettings,
        name: str,
        scripts: Sequence[str] = (),
    ) -> StaticEncoder:
        """Make the encoder; its table is rounded to 8 bits.

        Args:
            tokenizer: Splits names into rows of the table.
            settings: Settings of an encoder.
            name: Name of the encoder.
            scripts: Scripts that it learned to read; empty means all.
        """
        arrays = {key: value.detach().cpu().numpy() for key, value in self.named_parameters()}
        table, scales = quantise(arrays.pop("table"))
        weights = StaticWeights(table=table, scales=scales, **arrays)
        return StaticEncoder(tokenizer, weights, settings, name, scripts)


@dataclass(frozen=True, slots=True)
class NameBatch:
    """Tokenised names, and the teacher's vectors of them."""

    rows: Rows
    starts: Starts
    targets: Vectors
    gold: tuple[Rows, Starts, Flags] | None = None
    """Tokens of mentions, then of names, and which name is right for a mention."""

    def __len__(self) -> int:
        return len(self.targets)


class TeacherNames:
    """The names of an index and further texts, with the teacher's vectors of length 1.

    Args:
        index: Dense index whose encoder is the teacher.
        more: Further texts.
    """

    def __init__(self, index: DenseIndex, more: Sequence[str]) -> None:
        if not isinstance(index.encoder, TextEncoder):
            raise ConfigError(
                f"encoder: the teacher of a static encoder is a transformers model, and "
                f"{index.encoder.name} is a static encoder itself"
            )
        self.teacher = index.encoder
        known: set[str] = set(index.texts.to_pylist())
        prepared = dict.fromkeys(self.teacher.prepare(text) for text in more)
        self.more = [text for text in prepared if text and text not in known]
        self.texts: list[str] = [*index.texts.to_pylist(), *self.more]
        self._stored = index.vectors
        self._more = self.teacher.encode(self.more)

    def __len__(self) -> int:
        return len(self.texts)

    def vectors(self, indices: Starts) -> Vectors:
        """Return the teacher's vectors of some texts: (texts, dim)."""
        vectors = np.empty((len(indices), self.teacher.dim), np.float32)
        stored = indices < self._stored.n_rows
        vectors[stored] = self._stored.take(indices[stored])
        vectors[~stored] = self._more[indices[~stored] - self._stored.n_rows]
        return to_unit_length(vectors)

    def gold(self, kb: KnowledgeBase, queries: Sequence[GoldQuery]) -> list[tuple[int, list[int]]]:
        """Return the numbers of the texts of mentions, and of the names of their concepts.

        Args:
            kb: Knowledge base of the names.
            queries: Mentions with their concepts; those that it does not have are left out.
        """
        number = {text: n for n, text in enumerate(self.texts)}
        found = []
        for query in queries:
            known = [kb.concept_at(kb.row(each)) for each in query.gold if each in kb]
            named = {self.teacher.prepare(name.text) for each in known for name in each.names}
            right = sorted(number[name] for name in named if name in number)
            mentions = map(self.teacher.prepare, query.parts)
            found += [(number[text], right) for text in mentions if text in number and right]
        return found

    def fingerprint(self) -> str:
        """Compute a hash of the texts."""
        return hashlib.sha256(json.dumps(self.texts).encode()).hexdigest()


class TeacherBatches(IndependentBatches[NameBatch]):
    """Batches of names in an order that depends on the seed and the epoch only.

    Args:
        names: Names with the vectors of the teacher.
        tokenizer: Splits names into rows of the table.
        config: Settings of the training.
        gold: Numbers of mentions, and of the names of their concepts.
    """

    def __init__(
        self,
        names: TeacherNames,
        tokenizer: WordPieceTokenizer,
        config: StaticConfig,
        gold: Sequence[tuple[int, Sequence[int]]] = (),
    ) -> None:
        self.names, self.config = names, config
        self._gold = gold if config.gold_weight else ()
        rows, starts = tokenizer.rows_of(names.texts, config.max_length)
        self._rows, self._starts = rows, starts
        self._usable = np.flatnonzero(np.diff(starts) > 0)
        self._size = config.training.plan_batch().size
        if not len(self._usable):
            raise ConfigError("names: there is none to learn from; give a store with names")

    def __len__(self) -> int:
        return math.ceil(len(self._usable) / self._size)

    def every(self, step: int, epoch: int, position: int) -> Iterator[NameBatch]:
        """Yield every ``step``-th batch of an epoch from a position on.

        Args:
            step: Distance between batches.
            epoch: Number of the epoch.
            position: First batch.
        """
        n_blocks = math.ceil(len(self._usable) / _BLOCK)
        blocks = np.random.default_rng([self.config.training.seed, epoch]).permutation(n_blocks)
        order = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        order = self._usable[order[order < len(self._usable)]]
        for number in range(position, len(self), step):
            chosen = order[number * self._size : (number + 1) * self._size]
            gold = self._gold_batch(epoch, number) if self._gold else None
            yield NameBatch(*self._tokens(chosen), self.names.vectors(chosen), gold)

    def _tokens(self, chosen: Starts) -> tuple[Rows, Starts]:
        """Return the tokens of some texts."""
        lengths = self._starts[chosen + 1] - self._starts[chosen]
        starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        shifts = np.repeat(self._starts[chosen] - starts[:-1], lengths)
        return self._rows[np.arange(starts[-1]) + shifts], starts

    def _gold_batch(self, epoch: int, number: int) -> tuple[Rows, Starts, Flags]:
        """Draw mentions, a right name of each, and other names of the index."""
        rng = np.random.default_rng([self.config.training.seed, epoch, number])
        n = min(self.config.n_mentions, len(self._gold))
        drawn = [self._gold[row] for row in rng.choice(len(self._gold), n, replace=False)]
        n_names = len(self.names) - len(self.names.more)
        others = rng.choice(n_names, min(self.config.n_names, n_names), replace=False)
        names = np.union1d([rng.choice(right) for _, right in drawn], others)
        is_right = np.array([np.isin(names, right) for _, right in drawn])
        mentions = np.array([mention for mention, _ in drawn])
        return *self._tokens(np.append(mentions, names)), is_right


def choose_words(
    tokenizer: WordPieceTokenizer, texts: Sequence[str], min_count: int, max_words: int
) -> list[str]:
    """Choose the words and pairs of Chinese characters that occur often, most frequent first.

    They are of several tokens.

    Args:
        tokenizer: Tokenizer of the word pieces.
        texts: Names to count words in.
        min_count: Least number of occurrences of a word.
        max_words: Most words that are chosen.
    """
    parts = Counter(part for text in texts for part in text.split())
    counts: Counter[str] = Counter()
    for part, count in parts.items():
        for word in tokenizer.split(part):
            counts[word] += count
        for pair in tokenizer.pairs(tokenizer.split(part)):
            counts[pair] += count
    frequent = (item for item in counts.items() if item[1] >= min_count)
    ordered = sorted(frequent, key=lambda item: (-item[1], item[0]))
    return [word for word, _ in ordered if tokenizer.is_split(word)][:max_words]


def drop_rare(
    tokenizer: WordPieceTokenizer, texts: Sequence[str], min_count: int
) -> WordPieceTokenizer:
    """Return a tokenizer without the tokens that few texts have, but for letters and digits.

    Args:
        tokenizer: Tokenizer of the word pieces.
        texts: Names to count tokens in.
        min_count: Least number of occurrences of a token.
    """
    settings, known = tokenizer.settings, tokenizer.vocabulary
    rows, _ = tokenizer.rows_of(texts, max(map(len, texts), default=0))
    counts = np.bincount(rows, minlength=len(known)).tolist()
    kept = [
        token
        for token, count in zip(known, counts, strict=True)
        if count >= min_count
        or token == settings.unk_token
        or (len(token.removeprefix(settings.continuing_subword_prefix)) == 1 and token.isascii())
    ]
    return WordPieceTokenizer(kept, (), settings)


def make_network(
    teacher: TextEncoder,
    tokenizer: WordPieceTokenizer,
    config: StaticConfig,
    *,
    empty: bool = False,
) -> StaticNetwork:
    """Make a network whose table has the teacher's vectors of tokens and words, reduced.

    At first a word counts as much as its tokens together.

    Args:
        teacher: Encoder whose vectors of tokens are the table.
        tokenizer: Splits names into rows of the table.
        config: Settings of the training.
        empty: Leave the weights 0, for a checkpoint to be loaded.
    """
    width, dim = config.width, teacher.dim
    if width > dim:
        raise ConfigError(
            f"config.width: expected at most {dim}, the width of the teacher, found {width}"
        )
    if empty:
        n_rows = len(tokenizer)
        table, importance = torch.zeros(n_rows, width), torch.zeros(n_rows)
        return StaticNetwork(table, importance, torch.zeros(width, dim), config.hidden)
    special: list[int] = teacher.tokenizer("")["input_ids"]
    padding = int(teacher.tokenizer.pad_token_id or 0)
    tokens = teacher.tokenizer.convert_tokens_to_ids(list(tokenizer.vocabulary))
    parts = []
    teacher.model.eval()
    with torch.inference_mode():
        for start in range(0, len(tokens), _TOKEN_BATCH):
            ids = tokens[start : start + _TOKEN_BATCH]
            batch = pad([[*special[:1], token, *special[1:]] for token in ids], padding)
            parts.append(teacher.embed(batch).float().cpu())
    parts.append(torch.from_numpy(teacher.encode(tokenizer.words)))
    vectors = functional.normalize(torch.cat(parts), dim=1)
    _, axes = torch.linalg.eigh(vectors.T @ vectors)  # by ascending variance
    axes = axes[:, -width:].flip(1)  # (dim, width)
    importance = torch.zeros(len(tokenizer))
    for row, word in enumerate(tokenizer.words, len(tokenizer.vocabulary)):
        importance[row] = math.log(len(tokenizer.rows_of_part(word)) - 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        return StaticNetwork(vectors @ axes, importance, axes.T.contiguous(), config.hidden)


def distillation_loss(
    vectors: Tensor, targets: Tensor, config: StaticConfig
) -> tuple[Tensor, dict[str, float]]:
    """Compute the mean cosine distance, plus the divergence of the similarities in the batch.

    Args:
        vectors: Vectors of the student, of length 1: (names, dim).
        targets: Vectors of the teacher, of length 1: (names, dim).
        config: Temperature of the similarities, and their weight.
    """
    distance = 1 - (vectors * targets).sum(1).mean()
    itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    own, wanted = (
        (part @ part.T / config.temperature).masked_fill(itself, _EXCLUDED).log_softmax(1)
        for part in (vectors, targets)
    )
    divergence = functional.kl_div(own, wanted, log_target=True, reduction="batchmean")
    statistics = {"distance": float(distance.detach()), "divergence": float(divergence.detach())}
    return distance + config.similarity_weight * divergence, statistics


def _loss(
    config: StaticConfig, model: nn.Module, batch: NameBatch
) -> tuple[Tensor, dict[str, float]]:
    device = next(model.parameters()).device
    rows, starts, targets = (
        torch.from_numpy(part).to(device) for part in (batch.rows, batch.starts, batch.targets)
    )
    loss, statistics = distillation_loss(model(rows.long(), starts), targets, config)
    if batch.gold is not None:
        rows, starts, is_right = (torch.from_numpy(part).to(device) for part in batch.gold)
        loss_gold = gold_loss(model(rows.long(), starts), is_right, config.temperature)
        loss = loss + config.gold_weight * loss_gold
        statistics["gold"] = float(loss_gold.detach())
    return loss, statistics


def gold_loss(vectors: Tensor, is_right: Tensor, temperature: float) -> Tensor:
    """Compute the mean cross-entropy of the right names of mentions, all of them together.

    Args:
        vectors: Vectors of the mentions, then of the names, of length 1.
        is_right: Whether a name is right for a mention: (mentions, names).
        temperature: Temperature of the similarities.
    """
    n = len(is_right)
    scores = vectors[:n] @ vectors[n:].T / temperature
    return (scores.logsumexp(1) - scores.masked_fill(~is_right, -math.inf).logsumexp(1)).mean()


@dataclass(frozen=True, slots=True)
class DistilledEncoder:
    """The result of distilling a static encoder."""

    encoder: Path
    """Folder of the encoder."""
    n_texts: int
    """Number of texts that were encoded."""
    n_tokens: int
    """Number of tokens with a vector, words included."""
    n_words: int
    """Number of whole words with a vector."""
    n_weights: int
    """The number of weights outside the table of tokens."""
    cosine: float
    """Mean cosine of its vectors and the teacher's, over a sample of the training texts."""
    training: TrainingResult
    """Steps and losses of the training."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        trained = self.training
        counts = {
            key: getattr(self, key) for key in ("n_texts", "n_tokens", "n_words", "n_weights")
        }
        return {
            **counts,
            "cosine": round(self.cosine, 6),
            "step": trained.step,
            "n_steps": trained.n_steps,
            "loss": trained.loss,
            "seconds": round(trained.seconds, 3),
        }


def distil_encoder(
    index: DenseIndex,
    mentions: Sequence[GoldQuery],
    config: StaticConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> DistilledEncoder:
    """Distil the encoder of an index into ``out/encoder``, on the names indexed and mentions.

    The run is in ``out/training``.

    Args:
        index: Dense index whose encoder is the teacher.
        mentions: Mentions to learn from, beside the names indexed.
        config: Settings of the training.
        out: Folder of the run.
        resume: Continue a run that is there.
        progress: Progress of training.
    """
    progress, out = progress or Progress(), Path(out)
    progress.start("tokens of the teacher")
    names = TeacherNames(index, [part for query in mentions for part in query.parts])
    teacher = names.teacher
    tokenizer = read_tokenizer(describe_tokenizer(teacher.tokenizer), teacher.name)
    if config.min_token_count:
        tokenizer = drop_rare(tokenizer, names.texts, config.min_token_count)
    words = choose_words(tokenizer, names.texts, config.min_word_count, config.max_words)
    tokenizer = WordPieceTokenizer(tokenizer.vocabulary, words, tokenizer.settings)
    gold = names.gold(index.kb, mentions)
    source = TeacherBatches(names, tokenizer, config, gold)
    run = out / "training"
    resume = resume and bool(find_checkpoints(run))
    network = make_network(teacher, tokenizer, config, empty=resume)
    task = Task(
        model=network,
        source=source,
        compute_loss=partial(_loss, config),
        described=json.loads(json.dumps(asdict(config))),
        provenance={
            "teacher": teacher.fingerprint(),
            "texts": names.fingerprint(),
            "gold": hashlib.sha256(json.dumps(gold).encode()).hexdigest(),
        },
    )
    trained = train(task, config.training, run, resume=resume, progress=progress)
    settings = EncoderSettings(pooling=POOLING, max_length=config.max_length, lower=teacher.lower)
    scripts = learned_scripts(names.texts)
    encoder = network.export(tokenizer, settings, str(out / "encoder"), scripts)
    encoder.save_pretrained(out / "encoder", overwrite=True)
    sample = np.random.default_rng(config.training.seed).permutation(len(names))[:_SAMPLE]
    found = encoder.encode([names.texts[row] for row in sample])
    return DistilledEncoder(
        encoder=out / "encoder",
        n_texts=len(names),
        n_tokens=len(tokenizer.vocabulary),
        n_words=len(words),
        n_weights=encoder.weights.n_outside_table,
        cosine=float((found * names.vectors(sample)).sum(1).mean()),
        training=trained,
    )


def train_by_recipe(recipe: LinkerRecipe, data: LinkerTrainingData) -> Outcome:
    """Distil an encoder without torch into ``out/encoder``; ``out/teacher`` indexes the teacher.

    Args:
        recipe: Settings, and the teacher unless there is an index.
        data: The knowledge base, and further texts as mentions.

    Returns:
        The folder of the encoder, and the metrics.

    Raises:
        ConfigError: There is no teacher, or there are two.
    """
    refuse_several(f"recipe {recipe.name}")
    config: StaticConfig = recipe.config
    if (data.index is None) == (recipe.encoder is None):
        raise ConfigError("encoder: name the teacher, or an index with its vectors, not both")
    provenance = {"kb": store_fingerprint(data.kb), "index": str(data.index or "")}
    (check_run if data.resume else start_run)(data.out, recipe.to_json(), provenance)
    folder, languages = data.index or data.out / "teacher", config.languages
    if recipe.encoder is not None and not folder.exists():
        dense = DenseConfig(storage="float16", languages=languages)
        described = IndexConfig(lexical=LexicalConfig(languages=languages), dense=dense)
        build_index(data.kb, folder, recipe.encoder.load(), described, progress=data.progress)
    generators = open_search(data.kb, folder, LinkerConfig(languages=languages)).search.generators
    teacher = next((part for part in generators if isinstance(part, DenseIndex)), None)
    if teacher is None:
        raise ConfigError(f"index: {folder} has no vectors; make one with an encoder")
    result = distil_encoder(
        teacher, data.train, config, data.out, resume=data.resume, progress=data.progress
    )
    finished = result.training.finished
    return Outcome(made={"encoder": result.encoder}, report=result.to_json(), finished=finished)

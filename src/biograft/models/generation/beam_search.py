"""Constrained beam search over a trie of names, as in GENRE and GenBioEL.

At each step, every hypothesis is extended by its best allowed tokens (``best_continuations``), and
the best hypotheses of each mention survive (``select_hypotheses``). ``generate_names`` runs the
search. With as many beams as a mention has names, it scores each of them exactly, and common
beginnings of names once.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from biograft.arrays import Flags, Float32s, Floats, Ints
from biograft.errors import ConfigError
from biograft.models.batches import pad
from biograft.models.generation.config import BeamConfig
from biograft.text.trie import FlatTrie

_WIDE = 256
"""Nodes with more children are processed by themselves, without padding."""


class Continuations(NamedTuple):
    """The best continuations of each hypothesis, best first."""

    nodes: Ints  # (hypotheses, best): -1 where there are fewer
    scores: Floats  # (hypotheses, best): log-probabilities, -inf where there are fewer


def best_continuations(
    logits: Tensor, trie: FlatTrie, nodes: Ints, config: BeamConfig
) -> Continuations:
    """Find the best continuations of each node by the logits (hypotheses, vocabulary).

    There is one more than beams, so that enough remain if one of them ends a name.

    Args:
        logits: Scores of the next token: (hypotheses, vocabulary).
        trie: Names that may be generated.
        nodes: Node of each hypothesis.
        config: Settings of the search.
    """
    n_best = config.beams + 1
    best = Continuations(
        np.full((len(nodes), n_best), -1, np.int64), np.full((len(nodes), n_best), -np.inf)
    )
    if not len(nodes):
        return best
    # on a CPU, log_softmax is faster than the norm alone
    known = logits.float() if config.renormalise else logits.float().log_softmax(dim=-1)
    first, last = (side.astype(np.int64) for side in trie.children(nodes))
    n_each = last - first
    for rows in _groups(nodes, n_each):
        alike = rows[:1] if n_each[rows[0]] > _WIDE else rows
        tokens, mask = _tokens_of(trie, first[alike], n_each[alike])
        indices = torch.from_numpy(rows[:, None] * known.shape[1] + tokens)
        scores = known.take(indices.to(known.device))
        if mask is not None:
            scores.masked_fill_(~torch.from_numpy(mask).to(known.device), -torch.inf)
        top, chosen = scores.topk(min(n_best, scores.shape[1]), dim=-1)
        values = top.double()
        if config.renormalise:
            values -= scores.double().logsumexp(dim=-1, keepdim=True)
        k = values.shape[1]
        best.scores[rows, :k] = values.cpu().numpy()
        children = first[rows][:, None] + chosen.cpu().numpy()
        best.nodes[rows, :k] = np.where(np.isfinite(best.scores[rows, :k]), children, -1)
    return best


def _groups(nodes: Ints, n_each: Ints) -> list[Ints]:
    """Group hypotheses: those at the same wide node, and all at narrow ones."""
    narrow = np.flatnonzero(n_each <= _WIDE)
    wide = np.flatnonzero(n_each > _WIDE)
    groups = [wide[nodes[wide] == node] for node in np.unique(nodes[wide])]
    return [*groups, narrow[n_each[narrow] > 0]] if (n_each[narrow] > 0).any() else groups


def _tokens_of(trie: FlatTrie, first: Ints, n_each: Ints) -> tuple[Ints, Flags | None]:
    """Return the tokens of the children of nodes, (nodes, max children), and their mask."""
    steps = np.arange(int(n_each.max()))
    if (n_each == len(steps)).all():
        return trie.tokens[first[:, None] + steps].astype(np.int64), None
    mask = steps < n_each[:, None]
    children = np.where(mask, first[:, None] + steps, first[:, None])
    return trie.tokens[children].astype(np.int64), mask


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """Unfinished hypotheses of all mentions, in any order."""

    mentions: Ints
    nodes: Ints
    sums: Floats
    """Log-probability of the tokens so far."""
    n_tokens: Ints
    """The number of these tokens."""

    @classmethod
    def begin(cls, roots: Ints) -> Hypotheses:
        """Start one hypothesis for each mention."""
        n = len(roots)
        return cls(np.arange(n), roots.astype(np.int64), np.zeros(n), np.zeros(n, np.int64))

    @classmethod
    def join(cls, some: Hypotheses, others: Hypotheses) -> Hypotheses:
        """Concatenate hypotheses.

        Args:
            some: The first hypotheses.
            others: The hypotheses after them.
        """
        return cls(
            np.concatenate([some.mentions, others.mentions]),
            np.concatenate([some.nodes, others.nodes]),
            np.concatenate([some.sums, others.sums]),
            np.concatenate([some.n_tokens, others.n_tokens]),
        )

    def __len__(self) -> int:
        return len(self.mentions)

    def take(self, rows: Ints) -> Hypotheses:
        """Return the hypotheses of some rows."""
        return Hypotheses(
            self.mentions[rows], self.nodes[rows], self.sums[rows], self.n_tokens[rows]
        )


class BeamStep(NamedTuple):
    """The hypotheses that survive a step."""

    live: Hypotheses
    parents: Ints
    """The row of the hypothesis that each extends."""
    tokens: Ints
    """The last token of each."""


class FinishedNames:
    """The best finished names of each mention.

    Args:
        n_mentions: Number of mentions.
        config: Settings of the search.
    """

    def __init__(self, n_mentions: int, config: BeamConfig) -> None:
        self._config = config
        self._names: list[list[tuple[float, int]]] = [[] for _ in range(n_mentions)]

    def count(self, mention: int) -> int:
        """Return the number of names of a mention."""
        return len(self._names[mention])

    def add(self, mention: int, sequence: int, total: float, n_tokens: int) -> None:
        """Add a name if it is among the best.

        Args:
            mention: Number of the mention.
            sequence: Number of the name in the trie.
            total: Sum of the log-probabilities of its tokens.
            n_tokens: Number of its tokens.
        """
        names = self._names[mention]
        names.append((self.score(total, n_tokens), sequence))
        names.sort(key=_order)
        del names[self._config.beams :]

    def score(self, total: float, n_tokens: int) -> float:
        """Compute the score of a name from its log-probability and length.

        Args:
            total: Sum of the log-probabilities of the tokens.
            n_tokens: Number of tokens.
        """
        return total / float(n_tokens**self._config.length_penalty)

    def is_settled(self, mention: int, best: float) -> bool:
        """Whether to stop: there are enough names, and no hypothesis scores higher than the last.

        This is the early stopping of transformers, and not exact: the score of a hypothesis may
        still rise with nearly certain tokens.

        Args:
            mention: Number of the mention.
            best: Score of its best hypothesis; ``published`` ignores it.
        """
        names = self._names[mention]
        full = len(names) >= self._config.beams
        return full and (self._config.published or best <= names[-1][0])

    def ranked(self) -> tuple[Ints, Float32s]:
        """Return the names of all mentions, best first."""
        shape = (len(self._names), self._config.beams)
        sequences, scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32)
        for row, names in enumerate(self._names):
            for rank, (score, sequence) in enumerate(names):
                sequences[row, rank], scores[row, rank] = sequence, score
        return sequences, scores


def select_hypotheses(
    live: Hypotheses,
    continuations: Continuations,
    trie: FlatTrie,
    finished: FinishedNames,
    config: BeamConfig,
) -> BeamStep:
    """Add finished names, and select the best unfinished continuations of each mention.

    Args:
        live: Unfinished hypotheses, in the order of the mentions.
        continuations: Best continuations of each.
        trie: Names that may be generated.
        finished: Finished names, to which new ones are added.
        config: Settings of the search.
    """
    extended, parents = _in_order(live, continuations)
    sequences = trie.sequence_of(extended.nodes)
    of_mention = np.searchsorted(extended.mentions, extended.mentions)  # its first continuation
    rank = np.arange(len(extended)) - of_mention
    ends, unfinished = np.flatnonzero(sequences >= 0), sequences < 0
    if config.published:
        before = np.array([finished.count(each) for each in extended.mentions[ends].tolist()])
        ends = ends[rank[ends] < config.beams - before.astype(np.int64)]
    else:
        n_before: Ints = np.cumsum(unfinished) - unfinished
        rank = n_before - n_before[of_mention]
    for row in ends.tolist():
        mention, sequence = int(extended.mentions[row]), int(sequences[row])
        finished.add(mention, sequence, float(extended.sums[row]), int(extended.n_tokens[row]))
    rows = np.flatnonzero(unfinished & (rank < config.beams))
    rows = rows[_unsettled(extended.take(rows), finished)]
    survivors = extended.take(rows)
    return BeamStep(survivors, parents[rows], trie.tokens[survivors.nodes].astype(np.int64))


def _in_order(live: Hypotheses, continuations: Continuations) -> tuple[Hypotheses, Ints]:
    """Return all continuations by mention, best first, and the row that each extends."""
    parents, rank = np.nonzero(continuations.nodes >= 0)
    nodes = continuations.nodes[parents, rank]
    sums = live.sums[parents] + continuations.scores[parents, rank]
    extended = Hypotheses(live.mentions[parents], nodes, sums, live.n_tokens[parents] + 1)
    order = np.lexsort((nodes, -sums, extended.mentions))
    return extended.take(order), parents[order]


def _unsettled(survivors: Hypotheses, finished: FinishedNames) -> Ints:
    """Return the rows of mentions that are not settled; the best of each mention is first."""
    mentions, first, n_each = np.unique(survivors.mentions, return_index=True, return_counts=True)
    open_ = [
        not finished.is_settled(
            int(mention), finished.score(float(survivors.sums[row]), int(survivors.n_tokens[row]))
        )
        for mention, row in zip(mentions, first, strict=True)
    ]
    return np.flatnonzero(np.repeat(np.array(open_, np.bool_), n_each))


def _order(name: tuple[float, int]) -> tuple[float, int]:
    return -name[0], name[1]


Rows = Ints


class CachedDecoder:
    """Runs a decoder over changing hypotheses, with key-value caches.

    The cross-attention cache of an encoder-decoder is stored once for each mention, and expanded
    to its hypotheses only when the mentions of the hypotheses change.

    Args:
        model: Encoder-decoder or causal model of transformers.
        sources: Token ids of the mentions: (mentions, length); a causal model has none.
        mask: 1 where there is a token: (mentions, length).
    """

    def __init__(self, model: Any, sources: Tensor, mask: Tensor) -> None:
        self._model, self._device = model, next(model.parameters()).device
        self._mask = mask.to(self._device)
        self._own: Any = DynamicCache(config=model.config.get_text_config(decoder=True))
        self._cache: Any = self._own
        self._known = inspect.signature(model.forward).parameters
        self._is_causal = not model.config.is_encoder_decoder
        if self._is_causal:
            return
        encoder = model.get_encoder()
        states = encoder(input_ids=sources.to(self._device), attention_mask=self._mask)
        self._states: Tensor = states.last_hidden_state
        self._cross: list[tuple[Tensor, Tensor]] = []  # by layer, (mentions, heads, length, width)
        self._mentions: Rows = np.arange(len(sources))
        self._cache = EncoderDecoderCache(self._own, DynamicCache())
        self._expanded: tuple[Tensor, Tensor] = (self._states, self._mask)

    def read(self, prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Rows]:
        """Decode the beginnings of all mentions.

        A causal model reads them at once, padded on the left; an encoder-decoder, whose positions
        start at the first column, as many tokens as the shortest has.

        Args:
            prompts: Tokens before each name.

        Returns:
            The last logits, and the number of tokens of each mention that are not read yet.
        """
        lengths = np.array([len(tokens) for tokens in prompts])
        if self._is_causal:
            padded = pad([tokens[::-1] for tokens in prompts], 0)
            self._mask = padded["attention_mask"].flip(1).to(self._device)
            return self._run(padded["input_ids"].flip(1)), np.zeros_like(lengths)
        n_read = int(lengths.min())
        logits = self._run(torch.tensor([tokens[:n_read] for tokens in prompts]))
        layers = self._cache.cross_attention_cache.layers
        self._cross = [(layer.keys, layer.values) for layer in layers]
        return logits, lengths - n_read

    def step(self, tokens: Rows, parents: Rows, mentions: Rows) -> Tensor:
        """Decode one token of each hypothesis, which extends the row ``parents``.

        Return the logits of the vocabulary, (hypotheses, tokens).

        Args:
            tokens: Token of each hypothesis.
            parents: Row of the last step that each extends.
            mentions: Mention of each, ascending.
        """
        chosen = torch.from_numpy(parents).to(self._device)
        for layer in self._own.layers:
            layer.keys = layer.keys.index_select(0, chosen)
            layer.values = layer.values.index_select(0, chosen)
        if self._is_causal:
            self._mask = functional.pad(self._mask[chosen], (0, 1), value=1)
        elif not np.array_equal(mentions, self._mentions):
            self._expand(mentions)
        return self._run(torch.from_numpy(tokens)[:, None])

    def _expand(self, mentions: Rows) -> None:
        chosen = torch.from_numpy(mentions).to(self._device)
        layers = self._cache.cross_attention_cache.layers
        for layer, (keys, values) in zip(layers, self._cross, strict=True):
            layer.keys, layer.values = keys.index_select(0, chosen), values.index_select(0, chosen)
        self._expanded = (self._states.index_select(0, chosen), self._mask.index_select(0, chosen))
        self._mentions = mentions

    def _run(self, tokens: Tensor) -> Tensor:
        tokens = tokens.to(self._device)
        # transformers 5.24 renamed the argument
        cache = "cache" if "cache" in self._known else "past_key_values"
        inputs: dict[str, Any] = {"use_cache": True, cache: self._cache}
        if self._is_causal:
            positions = (self._mask.cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
            optional = {"position_ids": positions, "logits_to_keep": 1}
            inputs |= {key: value for key, value in optional.items() if key in self._known}
            inputs |= {"input_ids": tokens, "attention_mask": self._mask}
        else:
            states, mask = self._expanded
            read = BaseModelOutput(last_hidden_state=states)
            inputs |= {"decoder_input_ids": tokens, "encoder_outputs": read, "attention_mask": mask}
        scores: Tensor = self._model(**inputs).logits[:, -1]
        return scores


Scores = Float32s


class GenerationInputs(NamedTuple):
    """Tokenised mentions: encoder inputs and decoder prompts."""

    sources: Tensor
    """(mentions, length): tokens of the text, for the encoder; a causal model has none."""
    mask: Tensor
    """1 for tokens, 0 for padding."""
    prompts: Sequence[Sequence[int]]
    """Decoder tokens before each name, at least one."""


class GeneratedNames(NamedTuple):
    """The generated names of each mention, best first."""

    sequences: Ints  # (mentions, beams): indices in the trie, -1 where there are fewer
    """Indices in the trie, (mentions, beams); -1 as padding."""
    scores: Scores  # (mentions, beams): -inf where there are fewer
    """Score of each name."""


@torch.inference_mode()
def generate_names(
    model: Any,
    inputs: GenerationInputs,
    trie: FlatTrie,
    *,
    roots: Ints | None = None,
    config: BeamConfig | None = None,
) -> GeneratedNames:
    """Generate the most probable names of a trie for each mention, by constrained beam search.

    A name begins at the root, or at the node of its mention in ``roots``.

    Args:
        model: Encoder-decoder or causal model of transformers in evaluation mode.
        inputs: Sources of the mentions, and the prompts that their names follow.
        trie: Names that may be generated.
        roots: Node of the trie at which the names of each mention begin; default: its root.
        config: Settings of the search.
    """
    config = config or BeamConfig()
    forced = inputs.prompts
    roots = np.full(len(forced), trie.root, np.int64) if roots is None else roots
    if not len(inputs.sources) == len(inputs.mask) == len(forced) == len(roots):
        raise ConfigError(
            f"mentions: expected as many sources, prompts and roots, found {len(inputs.sources)}, "
            f"{len(forced)} and {len(roots)}"
        )
    if not forced:
        return GeneratedNames(
            np.zeros((0, config.beams), np.int64), np.zeros((0, config.beams), np.float32)
        )
    decoder = CachedDecoder(model, inputs.sources, inputs.mask)
    logits, unread = decoder.read(forced)
    live = Hypotheses.begin(roots)
    finished = FinishedNames(len(forced), config)
    while True:
        in_name = np.flatnonzero(unread[live.mentions] <= 0)
        if len(in_name) < len(live):
            logits = logits[torch.from_numpy(in_name).to(logits.device)]
        continuations = best_continuations(logits, trie, live.nodes[in_name], config)
        step = select_hypotheses(live.take(in_name), continuations, trie, finished, config)
        in_prompt = np.flatnonzero(unread[live.mentions] > 0)
        parents = np.concatenate([in_prompt, in_name[step.parents]])
        tokens = [forced[mention][-unread[mention]] for mention in live.mentions[in_prompt]]
        live = Hypotheses.join(live.take(in_prompt), step.live)
        if not len(live):
            return GeneratedNames(*finished.ranked())
        unread = unread - 1
        last = np.concatenate([np.array(tokens, np.int64), step.tokens])
        logits = decoder.step(last, parents, live.mentions)

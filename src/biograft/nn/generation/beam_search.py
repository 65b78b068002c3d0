"""What may follow each hypothesis: the best few of the tokens that some name goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from biograft.errors import ConfigError
from biograft.nn.batches import pad
from biograft.nn.generation.config import BeamConfig
from biograft.nn.generation.trie import FlatTrie, Ints

Floats = npt.NDArray[np.float64]
_WIDE = 256
"""Children from which on a node is looked at by itself, not padded beside others."""


class Following(NamedTuple):
    """The best continuations of each hypothesis, best first."""

    nodes: Ints  # (hypotheses, best): -1 where there are fewer
    scores: Floats  # (hypotheses, best): log-probabilities, -inf where there are fewer


def best_following(logits: Tensor, trie: FlatTrie, nodes: Ints, config: BeamConfig) -> Following:
    """Find what follows each node best, by the scores (hypotheses, vocabulary).

    One more than there are beams is kept of each, so that where one is an end, enough go on.
    """
    n_best = config.beams + 1
    best = Following(
        np.full((len(nodes), n_best), -1, np.int64), np.full((len(nodes), n_best), -np.inf)
    )
    if not len(nodes):
        return best
    # on processors quicker than the norm alone, and what is wanted of it is little
    known = logits.float() if config.renormalise else logits.float().log_softmax(dim=-1)
    first, last = (side.astype(np.int64) for side in trie.children(nodes))
    n_each = last - first
    for rows in _groups(nodes, n_each):
        alike = rows[:1] if n_each[rows[0]] > _WIDE else rows
        tokens, there = _tokens_of(trie, first[alike], n_each[alike])
        places = torch.from_numpy(rows[:, None] * known.shape[1] + tokens)
        scores = known.take(places.to(known.device))
        if there is not None:
            scores.masked_fill_(~torch.from_numpy(there).to(known.device), -torch.inf)
        top, chosen = scores.topk(min(n_best, scores.shape[1]), dim=-1)
        values = top.double()
        if config.renormalise:
            values -= scores.double().logsumexp(dim=-1, keepdim=True)
        k = values.shape[1]
        best.scores[rows, :k] = values.cpu().numpy()
        found = first[rows][:, None] + chosen.cpu().numpy()
        best.nodes[rows, :k] = np.where(np.isfinite(best.scores[rows, :k]), found, -1)
    return best


def _groups(nodes: Ints, n_each: Ints) -> list[Ints]:
    """Put hypotheses together: those at one wide node, and all at narrow ones."""
    narrow = np.flatnonzero(n_each <= _WIDE)
    wide = np.flatnonzero(n_each > _WIDE)
    groups = [wide[nodes[wide] == node] for node in np.unique(nodes[wide])]
    return [*groups, narrow[n_each[narrow] > 0]] if (n_each[narrow] > 0).any() else groups


def _tokens_of(
    trie: FlatTrie, first: Ints, n_each: Ints
) -> tuple[Ints, npt.NDArray[np.bool_] | None]:
    """Give the tokens of the children of nodes, (nodes, most children), and which are there."""
    steps = np.arange(int(n_each.max()))
    if (n_each == len(steps)).all():
        return trie.tokens[first[:, None] + steps].astype(np.int64), None
    there = steps < n_each[:, None]
    places = np.where(there, first[:, None] + steps, first[:, None])
    return trie.tokens[places].astype(np.int64), there


@dataclass(frozen=True, slots=True)
class Live:
    """Hypotheses that go on, those of a mention side by side or not."""

    mentions: Ints
    nodes: Ints
    sums: Floats
    """Log-probability of the tokens of the name so far."""
    n_tokens: Ints
    """How many these are."""

    @classmethod
    def begin(cls, roots: Ints) -> Live:
        """Begin one for each mention."""
        n = len(roots)
        return cls(np.arange(n), roots.astype(np.int64), np.zeros(n), np.zeros(n, np.int64))

    @classmethod
    def join(cls, some: Live, others: Live) -> Live:
        """Put hypotheses behind others."""
        return cls(
            np.concatenate([some.mentions, others.mentions]),
            np.concatenate([some.nodes, others.nodes]),
            np.concatenate([some.sums, others.sums]),
            np.concatenate([some.n_tokens, others.n_tokens]),
        )

    def __len__(self) -> int:
        return len(self.mentions)

    def take(self, rows: Ints) -> Live:
        """Give some of them."""
        return Live(self.mentions[rows], self.nodes[rows], self.sums[rows], self.n_tokens[rows])


class GoingOn(NamedTuple):
    """What a step leaves alive."""

    live: Live
    parents: Ints
    """The row that each comes from."""
    tokens: Ints
    """The token that each has been lengthened by."""


class Finished:
    """The names that have ended, the best of each mention."""

    def __init__(self, n_mentions: int, config: BeamConfig) -> None:
        self._config = config
        self._names: list[list[tuple[float, int]]] = [[] for _ in range(n_mentions)]

    def count(self, mention: int) -> int:
        """Say how many names a mention has."""
        return len(self._names[mention])

    def add(self, mention: int, sequence: int, total: float, n_tokens: int) -> None:
        """Keep a name if it is among the best."""
        names = self._names[mention]
        names.append((self.score(total, n_tokens), sequence))
        names.sort(key=_order)
        del names[self._config.beams :]

    def score(self, total: float, n_tokens: int) -> float:
        """Give what a name of these tokens scores."""
        return total / float(n_tokens**self._config.length_penalty)

    def is_settled(self, mention: int, best: float) -> bool:
        """Whether to stop: there are names enough, and no hypothesis scores more than the last.

        ``best`` is what the best hypothesis scores now; ``published`` does not ask for it. This is
        the usual early stop, as in transformers, and no bound: a hypothesis that goes on with
        tokens that are nearly certain rises with its length, and might have come among the names.
        """
        names = self._names[mention]
        full = len(names) >= self._config.beams
        return full and (self._config.published or best <= names[-1][0])

    def ranked(self) -> tuple[Ints, npt.NDArray[np.float32]]:
        """Give the names of all mentions, best first."""
        shape = (len(self._names), self._config.beams)
        sequences, scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32)
        for row, names in enumerate(self._names):
            for place, (score, sequence) in enumerate(names):
                sequences[row, place], scores[row, place] = sequence, score
        return sequences, scores


def choose(
    live: Live, following: Following, trie: FlatTrie, finished: Finished, config: BeamConfig
) -> GoingOn:
    """Keep what is best among all continuations of each mention."""
    found, parents = _in_order(live, following)
    ended = trie.sequence_of(found.nodes)
    of_mention = np.searchsorted(found.mentions, found.mentions)  # its first continuation
    rank = np.arange(len(found)) - of_mention
    ends, goes = np.flatnonzero(ended >= 0), ended < 0
    if config.published:
        before = np.array([finished.count(each) for each in found.mentions[ends].tolist()])
        ends = ends[rank[ends] < config.beams - before.astype(np.int64)]
    else:
        so_far: Ints = np.cumsum(goes) - goes
        rank = so_far - so_far[of_mention]
    for row in ends.tolist():
        mention, sequence = int(found.mentions[row]), int(ended[row])
        finished.add(mention, sequence, float(found.sums[row]), int(found.n_tokens[row]))
    rows = np.flatnonzero(goes & (rank < config.beams))
    rows = rows[_unsettled(found.take(rows), finished)]
    going_on = found.take(rows)
    return GoingOn(going_on, parents[rows], trie.tokens[going_on.nodes].astype(np.int64))


def _in_order(live: Live, following: Following) -> tuple[Live, Ints]:
    """List all continuations, mention by mention, the best first, and the row of each before."""
    parents, place = np.nonzero(following.nodes >= 0)
    nodes = following.nodes[parents, place]
    sums = live.sums[parents] + following.scores[parents, place]
    found = Live(live.mentions[parents], nodes, sums, live.n_tokens[parents] + 1)
    order = np.lexsort((nodes, -sums, found.mentions))
    return found.take(order), parents[order]


def _unsettled(going_on: Live, finished: Finished) -> Ints:
    """Give the rows of the mentions that may yet find better names; the best stands first."""
    mentions, first, n_each = np.unique(going_on.mentions, return_index=True, return_counts=True)
    open_ = [
        not finished.is_settled(
            int(mention), finished.score(float(going_on.sums[row]), int(going_on.n_tokens[row]))
        )
        for mention, row in zip(mentions, first, strict=True)
    ]
    return np.flatnonzero(np.repeat(np.array(open_, np.bool_), n_each))


def _order(name: tuple[float, int]) -> tuple[float, int]:
    return -name[0], name[1]


Rows = npt.NDArray[np.int64]


class Stepper:
    """Runs a decoder over hypotheses that come and go.

    What a mention's hypotheses see of its source is the same, so it is kept once a mention and
    laid out anew only when other hypotheses than before are alive.
    """

    def __init__(self, model: Any, sources: Tensor, mask: Tensor) -> None:
        self._model, self._device = model, next(model.parameters()).device
        self._mask = mask.to(self._device)
        encoder = model.get_encoder()
        states = encoder(input_ids=sources.to(self._device), attention_mask=self._mask)
        self._states: Tensor = states.last_hidden_state
        self._own: Any = DynamicCache(config=model.config.get_text_config(decoder=True))
        self._seen: list[tuple[Tensor, Tensor]] = []  # by layer, (mentions, heads, length, width)
        self._layout: Rows = np.arange(len(sources))
        self._cache: Any = EncoderDecoderCache(self._own, DynamicCache())
        self._laid: tuple[Tensor, Tensor] = (self._states, self._mask)

    def read(self, tokens: Tensor) -> Tensor:
        """Read what every mention begins with, (mentions, length); give the last scores."""
        logits = self._run(tokens)
        layers = self._cache.cross_attention_cache.layers
        self._seen = [(layer.keys, layer.values) for layer in layers]
        return logits

    def step(self, tokens: Rows, parents: Rows, mentions: Rows) -> Tensor:
        """Go on with one token for each hypothesis, whose row before was ``parents``.

        Gives the scores of the vocabulary, (hypotheses, tokens).
        """
        chosen = torch.from_numpy(parents).to(self._device)
        for layer in self._own.layers:
            layer.keys = layer.keys.index_select(0, chosen)
            layer.values = layer.values.index_select(0, chosen)
        if not np.array_equal(mentions, self._layout):
            self._lay_out(mentions)
        return self._run(torch.from_numpy(tokens)[:, None])

    def _lay_out(self, mentions: Rows) -> None:
        chosen = torch.from_numpy(mentions).to(self._device)
        layers = self._cache.cross_attention_cache.layers
        for layer, (keys, values) in zip(layers, self._seen, strict=True):
            layer.keys, layer.values = keys.index_select(0, chosen), values.index_select(0, chosen)
        self._laid = (self._states.index_select(0, chosen), self._mask.index_select(0, chosen))
        self._layout = mentions

    def _run(self, tokens: Tensor) -> Tensor:
        states, mask = self._laid
        given = self._model(
            decoder_input_ids=tokens.to(self._device),
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            past_key_values=self._cache,
            use_cache=True,
        )
        scores: Tensor = given.logits[:, -1]
        return scores


Scores = npt.NDArray[np.float32]


class Asked(NamedTuple):
    """Mentions as a model reads them."""

    sources: Tensor
    """(mentions, length): tokens of the text, for the encoder."""
    mask: Tensor
    """1 where there is a token, 0 at padding."""
    prompts: Sequence[Sequence[int]]
    """Tokens that the decoder is given before each name, none or some."""


class Found(NamedTuple):
    """The names found for each mention, best first."""

    sequences: Ints  # (mentions, beams): numbers of the trie's sequences, -1 where there are fewer
    scores: Scores  # (mentions, beams): -inf where there are fewer


@torch.inference_mode()
def generate_names(
    model: Any,
    asked: Asked,
    trie: FlatTrie,
    *,
    start: int,
    roots: Ints | None = None,
    config: BeamConfig | None = None,
) -> Found:
    """Write the likeliest names of a trie for each mention.

    ``model`` is an encoder-decoder of transformers, in its inference mode; a prompt follows the
    token ``start``. A name begins at the root, or at the node of its mention in ``roots``.
    """
    config = config or BeamConfig()
    forced = [[start, *prompt] for prompt in asked.prompts]
    roots = np.full(len(forced), trie.root, np.int64) if roots is None else roots
    if not len(asked.sources) == len(asked.mask) == len(forced) == len(roots):
        raise ConfigError(
            f"mentions: expected as many sources, prompts and roots, found {len(asked.sources)}, "
            f"{len(forced)} and {len(roots)}"
        )
    if not forced:
        return Found(np.zeros((0, config.beams), np.int64), np.zeros((0, config.beams), np.float32))
    lengths = np.array([len(tokens) for tokens in forced])
    stepper = Stepper(model, asked.sources, asked.mask)
    n_read = int(lengths.min())
    logits = stepper.read(torch.tensor([tokens[:n_read] for tokens in forced]))
    live = Live.begin(roots)
    finished = Finished(len(forced), config)
    while True:
        named = np.flatnonzero(lengths[live.mentions] <= n_read)
        following = best_following(
            logits[torch.from_numpy(named).to(logits.device)] if len(named) < len(live) else logits,
            trie, live.nodes[named], config,
        )  # fmt: skip
        going_on = choose(live.take(named), following, trie, finished, config)
        waiting = np.flatnonzero(lengths[live.mentions] > n_read)
        parents = np.concatenate([waiting, named[going_on.parents]])
        tokens = [forced[mention][n_read] for mention in live.mentions[waiting]]
        live = Live.join(live.take(waiting), going_on.live)
        if not len(live):
            return Found(*finished.ranked())
        n_read += 1
        steps = np.concatenate([np.array(tokens, np.int64), going_on.tokens])
        logits = stepper.step(steps, parents, live.mentions)


_ROWS = 256
"""Names that are scored at once."""


@torch.inference_mode()
def score_names(
    model: Any,
    asked: Asked,
    names: Sequence[Sequence[Sequence[int]]],
    *,
    start: int,
    length_penalty: float = 1.0,
) -> list[Scores]:
    """Score names, given as tokens with their end, for each mention: the mean log-probability.

    The mean is over the tokens of the name and its end, over the whole vocabulary, as
    ``generate_names`` scores what it finds.
    """
    if not len(asked.sources) == len(asked.prompts) == len(names):
        raise ConfigError(
            f"mentions: expected as many sources, prompts and lists of names, found "
            f"{len(asked.sources)}, {len(asked.prompts)} and {len(names)}"
        )
    if any(not name for own in names for name in own):
        raise ConfigError("names: expected at least one token each, found none")
    device = next(model.parameters()).device
    mask = asked.mask.to(device)
    states = model.get_encoder()(input_ids=asked.sources.to(device), attention_mask=mask)
    wanted = [
        (mention, [start, *asked.prompts[mention], *name], len(name))
        for mention, own in enumerate(names)
        for name in own
    ]
    found: list[float] = []
    for first in range(0, len(wanted), _ROWS):
        rows, tokens, lengths = zip(*wanted[first : first + _ROWS], strict=True)
        chosen = torch.tensor(rows, device=device)
        given = pad([line[:-1] for line in tokens], 0)
        logits = model(
            decoder_input_ids=given["input_ids"].to(device),
            encoder_outputs=BaseModelOutput(states.last_hidden_state.index_select(0, chosen)),
            attention_mask=mask.index_select(0, chosen),
            use_cache=False,
        ).logits
        found += _sums(logits, tokens, lengths)
    each = iter(found)
    return [
        np.array([next(each) / len(name) ** length_penalty for name in own], np.float32)
        for own in names
    ]


def _sums(logits: Tensor, tokens: Sequence[Sequence[int]], lengths: Sequence[int]) -> list[float]:
    """Add up the log-probabilities of the last tokens of each row."""
    sums = []
    for row, (line, length) in enumerate(zip(tokens, lengths, strict=True)):
        stop = len(line) - 1
        scores = logits[row, stop - length : stop].double().log_softmax(-1)
        own = torch.tensor(line[-length:], device=logits.device)
        sums.append(float(scores.gather(1, own[:, None]).sum()))
    return sums

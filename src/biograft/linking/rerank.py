"""Re-ranking: a cross-encoder reads the mention in its context together with its candidates.

A mention is marked in its context by characters that every vocabulary has and medical text hardly
ever uses, so that no encoder has to learn new tokens.

``reads = "pairs"`` makes an input of the mention with each candidate. ``reads = "set"`` (after
BeLink, 2026) makes one input of the mention with all candidates and NIL: the second texts of the
pairs stand behind the first, which is read once. The positions of each candidate start behind the
mention. A token attends to the mention, to its own candidate, and to the last token of every
candidate, whose state is scored. So candidates are compared in every layer, their order has no
effect, and a set may be longer than the positions of the encoder.

The logit of candidate c is ``ranker * z(r_c) + context * x_c``, that of NIL ``context * x_nil +
nil``, where r is the score of the first ranking, z standardises it, and x is the score of the
cross-encoder.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import pad as padded

from biograft.arrays import Flags, Floats
from biograft.artifacts import ArtifactKind
from biograft.config import from_mapping
from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Context, Evidence
from biograft.linking.fusion import (
    CandidateBuilder,
    CandidatePool,
    check_generators,
    fuse_scores,
    normalise_weights,
)
from biograft.linking.rankers import CandidateRanker, load_ranker
from biograft.linking.trained_configs import RerankConfig
from biograft.models import TextEncoder
from biograft.models.batches import pad, token_batches
from biograft.models.precision import autocast_in
from biograft.models.pretrained import first_position

OPEN, CLOSE = "{", "}"
PARTS = " ; "
_WHITESPACE = re.compile(r"\s")


def mark_mention(form: str, context: Context, n_characters: int, longest: int | None = None) -> str:
    """Mark a mention in a window of its context.

    Words that the window would cut are dropped. If another form was looked up (the long form of an
    abbreviation, a part of a composite), it follows the mention in brackets. Without a context the
    form stands alone.

    Args:
        form: The form that is looked up.
        context: The text and the offsets of the mention.
        n_characters: Size of the window on each side.
        longest: Maximum number of characters of the mention; None: all.

    Returns:
        The window with the marked mention.

    Raises:
        ConfigError: The mention is not within the text.
    """
    before, mention, after = context.split()
    if not mention.strip():
        return f"{OPEN} {form[:longest]} {CLOSE}"
    same = " ".join(mention.split()).casefold() == " ".join(form.split()).casefold()
    marked = mention[:longest] if same else f"{mention[:longest]} ( {form[:longest]} )"
    first = max(0, len(before) - n_characters)
    left = before[first:]
    space = _WHITESPACE.search(left)
    if space and first > 0 and not before[first - 1].isspace():
        left = left[space.end() :]
    right = _truncate_at_word(after, n_characters)
    return f"{left} {OPEN} {marked} {CLOSE} {right}".strip()


def _truncate_at_word(text: str, n_characters: int) -> str:
    """Truncate a text without cutting a word, if words are separated by whitespace."""
    window = text[:n_characters]
    if len(text) <= n_characters or text[n_characters].isspace():
        return window
    spaces = [space.start() for space in _WHITESPACE.finditer(window)]
    return window[: spaces[-1]] if spaces else window


class CandidateTexts:
    """Text of a concept: its name, the matched name, further names, types, definition.

    The most informative parts come first, since long texts are truncated at the end.

    Args:
        kb: Knowledge base of the concepts.
        config: Parts of the text, and their number.
    """

    def __init__(self, kb: KnowledgeBase, config: RerankConfig) -> None:
        self._kb, self._config = kb, config
        self.describe = lru_cache(maxsize=1 << 16)(self._describe)

    def _describe(self, concept: str, match: str) -> str:
        """Return the text of a concept that was found by the name ``match``."""
        entry = self._kb[concept]
        names = {name.casefold(): name for name in (match, entry.name)}
        n_names = len(names) + self._config.n_synonyms
        for name in entry.names:
            if len(names) >= n_names:
                break
            names.setdefault(name.text.casefold(), name.text)
        preferred = entry.name.casefold()
        ordered = [names.pop(preferred), *names.values()]
        types = ", ".join(type_.label or type_.code for type_ in entry.types)
        definition = _truncate_at_word(entry.definition, self._config.definition_characters)
        return PARTS.join(part for part in (*ordered, types, definition) if part)


_CONTEXT_RATIO = 0.6
"""Maximum fraction of a pair's tokens for the mention and its context."""
_MAX_COUNTED = 8
"""Tokens are counted up to this multiple of the room, so that long texts cost little."""


class CandidatePair(NamedTuple):
    """The tokens of a mention and a candidate, or of a mention and several."""

    ids: list[int]
    types: list[int] | None
    """Token type ids, for encoders that use them."""
    owners: list[int]
    """0 for the tokens of the mention, 1 for those of the first candidate, and so on."""


def join_pairs(pairs: Sequence[CandidatePair]) -> CandidatePair:
    """Join the pairs of a mention: its tokens once, then those of each candidate."""
    n, types = pairs[0].owners.index(1), pairs[0].types
    joined = CandidatePair(pairs[0].ids[:n], types and types[:n], [0] * n)
    for number, pair in enumerate(pairs, 1):
        joined.ids.extend(pair.ids[n:])
        joined.owners.extend([number] * (len(pair.ids) - n))
        if joined.types is not None and pair.types is not None:
            joined.types.extend(pair.types[n:])
    return joined


class CandidatePairTokenizer:
    """Tokenizes pairs of mentions and candidates for an encoder.

    Args:
        encoder: Encoder with its tokenizer.
        context_characters: Characters of text on each side of a mention.
    """

    def __init__(self, encoder: TextEncoder, context_characters: int) -> None:
        self.encoder, self.context_characters = encoder, context_characters
        room = encoder.max_length - encoder.tokenizer.num_special_tokens_to_add(pair=True)
        self.context_room = int(_CONTEXT_RATIO * room)
        self._has_types = int(getattr(encoder.model.config, "type_vocab_size", 0) or 0) > 1

    def mark_mentions(self, mentions: Sequence[tuple[str, Context]]) -> list[str]:
        """Return marked mentions with as much of their context as there is room for.

        If the mention alone is too long, it is truncated.
        """
        windows: list[tuple[int, int | None]] = [(self.context_characters, None)] * len(mentions)
        texts = [mark_mention(*mention, self.context_characters) for mention in mentions]
        pending = list(range(len(mentions)))
        while pending:
            counts = zip(pending, self._count([texts[row] for row in pending]), strict=True)
            long = [(row, n_tokens) for row, n_tokens in counts if n_tokens > self.context_room]
            for row, n_tokens in long:
                ratio = self.context_room / n_tokens
                n_characters, longest = windows[row]
                if n_characters:  # the context is narrowed first, then the mention is shortened
                    windows[row] = int(n_characters * ratio), longest
                else:
                    form, context = mentions[row]
                    if longest is None:
                        longest = max(len(form), context.end - context.start)
                    windows[row] = 0, int(longest * ratio)
                texts[row] = mark_mention(*mentions[row], *windows[row])
            pending = [row for row, _ in long if windows[row] != (0, 0)]
        return texts

    def tokenize(self, left: Sequence[str], right: Sequence[str]) -> list[CandidatePair]:
        """Tokenize pairs; long ones are truncated at the end of the right text.

        Args:
            left: Mentions in their text.
            right: Texts of candidates, as many.
        """
        if not left:
            return []
        encoded = self.encoder.tokenizer(
            [self.encoder.prepare(text) for text in left],
            [self.encoder.prepare(text) for text in right],
            truncation="only_second",
            max_length=self.encoder.max_length,
            return_attention_mask=False,
            return_token_type_ids=self._has_types,
        )
        types = encoded["token_type_ids"] if self._has_types else [None] * len(left)
        pairs = []
        for row, (ids, own) in enumerate(zip(encoded["input_ids"], types, strict=True)):
            parts = encoded.sequence_ids(row)  # the last token is the candidate's, if it has none
            n = parts.index(1) if 1 in parts else len(ids) - 1
            pairs.append(CandidatePair(ids, own, [0] * n + [1] * (len(ids) - n)))
        return pairs

    def pad(self, pairs: Sequence[CandidatePair]) -> Mapping[str, Tensor]:
        """Return the padded tensors of a batch; ``owners`` are -1 at padding."""
        batch = pad([pair.ids for pair in pairs], int(self.encoder.tokenizer.pad_token_id or 0))
        if self._has_types:
            batch["token_type_ids"] = pad([pair.types or [] for pair in pairs], 0)["input_ids"]
        batch["owners"] = pad([pair.owners for pair in pairs], -1)["input_ids"]
        return batch

    def _count(self, texts: Sequence[str]) -> list[int]:
        encoded = self.encoder.tokenizer(
            [self.encoder.prepare(text) for text in texts],
            add_special_tokens=False,
            truncation=True,
            max_length=_MAX_COUNTED * self.context_room,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return [len(ids) for ids in encoded["input_ids"]]


ENCODER, HEAD = "encoder", "head.safetensors"
_DROPOUT = 0.1
_RELATIVE = re.compile("relative|rel_embeddings")
"""Weights of positions that are counted along the input, as in DeBERTa and MPNet."""
_TOKENS_AT_ONCE = 8192
"""Tokens of a batch in inference, including padding."""


def _set_inputs(owners: Tensor, start: int, *, causal: bool) -> tuple[dict[str, Tensor], Tensor]:
    """Return the positions and the attention of sets, and which tokens are the last of candidates.

    Args:
        owners: As in ``CandidatePair``, -1 at padding: (batch, tokens).
        start: The first position of the encoder.
        causal: Attend only to earlier tokens, as a decoder does; last tokens to one another.
    """
    index = torch.arange(owners.shape[1], device=owners.device)
    first = torch.where(padded(owners, (1, 0), value=-2).diff() != 0, index, 0).cummax(1).values
    behind = (owners > 0) * (owners == 0).sum(1, keepdim=True)
    positions = (index - first + behind) * (owners >= 0) + start
    last = (padded(owners, (0, 1), value=-2).diff() != 0) & (owners > 0)
    allowed = (owners[:, :, None] == owners[:, None]) | (owners == 0)[:, None]
    if causal:
        allowed &= positions[:, :, None] >= positions[:, None]
    allowed |= last[:, None] & (last[:, :, None] | (not causal))
    attention = torch.zeros(allowed.shape, device=owners.device).masked_fill(~allowed, -torch.inf)
    return {"position_ids": positions, "attention_mask": attention[:, None]}, last


class CrossEncoder(nn.Module):
    """An encoder with a linear head that scores candidates, and a bias for NIL.

    Args:
        encoder: Encoder, which is trained.
        config: Settings of the training.
    """

    def __init__(self, encoder: TextEncoder, config: RerankConfig) -> None:
        super().__init__()
        self.encoder, self.reads = encoder, config.reads
        self.pairs = CandidatePairTokenizer(encoder, config.context_characters)
        self.model: nn.Module = encoder.model
        self.dropout = nn.Dropout(_DROPOUT)
        self.head = nn.Linear(encoder.dim, 1)
        self.nil_bias = nn.Parameter(torch.zeros(1))
        start = torch.Generator().manual_seed(config.training.seed)
        with torch.no_grad():
            self.head.weight.normal_(std=0.02, generator=start)
            self.head.bias.zero_()
        self.to(encoder.device)

    @classmethod
    def start(cls, config: RerankConfig) -> CrossEncoder:
        """Build an untrained cross-encoder from the configured encoder."""
        encoder = TextEncoder.from_pretrained(
            config.encoder, pooling=config.pooling, max_length=config.max_length
        )
        accepted = inspect.signature(encoder.model.forward).parameters
        relative = any(map(_RELATIVE.search, encoder.model.state_dict()))
        if config.reads == "set" and ("position_ids" not in accepted or relative):
            raise ConfigError(
                f"reads: expected pairs for {encoder.name}, whose positions cannot be given, found "
                "set"
            )
        return cls(encoder, config)

    def forward(self, batch: Mapping[str, Tensor], is_nil: Tensor) -> Tensor:
        """Score the candidates of a batch: (candidates,).

        Args:
            batch: Tensors of ``CandidatePairTokenizer.pad``.
            is_nil: 1 for NIL among the candidates.
        """
        inputs = dict(batch)
        owners = inputs.pop("owners").to(self.encoder.device)
        states = self._read(inputs, owners) if self.reads == "set" else self.encoder.embed(inputs)
        scores: Tensor = self.head(self.dropout(states))[:, 0].float()
        return scores + self.nil_bias * is_nil.to(scores.device)

    def _read(self, batch: Mapping[str, Tensor], owners: Tensor) -> Tensor:
        """Return the state of the last token of each candidate: (candidates, dim)."""
        causal = self.encoder.pooling == "lasttoken"
        more, last = _set_inputs(owners, first_position(self.encoder.model), causal=causal)
        inputs = {key: value.to(owners.device) for key, value in batch.items()} | more
        states: Tensor = self.encoder.model(**inputs).last_hidden_state[last]
        return states.float()

    def score(
        self, pairs: Sequence[CandidatePair], is_nil: Flags, precision: str = "auto"
    ) -> Floats:
        """Score candidates in inference mode, in batches of similar length: (candidates,).

        Args:
            pairs: Token ids of a mention in its text, and a candidate or several.
            is_nil: Candidates that stand for NIL.
            precision: One of ``models.precision.PRECISIONS``.
        """
        lengths = np.array([len(pair.ids) for pair in pairs], np.int64)
        starts = np.cumsum([0, *(pair.owners[-1] for pair in pairs)])
        scores = np.zeros(len(is_nil))
        training = self.training
        self.eval()
        try:
            with torch.inference_mode(), autocast_in(precision, self.encoder.device):
                for rows in token_batches(lengths, _TOKENS_AT_ONCE):
                    batch = self.pairs.pad([pairs[row] for row in rows])
                    own = np.concatenate([np.arange(*starts[row : row + 2]) for row in rows])
                    scores[own] = self(batch, torch.from_numpy(is_nil[own])).cpu().numpy()
        finally:
            self.train(training)
        if not np.isfinite(scores).all():
            raise StoreError(
                f"{self.encoder.name}: gives NaN or infinity for "
                f"{int((~np.isfinite(scores)).sum()):,} of {len(scores):,} candidates; its weights "
                "are damaged, train the re-ranker again"
            )
        return scores

    def save(self, folder: Path) -> None:
        """Write the encoder, and the head beside it."""
        self.encoder.save_pretrained(folder / ENCODER)
        head = {**self.head.state_dict(), "nil_bias": self.nil_bias.detach()}
        save_file({name: value.cpu().contiguous() for name, value in head.items()}, folder / HEAD)

    @classmethod
    def load(cls, folder: Path, config: RerankConfig) -> CrossEncoder:
        """Load a cross-encoder from the folder that ``save`` wrote.

        Args:
            folder: Folder of the model.
            config: Settings that it was trained with.
        """
        model = cls(TextEncoder.from_pretrained(folder / ENCODER), config)
        try:
            head = load_file(folder / HEAD)
            bias = head.pop("nil_bias")
            model.head.load_state_dict(head)
        except (OSError, KeyError, RuntimeError, SafetensorError) as error:
            reason = " ".join(str(error).split())
            raise StoreError(
                f"{folder / HEAD}: damaged ({reason}); train the re-ranker again"
            ) from error
        model.nil_bias.data.copy_(bias)
        for name, value in (*model.head.named_parameters(), ("nil_bias", model.nil_bias)):
            if not torch.isfinite(value).all():
                raise StoreError(
                    f"{folder / HEAD}: holds NaN or infinity ({name}); train the re-ranker again"
                )
        return model


@dataclass(frozen=True, slots=True)
class Mix:
    """The parameters that combine two scores into one logit."""

    ranker: float = 0.0
    context: float = 1.0
    nil: float = 0.0
    mean: float = 0.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        values = np.array(list(asdict(self).values()), np.float64)
        valid = np.isfinite(values).all() and self.deviation > 0
        if not valid or self.ranker < 0 or self.context < 0:
            raise ValueError(f"expected finite numbers of at least 0, found {self}")

    @property
    def ranker_weight(self) -> float:
        """Weight of the first ranking in the final score, from 0 to 1."""
        total = self.ranker + self.context
        return self.ranker / total if total else 0.0

    def logits(self, ranker: npt.ArrayLike, context: npt.ArrayLike) -> Floats:
        """Compute the logits of candidates.

        Args:
            ranker: Scores of the first ranking.
            context: Scores of the cross-encoder.

        Returns:
            One logit for each candidate.
        """
        scaled = (np.asarray(ranker, np.float64) - self.mean) / self.deviation
        return self.ranker * scaled + self.context * np.asarray(context, np.float64)

    def nil_logit(self, context: float) -> float:
        """Compute the logit of NIL.

        Args:
            context: Score of the cross-encoder for NIL.

        Returns:
            The logit.
        """
        return self.context * context + self.nil


class MentionCandidates(NamedTuple):
    """A mention and its candidates, best first."""

    text: str
    """Text of the mention."""
    context: Context
    """Text around it."""
    candidates: Sequence[Candidate]
    """Candidates of the first ranking."""


class CandidatePairReader:
    """Scores the candidates of mentions, and NIL as the last of each, by a cross-encoder.

    Args:
        kb: Knowledge base of the candidates.
        model: Cross-encoder.
        config: Settings that it was trained with.
    """

    def __init__(self, kb: KnowledgeBase, model: CrossEncoder, config: RerankConfig) -> None:
        self.model, self.config = model, config
        self._texts = CandidateTexts(kb, config)

    def read(self, mentions: Sequence[MentionCandidates]) -> tuple[list[CandidatePair], Flags]:
        """Tokenize some mentions with their candidates, NIL last.

        Args:
            mentions: Mentions with their candidates.

        Returns:
            The pairs, or the set of each mention, and which candidates are NIL.
        """
        marked = self.model.pairs.mark_mentions([(m.text, m.context) for m in mentions])
        left, right, is_nil = [], [], []
        for text, mention in zip(marked, mentions, strict=True):
            texts = [self._texts.describe(c.concept, c.name) for c in mention.candidates]
            right += [*texts, self.config.nil_text]
            left += [text] * (len(texts) + 1)
            is_nil += [False] * len(texts) + [True]
        pairs = self.model.pairs.tokenize(left, right)
        if self.config.reads == "set":
            each = iter(pairs)
            pairs = [join_pairs(list(islice(each, len(m.candidates) + 1))) for m in mentions]
        return pairs, np.array(is_nil, np.bool_)

    def score(self, mentions: Sequence[MentionCandidates], precision: str = "auto") -> list[Floats]:
        """Score the candidates of mentions.

        Args:
            mentions: Mentions with their candidates.
            precision: Precision of the encoder.

        Returns:
            The scores of the candidates of each mention, that of NIL last.
        """
        pairs, is_nil = self.read(mentions)
        scores = self.model.score(pairs, is_nil, precision)
        return np.split(scores, np.flatnonzero(is_nil)[:-1] + 1) if mentions else []


def first_concepts(candidates: Iterable[Candidate], n: int) -> list[Candidate]:
    """Return the first candidate of each of the first concepts.

    Args:
        candidates: Candidates, best first; several may be of one concept.
        n: Maximum number of concepts.

    Returns:
        At most one candidate per concept.
    """
    firsts: dict[str, Candidate] = {}
    for candidate in candidates:
        if len(firsts) == n:
            break
        firsts.setdefault(candidate.concept, candidate)
    return list(firsts.values())


class SearchRanker:
    """Ranks names by the fused scores of a search with given weights.

    Args:
        kb: Knowledge base of the names.
        weights: Weight of each generator.
    """

    name = "search"
    uses_context = False

    def __init__(self, kb: KnowledgeBase, weights: Mapping[str, float]) -> None:
        self.weights = normalise_weights(list(weights), weights)
        self._builder = CandidateBuilder(kb)

    def rank_candidates(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Rank every name of a pool; ties go to the lower row.

        Args:
            texts: The texts that were searched.
            pool: What the search found.
            contexts: Not used.

        Returns:
            The candidates of each text, best first.

        Raises:
            StoreError: Other generators than those of the weights found the pool.
        """
        check_generators(pool, self.weights, "the re-ranker learned from candidates of")
        return self._builder.by_name(pool, fuse_scores(pool, self.weights), pool.rows.shape[1])


EVIDENCE = "context"


class Reranked(NamedTuple):
    """The candidates of a mention, best first, and the probability of NIL."""

    candidates: list[Candidate]
    nil: float


RANKER = "ranker"
RERANKER = ArtifactKind(
    format="biograft-context-ranker",
    version=1,
    called="re-ranker",
    remedy="train the re-ranker again",
)


class ContextReranker:
    """Re-ranks the first candidates of another ranking by the context of the mention.

    Args:
        kb: Knowledge base of the candidates.
        model: Cross-encoder.
        config: Settings that it was trained with.
        mix: Weight of its score beside that of the other ranking.
        inner: The other ranking.
    """

    nil_below = 0.0
    """NIL is more probable than a candidate with a lower score."""

    def __init__(
        self,
        kb: KnowledgeBase,
        model: CrossEncoder,
        config: RerankConfig,
        *,
        mix: Mix,
        inner: CandidateRanker,
    ) -> None:
        self.kb, self.model, self.config = kb, model, config
        self.mix, self.inner, self.name = mix, inner, f"{inner.name}+{EVIDENCE}"
        self._reader = CandidatePairReader(kb, model, config)

    @classmethod
    def load(
        cls, folder: str | Path, kb: KnowledgeBase, inner: CandidateRanker | None = None
    ) -> ContextReranker:
        """Load a trained re-ranker.

        Args:
            folder: Its folder.
            kb: A store, which need not be the one it was trained with.
            inner: Makes the first ranking; None: the ranker that it was trained with.

        Returns:
            The re-ranker.

        Raises:
            ConfigError: The ranker that it was trained with is unknown.
            StoreError: The folder is damaged, or of another format or version.
        """
        folder = Path(folder)
        manifest = RERANKER.read(folder)
        try:
            RERANKER.check_files(folder, manifest)
            config = from_mapping(RerankConfig, manifest["config"], "config.")
            mix = Mix(**manifest["mix"])
            weights = {name: float(weight) for name, weight in manifest["weights"].items()}
        except (AttributeError, ConfigError, KeyError, TypeError, ValueError) as error:
            raise RERANKER.damaged(folder / RERANKER.file, repr(error)) from error
        if inner is None and (folder / RANKER).is_dir():
            inner = load_ranker(folder / RANKER, kb)
        if inner is None and not weights:
            raise ConfigError(
                f"{folder}: the ranker of its candidates is unknown; give one (inner)"
            )
        inner = inner or SearchRanker(kb, weights)
        return cls(kb, CrossEncoder.load(folder, config), config, mix=mix, inner=inner)

    @property
    def uses_context(self) -> bool:
        """Whether the text around a mention is read, or the mention alone."""
        return self.config.context_characters > 0

    def rank_candidates(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Rank with the inner ranker, then re-rank by context.

        Args:
            texts: The texts that were searched.
            pool: What the search found.
            contexts: The text around each mention, or nothing.

        Returns:
            The candidates of each text, best first.
        """
        ranked = self.inner.rank_candidates(texts, pool, contexts)
        contexts = contexts or [Context()] * len(texts)
        rows = zip(texts, contexts, ranked, strict=True)
        return [result.candidates for result in self.rerank([MentionCandidates(*r) for r in rows])]

    def rerank(self, mentions: Sequence[MentionCandidates]) -> list[Reranked]:
        """Re-rank the candidates of mentions.

        Args:
            mentions: Mentions with their candidates, best first.

        Returns:
            The candidates of each mention in their new order.
        """
        heads = [
            m._replace(candidates=first_concepts(m.candidates, self.config.n_candidates))
            for m in mentions
        ]
        scores = self._reader.score(heads)
        return [
            self._merge(mention.candidates, head.candidates, own)
            for mention, head, own in zip(mentions, heads, scores, strict=True)
        ]

    def _merge(
        self, candidates: Sequence[Candidate], read: Sequence[Candidate], scores: Floats
    ) -> Reranked:
        """Merge the first ranking with the scores of the candidates that were read."""
        row_of = {c.concept: row for row, c in enumerate(read)}
        nil = self.mix.nil_logit(float(scores[-1]))
        logits = np.append(self._odds(read, scores[:-1], nil), 0.0)
        probabilities = np.exp(logits - logits.max())
        probabilities /= probabilities.sum()
        ranks = np.empty(len(read), np.int64)
        ranks[np.argsort(-scores[:-1], kind="stable")] = np.arange(1, len(read) + 1)
        head = [c for c in candidates if c.concept in row_of]
        rows = [row_of[c.concept] for c in head]
        odds = self._odds(head, scores[rows], nil)
        merged = []
        for i in np.argsort(-odds, kind="stable").tolist():
            candidate, row = head[i], rows[i]
            gap = float(scores[row] - scores[-1])
            evidence = Evidence(EVIDENCE, candidate.name, int(ranks[row]), gap)
            merged.append(
                replace(
                    candidate,
                    score=float(odds[i]),
                    probability=float(probabilities[row]),
                    evidence=(*candidate.evidence, evidence),
                )
            )
        # what was not read keeps its order behind
        tail = [c for c in candidates if c.concept not in row_of]
        behind = self.mix.logits([c.score for c in tail], np.zeros(len(tail)))
        steps = np.minimum(np.minimum.accumulate(behind - behind[:1]), 0.0)
        lowest = float(odds.min()) if len(odds) else 0.0
        for candidate, step in zip(tail, steps.tolist(), strict=True):
            merged.append(replace(candidate, score=lowest + step, probability=0.0))
        return Reranked(merged, float(probabilities[-1]))

    def _odds(self, candidates: Sequence[Candidate], scores: Floats, nil: float) -> Floats:
        odds = self.mix.logits([c.score for c in candidates], scores) - nil
        if not np.isfinite(odds).all():
            raise StoreError(
                f"{self.inner.name}: its scores are not finite, so its files are damaged; train "
                "it again"
            )
        return odds


def load_context_reranker(folder: Path, kb: KnowledgeBase) -> ContextReranker:
    """Load a re-ranker as the trained linker of a folder.

    Args:
        folder: Its folder.
        kb: The store to link to.

    Returns:
        The re-ranker, with the ranker that it was trained with.
    """
    return ContextReranker.load(folder, kb)

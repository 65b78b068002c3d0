"""Probability of names at the masked position of a text, by a masked language model.

All tokens of a name are masked at once, so that only the text around them tells the name, and names
of equally many tokens need one pass. The mean log probability of a name's tokens is its
*likelihood*. Some names are probable in any text; *information* is the likelihood less its mean
over texts of the same group with as many masks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from biograft.errors import InputError
from biograft.models.batches import pad, token_batches
from biograft.models.knowledge.entity_finder import EntityMentions, entity_inputs
from biograft.models.masked_lm import MaskedLanguageModel
from biograft.models.precision import autocast_in
from biograft_lab.probing.token_states import enclose, inner_ids

Floats = npt.NDArray[np.float64]
_BATCH_TOKENS = 2048
_MIN_TEXTS = 32
"""Texts that a mean is taken over, if the group has so many."""


@dataclass(frozen=True, slots=True)
class NameChoice:
    """A text with a place for a name, and the names that may stand there.

    ``group`` are texts that are alike, such as those of one template.
    """

    before: str
    after: str
    options: tuple[str, ...]
    group: str = ""


class NameScores(NamedTuple):
    """Scores of the options of each choice: (choices, options)."""

    likelihood: Floats
    information: Floats


class _MaskedText(NamedTuple):
    """A choice with a number of masks: token ids, first mask, and its options of that length."""

    choice: int
    token_ids: list[int]
    first: int
    n_masks: int
    options: list[tuple[int, list[int]]]


@dataclass(slots=True)
class _Prior:
    """The sum of log probabilities over texts: (masks, vocabulary)."""

    total: torch.Tensor
    n: int = 0
    members: list[tuple[int, int, list[int]]] = field(default_factory=list)
    """Choice, option and tokens of the names that were scored."""

    def of(self, tokens: Sequence[int]) -> float:
        """Return the mean log probability of a name's tokens over all texts."""
        return float(_mean_at(self.total, tokens)) / self.n


def score_names(
    model: MaskedLanguageModel,
    choices: Sequence[NameChoice],
    finder: EntityMentions | None = None,
) -> NameScores:
    """Score the options of every choice; all have equally many. ``finder`` finds entity inputs."""
    texts = list(_masked_texts(model, choices))
    likelihood = np.zeros((len(choices), len(choices[0].options) if choices else 0))
    priors: dict[tuple[str, int], _Prior] = {}
    lengths = np.fromiter((len(text.token_ids) for text in texts), np.int64, len(texts))
    with torch.inference_mode():
        for rows in token_batches(lengths, _BATCH_TOKENS):
            batch = [texts[row] for row in rows.tolist()]
            for text, scores in zip(batch, _log_probabilities(model, batch, finder), strict=True):
                key = (choices[text.choice].group, text.n_masks)
                prior = priors.setdefault(key, _Prior(torch.zeros_like(scores)))
                prior.total += scores
                prior.n += 1
                for option, tokens in text.options:
                    likelihood[text.choice, option] = float(_mean_at(scores, tokens))
                    prior.members.append((text.choice, option, tokens))
    information = likelihood.copy()
    for prior in priors.values():
        for choice, option, tokens in prior.members:
            information[choice, option] -= prior.of(tokens)
    return NameScores(likelihood, information)


def _masked_texts(
    model: MaskedLanguageModel, choices: Sequence[NameChoice]
) -> Iterator[_MaskedText]:
    """Yield the text of each choice with each number of masks that its options need.

    Where few texts of a group have a number of masks, more of the group follow, without options.
    """
    group_of: dict[str, list[int]] = defaultdict(list)
    with_masks: dict[tuple[str, int], set[int]] = defaultdict(set)
    for number, choice in enumerate(choices):
        group_of[choice.group].append(number)
        by_length: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
        for option, name in enumerate(choice.options):
            tokens = inner_ids(model.tokenizer, name)
            if not tokens:
                raise InputError("the tokenizer makes no token of it", path=model.name, text=name)
            by_length[len(tokens)].append((option, tokens))
        for n_masks, options in by_length.items():
            with_masks[choice.group, n_masks].add(number)
            yield _mask(model, number, choice, n_masks, options)
    for (group, n_masks), known in with_masks.items():
        others = [number for number in group_of[group] if number not in known]
        n_more = min(len(others), max(0, _MIN_TEXTS - len(known)))
        for k in range(n_more):
            number = others[k * len(others) // n_more]
            yield _mask(model, number, choices[number], n_masks, [])


def _mask(
    model: MaskedLanguageModel,
    number: int,
    choice: NameChoice,
    n_masks: int,
    options: list[tuple[int, list[int]]],
) -> _MaskedText:
    before, after = (inner_ids(model.tokenizer, text) for text in (choice.before, choice.after))
    ids = enclose(model.tokenizer, [*before, *[model.mask] * n_masks, *after])
    if len(ids) > model.max_length:
        raise InputError("is too long for the model", path=model.name, text=choice.before)
    return _MaskedText(number, ids, ids.index(model.mask), n_masks, options)


def _log_probabilities(
    model: MaskedLanguageModel, batch: Sequence[_MaskedText], finder: EntityMentions | None
) -> Iterator[torch.Tensor]:
    """Yield the log probabilities of the vocabulary at the masks of each text."""
    inputs = pad([text.token_ids for text in batch], int(model.tokenizer.pad_token_id or 0))
    inputs = {key: value.to(model.device) for key, value in inputs.items()}
    width = max(text.n_masks for text in batch)
    positions = torch.tensor(
        [[text.first + min(k, text.n_masks - 1) for k in range(width)] for text in batch],
        device=model.device,
    )
    token_ids = inputs.pop("input_ids")
    if finder is not None:
        inputs |= entity_inputs(finder, token_ids, inputs["attention_mask"])
    with autocast_in("auto", model.device):
        logits = model.scores(token_ids, positions, **inputs)
    scores = logits.float().log_softmax(-1)
    for row, text in enumerate(batch):
        yield scores[row, : text.n_masks]


def _mean_at(scores: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    """Return the mean score of a name's tokens, each at its mask."""
    ids = torch.tensor(tokens, device=scores.device)
    return scores.gather(1, ids[:, None]).mean()

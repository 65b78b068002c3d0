"""Preference training of generative linkers: right names over the wrong ones that they generate.

After ANGEL (Kim et al. 2025), a linker that was trained on right names alone learns from its own
mistakes. Here are the pairs of names and the scores that a loss compares; ``examples/angel.py``
trains with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from biograft.errors import ConfigError
from biograft.linking.forms import MentionForms
from biograft.linking.generative import Seq2SeqLinker, make_input, select_names
from biograft.linking.linker import Linker
from biograft.linking.queries import GoldQuery
from biograft.models.seq2seq import Seq2SeqModel
from biograft.text.mention_text import clean_name
from biograft.training.linkers.generative import TargetChooser
from biograft.training.objectives.configs import NameGenerationConfig
from biograft.training.objectives.name_examples import NameExample
from biograft.training.objectives.name_generation import NameReader

_DEPTH = 64
"""Names searched for a mention, among which the wrong ones are."""


def collect_pairs(
    linker: Linker, queries: Sequence[GoldQuery], n_wrong: int, source: str = "beam"
) -> list[tuple[NameExample, NameExample]]:
    """Pair the right name of each mention of one concept with wrong ones, the best first.

    The right name is chosen as in the training of the linker. A name that the right concept has,
    too, is not wrong.

    Args:
        linker: A linker with the generative model to train.
        queries: Mentions with their correct concepts.
        n_wrong: Maximum number of wrong names of a mention.
        source: Where wrong names come from: the ``beam`` of the model, or lexical ``search``.

    Returns:
        Examples that differ in their target alone: the right name, then the wrong one.

    Raises:
        ConfigError: The linker does not generate names, or the source is unknown.
    """
    ranker = linker.ranker
    if not isinstance(ranker, Seq2SeqLinker) or source not in ("beam", "search"):
        raise ConfigError(
            "expected a generative linker and the source beam or search, found "
            f"{linker.score_source} and {source!r}"
        )
    kb, config, pairs = linker.kb, ranker.config, []
    finder = linker if source == "beam" else Linker.open(kb)
    chooser = TargetChooser(select_names(kb, config.names), config.target, config.training.seed)
    queries = [query for query in queries if len(query.needed) == len(query.parts) == 1]
    forms = MentionForms(kb, abbreviations=True, composites=False).of_queries(queries)
    found = finder.rank(queries, _DEPTH)
    for query, (form, context), (candidates,) in zip(queries, forms, found, strict=True):
        if not len(rows := chooser.names_of(kb.rows_of(query.gold))):
            continue
        (row,) = chooser.choose([form], [rows])
        right = NameExample(*make_input(form, context, config), chooser.text_of(row))
        names = dict.fromkeys(clean_name(c.name, lower=config.names.lower) for c in candidates)
        for text in map(chooser.text_of, rows.tolist()):
            names.pop(text, None)
        pairs += [(right, replace(right, target=text)) for text in [*names][:n_wrong]]
    return pairs


class NameScores(nn.Module):
    """Computes the log-probability of the target of examples, and its number of tokens.

    Args:
        seq2seq: Model and tokenizer.
    """

    def __init__(self, seq2seq: Seq2SeqModel) -> None:
        super().__init__()
        self._seq2seq, self._objective = seq2seq, NameGenerationConfig().build()
        self.reader = NameReader(seq2seq, {})

    def forward(self, examples: Sequence[NameExample]) -> Tensor:
        """Compute both for each example, the end of the name included: (examples, 2)."""
        (logits,), view = self.reader(self._objective.encode(self._seq2seq, examples))
        labels = view(self._objective.name).labels
        losses = cross_entropy(logits.float().transpose(1, 2), labels, reduction="none")
        return torch.stack([-losses.sum(1), (labels >= 0).sum(1)], 1)

"""Cross-entropy with smoothed labels, in two forms; and how far two passes differ (R-Drop)."""

from __future__ import annotations

from torch import Tensor

from biograft.objectives.name_generation.config import NameGenerationConfig


def smoothed_loss(
    scores: Tensor, labels: Tensor, config: NameGenerationConfig
) -> tuple[Tensor, Tensor]:
    """Give the smoothed loss and the plain one, -log p(label), each a mean over the rows.

    ``scores`` (rows, vocabulary) are log-probabilities. With e for ``label_smoothing`` and V for
    the size of the vocabulary, the form ``mean`` is (1 - e) nll + e mean(-log p); ``fairseq`` is
    (1 - e - e / (V - 1)) nll + e / (V - 1) sum(-log p). No rows: 0, with a gradient of 0.
    """
    share, n_tokens = config.label_smoothing, scores.shape[-1]
    n_rows = max(1, len(labels))
    nll = -scores.gather(-1, labels[:, None]).sum() / n_rows
    if not share:
        return nll, nll.detach()
    of_all = -scores.sum() / n_rows
    if config.form == "fairseq":
        each = share / (n_tokens - 1)
        return (1 - share - each) * nll + each * of_all, nll.detach()
    return (1 - share) * nll + share / n_tokens * of_all, nll.detach()


def symmetric_kl(first: Tensor, second: Tensor) -> Tensor:
    """Give half of KL(p || q) + KL(q || p), the mean over rows of log-probabilities."""
    apart: Tensor = ((first.exp() - second.exp()) * (first - second)).sum()
    return apart / 2 / max(1, len(first))

"""Compare two runs on the same queries: how large the difference is, and how sure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biograft.errors import ConfigError
from biograft.evaluation.linking import LinkingResult
from biograft.metrics.metric import Metric
from biograft.metrics.significance import (
    Difference,
    approximate_randomisation,
    mcnemar_exact,
    paired_bootstrap,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two runs on the same queries differ."""

    metric: str
    bootstrap: Difference
    randomisation_p: float
    mcnemar_p: float | None
    """None where queries may be half right (equal scores under the strict rule)."""


def paired(
    a: LinkingResult, b: LinkingResult, metric: str = "acc@1", *, seed: int = 0
) -> Comparison:
    """Compare two runs on the same queries, drawing documents together."""
    asked = [[(r.query.document, r.query.mention, r.query.gold) for r in x.rows] for x in (a, b)]
    if asked[0] != asked[1]:
        raise ConfigError("paired: expected two runs on the same queries, in the same order")
    values = [Metric.parse(metric).values(result.judged) for result in (a, b)]
    first, second = values
    if first is None or second is None:
        raise ConfigError(f"paired: {metric} has no value for each query; choose acc@1 or mrr")
    whole = all(np.isin(value, (0.0, 1.0)).all() for value in (first, second))
    documents = a.judged.documents
    return Comparison(
        metric,
        paired_bootstrap(first, second, documents, seed=seed),
        approximate_randomisation(first, second, documents, seed=seed),
        mcnemar_exact(first == 1, second == 1) if whole else None,
    )

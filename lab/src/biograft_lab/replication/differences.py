"""Differences of two arms in result files, with an interval and p.

Rows that hold the answers of every item are compared by a bootstrap over documents and seeds, an
objective and chance by the standard error of its held-out items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from statistics import fmean
from typing import Any

import numpy as np

from biograft.metrics import EffectSize, crossed_bootstrap
from biograft_lab.replication.results import Row, unpack_flags

_Z = 1.959964
CHANCE = "chance"
"""The second arm of claims that an objective is learned; their part names the objective."""
_JUDGED = ("accuracy", "chance", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """The two arms that are compared, and which rows and parts of results."""

    set: str
    of: str
    against: str
    protocol: str = ""
    dictionary: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """A difference of two arms: its evidence, the number of seeds, and how it was computed."""

    evidence: EffectSize
    n_seeds: int
    how: str


def find_difference(
    arms: Arms, content: Mapping[str, Any], other: Mapping[str, Any]
) -> ArmDifference | None:
    """Return the difference of two arms, the second of them in ``other``; None without results."""
    if arms.against == CHANCE:
        rows = _rows(arms, arms.of, content["rows"])
        return _of_objective(arms, rows) if rows else None
    a, b = _rows(arms, arms.of, content["rows"]), _rows(arms, arms.against, other["rows"])
    return _of_items(arms, a, b) if a and b and _has_answers(arms, (*a, *b)) else None


def _rows(arms: Arms, arm: str, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of an arm."""
    chosen = [row for row in rows if row["set"] == arms.set]
    for key in ("protocol", "dictionary"):
        if wanted := getattr(arms, key):
            chosen = [row for row in chosen if row.get(key) == wanted]
    return [row for row in chosen if row["config"] == arm and row.get("split", "test") == "test"]


def _has_answers(arms: Arms, rows: Sequence[Row]) -> bool:
    """Return whether rows hold the answer to every item of the part."""
    return all(
        "right" in row and (not arms.part or arms.part in row.get("parts", {})) for row in rows
    )


def _of_items(arms: Arms, a: Sequence[Row], b: Sequence[Row]) -> ArmDifference:
    """Compare the answers of every item, seed by seed; an arm without seeds is always the same."""
    known = [{row["seed"] for row in rows if "seed" in row} for rows in (a, b)]
    seeds = sorted(set.intersection(*filter(None, known))) if any(known) else [0]
    arrays = []
    for rows in (a, b):
        of = {row.get("seed"): 100 * unpack_flags(row["right"]) for row in rows}
        chosen = [of[seed] if seed in of else of[None] for seed in seeds]
        arrays.append(np.stack(chosen)[:, None, :])
    sizes = np.array(a[0]["documents"].split(), np.int64)
    documents = np.repeat(np.arange(len(sizes)), sizes)
    if arms.part:
        chosen_items = unpack_flags(a[0]["parts"][arms.part]) > 0
        documents = documents[chosen_items]
        arrays = [array[..., chosen_items] for array in arrays]
    evidence = crossed_bootstrap(arrays[0], arrays[1], documents.tolist())
    n_documents = len(np.unique(documents))
    what = f"bootstrap over {n_documents:,} documents and {len(seeds)} seeds"
    return ArmDifference(evidence, len(seeds), what)


def _of_objective(arms: Arms, rows: Sequence[Row]) -> ArmDifference:
    """Compare an objective on held-out text with chance; all seeds are judged by the same items."""
    found = [[row["held_out"][f"{arms.part}.{key}"] for key in _JUDGED] for row in rows]
    accuracies, chances, errors = zip(*found, strict=True)
    effect, error = 100 * (fmean(accuracies) - fmean(chances)), 100 * max(errors)
    p = erfc(abs(effect) / error / sqrt(2)) if error else float(effect == 0)
    evidence = EffectSize(effect, effect - _Z * error, effect + _Z * error, p)
    return ArmDifference(evidence, len(rows), f"standard error of the items, {len(rows)} seeds")

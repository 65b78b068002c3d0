"""Differences of two arms in result files, with an interval and p by what the rows hold.

==========================  ===========================================================
rows hold                   interval
==========================  ===========================================================
answers of every item       bootstrap over documents and seeds
counts of every document    bootstrap over documents and seeds
an objective, and chance    the standard error of its held-out items
one value a seed            Welch's t over seeds of fine-tuning
means of pre-training runs  Welch's t over seeds of pre-training
one value a fold            paired t over folds (too narrow: folds share texts)
==========================  ===========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.metrics import (
    EffectSize,
    TTest,
    crossed_bootstrap,
    crossed_ratio_bootstrap,
    paired_t,
    welch_t,
)
from biograft_lab.replication.results import Row, unpack_flags, without_fold
from biograft_lab.replication.task_counts import unpack_pairs

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
    if not a or not b:
        return None
    if _has_answers(arms, (*a, *b)):
        return _of_items(arms, a, b)
    if all(
        _counts(arms, arm, row) for rows, arm in ((a, arms.of), (b, arms.against)) for row in rows
    ):
        return _of_counts(arms, a, b)
    return _of_values(arms, a, b)


def _rows(arms: Arms, arm: str, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of an arm."""
    chosen = [row for row in rows if arms.set in (row["set"], without_fold(row["set"]))]
    for key in ("protocol", "dictionary"):
        if wanted := getattr(arms, key):
            chosen = [row for row in chosen if row.get(key) == wanted]
    if chosen and "encoders" in chosen[0]:
        return [row for row in chosen if arm in row["encoders"]]
    return [row for row in chosen if row["config"] == arm and row.get("split", "test") == "test"]


def _has_answers(arms: Arms, rows: Sequence[Row]) -> bool:
    """Return whether rows of one set hold the answer to every item of the part."""
    one_set = len({row["set"] for row in rows}) == 1
    return one_set and all(
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


def _of_counts(arms: Arms, a: Sequence[Row], b: Sequence[Row]) -> ArmDifference:
    """Compare what every document of every fold adds to the metric, seed by seed."""
    found = [_counts_by_seed(arms, arm, rows) for arm, rows in ((arms.of, a), (arms.against, b))]
    keys = sorted(found[0].keys() & found[1].keys())
    pretraining = sorted({pre for pre, _ in keys})
    fine = [seed for pre, seed in keys if pre == pretraining[0]]
    shape = (len(pretraining), len(fine), -1, 2)
    x, y = (
        100 * np.stack([of[pre, seed] for pre in pretraining for seed in fine]).reshape(shape)
        for of in found
    )
    x[..., 1] /= 100
    y[..., 1] /= 100
    evidence = crossed_ratio_bootstrap(x, y)
    what = (
        f"bootstrap over {x.shape[2]:,} documents, {len(pretraining)} seeds of pre-training and "
        f"{len(fine)} of fine-tuning"
    )
    return ArmDifference(evidence, len(keys), what)


def _counts(arms: Arms, arm: str, row: Row) -> Mapping[str, str]:
    """Return the counts of a row by seed of fine-tuning: of the metric, or of a part's recall."""
    found = row.get("encoders", {}).get(arm, {})
    counts: Mapping[str, str] = (
        found.get("recall", {}).get(arms.part, {}) if arms.part else found.get("counts", {})
    )
    return counts


def _counts_by_seed(
    arms: Arms, arm: str, rows: Sequence[Row]
) -> dict[tuple[int, int], npt.NDArray[Any]]:
    """Return the counts by seed of pre-training and of fine-tuning; folds are put together."""
    parts: dict[tuple[int, int], list[npt.NDArray[Any]]] = {}
    for row in sorted(rows, key=lambda row: str(row["set"])):
        for seed, packed in _counts(arms, arm, row).items():
            key = (row.get("pretraining_seed", 0), int(seed))
            parts.setdefault(key, []).append(unpack_pairs(packed))
    return {key: np.concatenate(each) for key, each in parts.items()}


def _of_objective(arms: Arms, rows: Sequence[Row]) -> ArmDifference:
    """Compare an objective on held-out text with chance; all seeds are judged by the same items."""
    found = [[row["held_out"][f"{arms.part}.{key}"] for key in _JUDGED] for row in rows]
    accuracies, chances, errors = zip(*found, strict=True)
    effect, error = 100 * (fmean(accuracies) - fmean(chances)), 100 * max(errors)
    p = erfc(abs(effect) / error / sqrt(2)) if error else float(effect == 0)
    evidence = EffectSize(effect, effect - _Z * error, effect + _Z * error, p)
    return ArmDifference(evidence, len(rows), f"standard error of the items, {len(rows)} seeds")


def _of_values(arms: Arms, a: Sequence[Row], b: Sequence[Row]) -> ArmDifference | None:
    """Compare one value a seed or a fold; single values tell nothing."""
    values = [_values(arms, arm, rows) for arm, rows in ((arms.of, a), (arms.against, b))]
    n_seeds = min(len({seed for row in rows for seed in _seeds(row)}) for rows in (a, b))
    if len({row["set"] for row in (*a, *b)}) > 1:
        folds = sorted({row["set"] for row in a} & {row["set"] for row in b})
        if len(folds) < 2:
            return None
        means = [_by_fold(arms, arm, rows) for arm, rows in ((arms.of, a), (arms.against, b))]
        x, y = ([of_fold[fold] for fold in folds] for of_fold in means)
        return ArmDifference(
            _t_evidence(paired_t, x, y), n_seeds, f"paired t over {len(folds)} folds"
        )
    if any("pretraining_seed" in row for row in (*a, *b)):
        return _of_pretraining(arms, a, b)
    if min(map(len, values)) > 1:
        how = f"Welch's t over {n_seeds} seeds of training"
        return ArmDifference(_t_evidence(welch_t, *values), n_seeds, how)
    return None


def _of_pretraining(arms: Arms, a: Sequence[Row], b: Sequence[Row]) -> ArmDifference | None:
    """Compare means over seeds of fine-tuning, one a seed of pre-training."""
    found = []
    for arm, rows in ((arms.of, a), (arms.against, b)):
        found.append(
            {row.get("pretraining_seed", 0): fmean(_values(arms, arm, [row])) for row in rows}
        )
    seeds = sorted(found[0].keys() & found[1].keys())
    if len(seeds) < 2:
        return None
    x, y = ([means[seed] for seed in seeds] for means in found)
    how = f"Welch's t over {len(seeds)} seeds of pre-training"
    return ArmDifference(_t_evidence(welch_t, x, y), len(seeds), how)


def _values(arms: Arms, arm: str, rows: Sequence[Row]) -> list[float]:
    """Return the values of an arm, one a seed."""
    if "encoders" in rows[0]:
        return [value for row in rows for value in row["encoders"][arm]["test"]["values"]]
    return [float(row["acc@1"]) for row in rows]


def _by_fold(arms: Arms, arm: str, rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean over seeds of each fold."""
    of_fold: dict[str, list[float]] = {}
    for row in rows:
        of_fold.setdefault(row["set"], []).extend(_values(arms, arm, [row]))
    return {name: fmean(values) for name, values in of_fold.items()}


def _seeds(row: Row) -> Sequence[int]:
    return row["seeds"] if isinstance(row.get("seeds"), list) else (row.get("seed") or 0,)


Test = Callable[[Sequence[float], Sequence[float]], TTest]


def _t_evidence(test: Test, a: Sequence[float], b: Sequence[float]) -> EffectSize:
    """Return difference, interval and p of a t-test."""
    difference, half = fmean(a) - fmean(b), half_width(test, a, b)
    return EffectSize(difference, difference - half, difference + half, test(a, b).p)


def half_width(test: Test, a: Sequence[float], b: Sequence[float]) -> float:
    """Return half the width of the 95 % interval: the shift that a t-test just rejects."""
    centred = [value - fmean(a) + fmean(b) for value in a]

    def rejects(shift: float) -> bool:
        return test([value + shift for value in centred], b).p < 0.05

    low, high = 0.0, 1.0
    while not rejects(high):
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high

"""Experiments: what re-tests a claim of a paper, each one TOML file.

A file states the paper and the claim in one sentence, the kind of experiment (which runner), the
sets of data, the variants that are compared, the seeds and the settings. Those of this package
are in ``experiments/``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from biograft.config import from_mapping, load_toml
from biograft.errors import ConfigError, nearest
from biograft.metrics import paired_t, welch_t
from biograft.replication.results import Row, read_result, without_fold

FOLDER = Path(__file__).parent / "experiments"
REPOSITORY = Path(__file__).parents[3]
RESULTS = REPOSITORY / "docs" / "results"
BENCHMARKS = REPOSITORY / "benchmarks" / "results"
"""The published results of experiments and of benchmarks, in a clone of the repository."""
_TABLES = ("inputs", "bases", "settings", "set_settings", "variants")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The difference that a claim predicts: the metric of ``of`` minus that of ``against``."""

    set: str
    of: str
    against: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """How the table of an encoder experiment is laid out.

    ``reference`` is the variant that the p values compare with; ``held_out`` are metrics of
    held-out text, each with its column name; with ``rows = "sets"`` the sets are the rows.
    """

    reference: str = ""
    held_out: Mapping[str, str] = field(default_factory=dict)
    rows: str = "encoders"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    paper: str
    claim: str
    kind: str
    sets: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    effect: Effect | None = None
    table: TableConfig = TableConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(_Header):
    """An experiment as its file describes it.

    ``inputs`` maps the name of each input to the command that makes it, ``bases`` that of a trained
    encoder to the input that its training started from; ``set_settings`` are settings of single
    sets, which take precedence over ``settings``.
    """

    name: str
    inputs: Mapping[str, str]
    bases: Mapping[str, str]
    settings: Mapping[str, Any]
    set_settings: Mapping[str, Mapping[str, Any]]
    variants: Mapping[str, Mapping[str, Any]]

    @classmethod
    def load(cls, name_or_path: str | Path) -> Experiment:
        """Load a shipped experiment by name, or a TOML file."""
        path = Path(name_or_path)
        if path.suffix != ".toml":
            shipped = shipped_experiments()
            if str(name_or_path) not in shipped:
                known = nearest(str(name_or_path), shipped)
                raise ConfigError(
                    f"no experiment is called {str(name_or_path)!r}; {known}, or give a .toml file"
                )
            path = shipped[str(name_or_path)]
        values = load_toml(path)
        tables = {name: values.pop(name, {}) for name in _TABLES}
        header = from_mapping(_Header, values, f"experiment {path.stem}: ")
        for name in tables["set_settings"]:
            if name not in (known_sets := {*header.sets, *map(without_fold, header.sets)}):
                raise ConfigError(f"set_settings.{name}: {nearest(name, known_sets)}")
        for name in (known for pair in tables["bases"].items() for known in pair):
            if name not in tables["inputs"]:
                raise ConfigError(f"bases.{name}: {nearest(name, tables['inputs'])}")
        given = {part.name: getattr(header, part.name) for part in dataclasses.fields(header)}
        return cls(name=path.stem, **given, **tables)

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the settings of one set; those of a fold may be given for all folds."""
        return {**self.settings, **{k: v for k, v in self._own(name).items() if k != "seeds"}}

    def seeds_of(self, name: str) -> tuple[int, ...]:
        """Return the seeds of one set."""
        return tuple(self._own(name).get("seeds", self.seeds))

    def _own(self, name: str) -> dict[str, Any]:
        tables = (self.set_settings.get(key, {}) for key in (without_fold(name), name))
        return {key: value for table in tables for key, value in table.items()}

    def base_of(self, encoder: str) -> str:
        """Return the input that an encoder's training started from; an untrained one is its own."""
        return self.bases.get(encoder, encoder)

    def check_one_base(self, encoders: Mapping[str, str]) -> None:
        """Refuse a comparison of encoders (inputs, by label) whose training started from several.

        A difference between them would be that of their bases, too.
        """
        labels = {self.base_of(encoder): label for label, encoder in encoders.items()}
        if len(labels) > 1:
            found = ", ".join(f"{label!r} from {base!r}" for base, label in labels.items())
            raise ConfigError(
                f"{self.name}: encoders that are compared start from several bases: {found}; start "
                "all from one, and name it for each input in [bases]"
            )

    def restricted(self, sets: Sequence[str], seeds: Sequence[int]) -> Experiment:
        """Return the experiment on some of its sets, with other seeds; empty: as it is."""
        for name in sets:
            if name not in self.sets:
                raise ConfigError(f"--sets {name}: {nearest(name, self.sets)}")
        own = self.set_settings
        if seeds:
            own = {s: {k: v for k, v in t.items() if k != "seeds"} for s, t in own.items()}
        return dataclasses.replace(
            self, sets=tuple(sets) or self.sets, seeds=tuple(seeds) or self.seeds, set_settings=own
        )


def shipped_experiments() -> dict[str, Path]:
    """Return the files of the experiments that come with biograft, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def list_experiments(results: Path = RESULTS) -> Iterator[dict[str, Any]]:
    """Return each shipped experiment with its claim and, where it was run, what was found."""
    for name in shipped_experiments():
        experiment = Experiment.load(name)
        described = {"name": name, "paper": experiment.paper, "claim": experiment.claim}
        yield {**described, **judge(experiment, results / f"{name}.json")}


def judge(experiment: Experiment, path: Path) -> dict[str, Any]:
    """Return the measured effect of a claim with its 95 % interval, and the verdict.

    The verdict is ``supported``, ``contradicted`` or ``within noise``; None where the
    results do not determine it.
    """
    nothing = {"verdict": None, "effect": None, "low": None, "high": None, "n_seeds": None}
    if experiment.effect is None or not path.exists():
        return nothing
    content = read_result(path)
    if "answers" in content:
        found = _probe_effect(experiment.effect, content["answers"])
    else:
        found = _row_effect(experiment.effect, content["rows"])
    if found is None:
        return nothing
    effect, low, high, n_seeds = found
    verdict = None
    if low is not None and high is not None:
        verdict = "supported" if low > 0 else "contradicted" if high < 0 else "within noise"
    rounded = (value if value is None else round(value, 3) for value in (effect, low, high))
    values = dict(zip(("effect", "low", "high"), rounded, strict=True))
    return {"verdict": verdict, **values, "n_seeds": n_seeds}


_Found = tuple[float, float | None, float | None, int]


def _row_effect(effect: Effect, rows: Sequence[Row]) -> _Found | None:
    """Compare two variants over the seeds, or over the folds, of a set."""
    chosen = [row for row in rows if without_fold(row["set"]) == effect.set]
    a, b = (_values(chosen, label) for label in (effect.of, effect.against))
    if not a or not b:
        return None
    n_seeds = len({seed for row in chosen for seed in _seeds(row)})
    folds = len({row["set"] for row in chosen}) > 1
    if min(len(a), len(b)) < 2 or (folds and len(a) != len(b)):
        return fmean(a) - fmean(b), None, None, n_seeds
    difference, half = fmean(a) - fmean(b), _half_width(a, b, paired=folds)
    return difference, difference - half, difference + half, n_seeds


def _values(rows: Sequence[Row], label: str) -> list[float]:
    """Return the main metric of a variant, one value a seed or fold."""
    if rows and "encoders" in rows[0]:
        found = [row["encoders"][label]["test"] for row in rows if label in row["encoders"]]
        if len(found) == 1:
            return list(found[0]["values"])
        return [one["mean"] for one in found]
    chosen = [row for row in rows if row["config"] == label and row["split"] == "test"]
    values: dict[str, list[float]] = {}
    for row in chosen:
        values.setdefault(row["set"], []).append(row["acc@1"])
    if len(values) == 1:
        return next(iter(values.values()))
    return [fmean(values[name]) for name in sorted(values)]


def _seeds(row: Row) -> Sequence[int]:
    return row["seeds"] if isinstance(row.get("seeds"), list) else (row.get("seed", 0),)


def _half_width(a: Sequence[float], b: Sequence[float], *, paired: bool) -> float:
    """Return half the width of the 95 % interval: the shift that a t-test just rejects."""
    test = paired_t if paired else welch_t
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


def _probe_effect(effect: Effect, answers: Mapping[str, Any]) -> _Found | None:
    """Read the difference of two models from the answer of a probe, which has its interval."""
    answer = answers.get(effect.set, {})
    for row in answer.get("differences", ()):
        if (row["model"], row["than"]) == (effect.of, effect.against):
            return (row["all"]["difference"], *row["all"]["interval"], 1)
    for row in answer.get("encoders", ()):
        found = row.get("difference", {})
        if (row["label"], found.get("than")) == (effect.of, effect.against):
            return (found["D1"]["difference"], *found["D1"]["interval"], 1)
    return None

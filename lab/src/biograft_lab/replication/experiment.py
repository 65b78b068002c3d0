"""Experiments: what re-tests the claims of the papers, each one TOML file.

A file states in one sentence what is measured, the kind of experiment (which runner), the sets of
data, the variants that are compared, the seeds and the settings. Those of this package are in
``experiments/``; the claims that they test in ``claims.toml``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from biograft.config import from_mapping, load_toml
from biograft.errors import ConfigError, nearest
from biograft_lab.replication.results import without_fold

FOLDER = Path(__file__).parent / "experiments"
_TABLES = ("inputs", "settings", "set_settings", "variants")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    about: str
    kind: str
    sets: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    held_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(_Header):
    """An experiment as its file describes it.

    ``inputs`` maps the name of each input to the command that makes it; ``set_settings`` are
    settings of single sets, which take precedence over ``settings``; ``held_out`` maps objectives
    to their names in tables.
    """

    name: str
    inputs: Mapping[str, str]
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

    def design(self, name: str, config: str = "") -> str:
        """Return a hash of all that decides a row of this experiment.

        It covers the kind, the inputs, the settings of the set and the variant;
        a result file whose rows have another hash was made by another experiment.

        Args:
            name: The set of the row.
            config: Its configuration: a variant, perhaps after a search (``dense:MiniLM``). A row
                of no single variant has the hash of all.
        """
        label = config if config in self.variants else config.partition(":")[2]
        decisive = {
            "kind": self.kind,
            "inputs": dict(self.inputs),
            "bases": {},  # a part of the hash of rows that are published
            "settings": self.settings_of(name),
            "variants": self.variants.get(label, self.variants),
        }
        return sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]

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


def part_of_design(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the set and the variant of a row, each empty if the row is of all of them."""
    return str(row.get("set", "")), str(row.get("config", row.get("variant", "")))


def shipped_experiments() -> dict[str, Path]:
    """Return the files of the experiments that come with biograft, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def list_experiments() -> Iterator[dict[str, str]]:
    """Return each shipped experiment with its kind and what it measures."""
    for name in shipped_experiments():
        experiment = Experiment.load(name)
        yield {"name": name, "kind": experiment.kind, "about": experiment.about}

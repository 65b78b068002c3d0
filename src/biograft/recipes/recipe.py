"""Recipes: one TOML file names what is trained, on what data and how.

A recipe has a ``kind``: ``pretrain``, ``linker``, ``task`` or ``graph``. It may extend another::

    base = "sapbert"                       # a shipped recipe, or a .toml file beside this one
    without = ["stream.languages"]         # values of the base to drop: a key, or a whole table
    about = "SapBERT on a small encoder"

    [training]
    batch_size = 64

Tables are merged key by key, and the extending recipe wins. Every other value replaces that of
the base.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from biograft.config import from_mapping, load_toml, set_value
from biograft.errors import ConfigError, nearest
from biograft.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A training recipe: the configuration of a run, read from a TOML file.

    >>> from biograft import Recipe
    >>> recipe = Recipe.load("sapbert-cpu", ["training.steps=100"])
    >>> recipe.kind, recipe.training.steps
    ('pretrain', 100)

    A subclass configures one kind; its ``load`` refuses recipes of another kind.
    """

    kind: ClassVar[str] = ""
    encoder_key: ClassVar[str] = "encoder.name"
    """Where a recipe of this kind names its encoder."""

    name: str = ""
    about: str = ""

    @classmethod
    def load(
        cls, name_or_path: str | Path, overrides: Sequence[str] = (), *, encoder: str = ""
    ) -> Self:
        """Load a shipped recipe by name, or a TOML file.

        ``overrides`` are ``table.key=value`` texts; ``encoder`` is used in place of the recipe's.
        """
        name, values = cls.resolve(name_or_path, overrides, encoder=encoder)
        return cls.from_values(name, values)

    @classmethod
    def resolve(
        cls, name_or_path: str | Path, overrides: Sequence[str] = (), *, encoder: str = ""
    ) -> tuple[str, dict[str, Any]]:
        """Return the name and the values of a recipe, merged and overridden but not checked."""
        path = find_recipe(name_or_path, cls.kind or None)
        values = read_recipe(path)
        owner = cls._owner(path.stem, values)
        changes = [*overrides]
        if encoder:
            key = owner.find_encoder(path.stem, values)
            changes.append(f"{key}={json.dumps(encoder, ensure_ascii=False)}")
        owner.override(path.stem, values, changes)
        return path.stem, values

    @classmethod
    def from_values(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Make a recipe of plain values, checking every key and type."""
        owner = cls._owner(name, values)
        return owner.from_tables(name, {k: v for k, v in values.items() if k != "kind"})

    @classmethod
    def from_tables(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Make a recipe of this kind of its tables."""
        return from_mapping(cls, {**values, "name": name})

    @classmethod
    def override(
        cls, name: str, values: MutableMapping[str, Any], overrides: Sequence[str]
    ) -> None:
        """Set the values that the user changes."""
        for override in overrides:
            set_value(values, override)

    @classmethod
    def find_encoder(cls, name: str, values: Mapping[str, Any]) -> str:
        """Return the key under which the recipe names its encoder."""
        return cls.encoder_key

    def to_json(self) -> dict[str, Any]:
        """Return the whole configuration as plain values."""
        return self.as_plain(asdict(self))

    def as_plain(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values as JSON has them, with name and kind and without the description."""
        parts = {"name": self.name, "kind": self.kind, **values}
        parts.pop("about", None)
        plain: dict[str, Any] = json.loads(json.dumps(parts, default=str))
        return plain

    @classmethod
    def _owner(cls, name: str, values: Mapping[str, Any]) -> type[Self]:
        """Return the class for the kind that the values state; this one if they state none."""
        kind = values.get("kind", cls.kind or None)
        if kind is None:
            known = ", ".join(RECIPE_KINDS)
            raise ConfigError(f"recipe {name}: missing key 'kind'; known: {known}")
        if not isinstance(kind, str) or kind not in RECIPE_KINDS:
            raise ConfigError(
                f"recipe {name}: no {RECIPE_KINDS.kind} is called {kind!r}; "
                f"{nearest(str(kind), RECIPE_KINDS)}"
            )
        if cls.kind:
            check_kind(name, kind, cls.kind)
        owner: type[Self] = cls if cls.kind else RECIPE_KINDS.load(kind)  # type: ignore[assignment]
        return owner


RECIPE_KINDS: Registry[type[Recipe]] = Registry(
    "kind of recipe",
    {
        "pretrain": (
            "biograft.pretraining.recipe:PretrainingRecipe",
            "pre-training of an encoder or a generator",
        ),
        "linker": ("biograft.linking.recipes:LinkerRecipe", "training of an entity linker"),
        "task": ("biograft.tasks.recipe:TaskRecipe", "fine-tuning of an encoder for a task"),
        "graph": ("biograft.graph.embedding.config:GraphRecipe", "embeddings of a knowledge graph"),
    },
)
_COMMANDS = {
    "pretrain": "biograft pretrain {name}",
    "linker": "biograft finetune {name}",
    "task": "biograft finetune {name}",
    "graph": "biograft graph embed KB --model {name}",
}


def check_kind(name: str, kind: str, *expected: str) -> None:
    """Refuse a recipe of another kind, and name the command that runs it."""
    if kind not in expected:
        command = _COMMANDS.get(kind, "").format(name=name)
        raise ConfigError(
            f"recipe {name}: expected a recipe of kind {' or '.join(expected)}, found {kind!r}"
            + (f"; run it with `{command}`" if command else "")
        )


def shipped_recipes(kind: str | None = None) -> dict[str, Path]:
    """List the recipes that come with biograft by name, all or those of one kind."""
    paths = {path.stem: path for path in Path(__file__).parent.glob("*.toml")}
    return {
        name: paths[name]
        for name in sorted(paths)
        if kind is None or read_recipe(paths[name])["kind"] == kind
    }


def find_recipe(name_or_path: str | Path, kind: str | None = None) -> Path:
    """Find a recipe: a TOML file, or a shipped one by its name."""
    path, name = Path(name_or_path), str(name_or_path)
    if path.suffix == ".toml":
        return path
    shipped = shipped_recipes()
    if name not in shipped:
        known = nearest(name, shipped_recipes(kind))
        raise ConfigError(f"no recipe is called {name!r}; {known}, or give a .toml file")
    return shipped[name]


def read_recipe(path: Path) -> dict[str, Any]:
    """Read a recipe file and merge it with the recipes that it extends."""
    return _read(path, ())


def _read(path: Path, extending: tuple[Path, ...]) -> dict[str, Any]:
    """Read a recipe; ``extending`` are the files that lead here by their ``base``."""
    resolved = path.resolve()
    if resolved in extending:
        chain = " -> ".join(file.name for file in (*extending, resolved))
        raise ConfigError(f"{extending[0]}: base: the recipes extend each other: {chain}")
    values = load_toml(path)
    base, without = values.pop("base", None), values.pop("without", [])
    if not isinstance(base, str | None):
        raise ConfigError(f"{path}: base: expected the name of a recipe, found {base!r}")
    if not isinstance(without, list) or not all(isinstance(key, str) for key in without):
        raise ConfigError(f"{path}: without: expected a list of keys, found {without!r}")
    if base is None:
        if without:
            raise ConfigError(f"{path}: without: there is no base to leave out from")
        return values
    merged = _read(_find_base(path, base), (*extending, resolved))
    for key in without:
        remove_value(merged, key, f"{path}: without")
    merge_tables(merged, values)
    return merged


def _find_base(path: Path, base: str) -> Path:
    if base.endswith(".toml"):
        return path.parent / base
    try:
        return find_recipe(base)
    except ConfigError as error:
        raise ConfigError(f"{path}: base: {error}") from error


def merge_tables(base: MutableMapping[str, Any], values: Mapping[str, Any]) -> None:
    """Put values into a base: tables are merged, everything else is replaced."""
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), MutableMapping):
            merge_tables(base[key], value)
        else:
            base[key] = value


def remove_value(values: MutableMapping[str, Any], dotted: str, where: str = "without") -> None:
    """Remove a value or a whole table by its dotted key."""
    *tables, key = dotted.split(".")
    table: Any = values
    for name in tables:
        table = table.get(name) if isinstance(table, Mapping) else None
    if not isinstance(table, MutableMapping) or key not in table:
        raise ConfigError(f"{where}: the base has no {dotted!r}")
    del table[key]


def read_table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table of a recipe, empty if it is not there."""
    table = values.get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name}: expected a table, found {table!r}")
    return table

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

import copy
import json
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from biograft.config import (
    Above,
    AtLeast,
    Choice,
    Config,
    Ratio,
    from_mapping,
    load_toml,
    remove_value,
    set_value,
)
from biograft.errors import ConfigError, nearest
from biograft.registry import Registry

SCHEDULES = ("constant", "linear", "cosine")
PRECISIONS = ("auto", "bf16", "fp16", "fp32")

MAY_CHANGE = (
    "max_minutes",
    "save_every",
    "log_every",
    "keep",
    "workers",
    "shard",
    "trackers",
    "project",
)
"""The fields that a resumed run may change: none of them changes the result of training, but for
rounding."""


RecipeSource = str | Path | Mapping[str, Any]
"""The name of a shipped recipe, a TOML file, or a dictionary of what such a file holds."""
Overrides = Sequence[str] | Mapping[str, Any]
GIVEN = "given"
"""The name of a recipe that is a dictionary without one."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Division of the batch of an update among processes and forward passes."""

    n_processes: int
    """Number of processes."""
    accumulate: int
    """Forward passes of each process in an update."""
    size: int
    """Examples of a forward pass."""

    def __str__(self) -> str:
        """Show the product: ``512 = 8 processes x 2 passes x 32 examples``."""
        batch = self.n_processes * self.accumulate * self.size
        processes = "process" if self.n_processes == 1 else "processes"
        passes = "pass" if self.accumulate == 1 else "passes"
        return (
            f"{batch} = {self.n_processes} {processes} x {self.accumulate} {passes} "
            f"x {self.size} examples"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig(Config):
    """Length, batch, learning rate, precision and checkpoints of a training run.

    ``steps`` above 0 is the number of updates, otherwise ``epochs`` determines it. ``batch_size``
    is the examples of one update, over all processes. A process runs at most ``device_batch_size``
    of them at once (0: no limit) and accumulates the gradients of several passes; names are encoded
    again in the backward pass instead, so that all names of a batch stay negatives. The learning
    rate rises over ``warmup_steps`` updates, or over ``warmup_ratio`` of all updates if
    ``warmup_steps`` is 0, and then follows ``schedule``. Weight decay excludes biases and norms
    unless ``decay_all``. ``clip`` bounds the norm of the gradient (0: no bound). The first
    ``head_steps`` updates change only heads, so that a new head does not spoil a trained encoder
    (pre-training on text only).

    ``precision`` auto is bf16 where the hardware supports it; otherwise it is fp16 with loss
    scaling on a GPU, and fp32 on a processor. ``gradient_checkpointing`` computes the states of a
    layer again in the backward pass, which saves memory. ``shard`` divides weights, gradients and
    optimiser state among the processes (pre-training only). ``workers`` processes, at most one per
    core, prepare batches ahead (0: none). ``save_every``, ``eval_every`` and ``log_every`` are in
    steps (0: at the end only); ``keep`` is the number of checkpoints (0: all); ``max_minutes`` ends
    this session early, to be resumed (0: no limit). ``trackers`` of `accelerate` (tensorboard,
    wandb, mlflow ...) receive configuration, losses and dev scores under the name ``project``.
    """

    steps: Annotated[int, AtLeast(0)] = 0
    epochs: Annotated[int, AtLeast(1)] = 1
    batch_size: Annotated[int, AtLeast(1)] = 256
    device_batch_size: Annotated[int, AtLeast(0)] = 0
    learning_rate: Annotated[float, Above(0)] = 2e-5
    """Highest learning rate."""
    schedule: Annotated[str, Choice(*SCHEDULES)] = "constant"
    warmup_ratio: Ratio = 0.0
    warmup_steps: Annotated[int, AtLeast(0)] = 0
    weight_decay: Annotated[float, AtLeast(0)] = 0.01
    """Decay of the weights in each update."""
    decay_all: bool = False
    clip: Annotated[float, AtLeast(0)] = 0.0
    head_steps: Annotated[int, AtLeast(0)] = 0
    precision: Annotated[str, Choice(*PRECISIONS)] = "auto"
    gradient_checkpointing: bool = False
    shard: bool = False
    workers: Annotated[int, AtLeast(0)] = 0
    seed: Annotated[int, AtLeast(0)] = 33
    """Seed of weights, order and dropout."""
    save_every: Annotated[int, AtLeast(0)] = 1000
    eval_every: Annotated[int, AtLeast(0)] = 0
    log_every: Annotated[int, AtLeast(0)] = 1
    keep: Annotated[int, AtLeast(0)] = 2
    max_minutes: Annotated[float, AtLeast(0)] = 0.0
    trackers: tuple[str, ...] = ()
    project: str = "biograft"

    def plan_batch(self, n_processes: int = 1, *, divisible: bool = True) -> BatchPlan:
        """Divide the batch among processes, into as few equal passes as the limit allows.

        Args:
            n_processes: Number of processes.
            divisible: Whether a batch may be divided into passes.
        """
        per_process, rest = divmod(self.batch_size, n_processes)
        if rest:
            raise ConfigError(
                f"training.batch_size: expected a multiple of the {n_processes} processes, found "
                f"{self.batch_size}; it counts the examples of all processes together"
            )
        limit = (divisible and self.device_batch_size) or per_process
        passes = next(n for n in range(1, per_process + 1) if _fits(per_process, n, limit))
        return BatchPlan(n_processes, passes, per_process // passes)

    def count_warmup(self, n_steps: int) -> int:
        """Count the updates over which the learning rate rises."""
        if self.warmup_steps > n_steps:
            raise ConfigError(
                f"training.warmup_steps: expected at most the {n_steps} steps of the training, "
                f"found {self.warmup_steps}; the learning rate would not reach its value"
            )
        return self.warmup_steps or round(self.warmup_ratio * n_steps)


def _fits(n_examples: int, n_passes: int, limit: int) -> bool:
    return n_examples % n_passes == 0 and n_examples // n_passes <= limit


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
    """Key with which a recipe of this kind names its encoder."""

    name: str = ""
    """Name of the recipe."""
    about: str = ""
    """One sentence about it."""

    @classmethod
    def load(
        cls,
        recipe: RecipeSource,
        overrides: Overrides = (),
        *,
        encoder: str = "",
        **tables: Any,
    ) -> Self:
        """Load a recipe: by its name, from a TOML file, or of tables as such a file has them.

        Args:
            recipe: Name of a shipped recipe, a TOML file, or a dictionary of its content.
            overrides: Changes of it, as ``table.key=value``, or as a dictionary of tables.
            encoder: Name or folder of an encoder, in place of the recipe's.
            tables: Changes of its tables and values by name.

        >>> Recipe.load("ner-cpu", {"encoder": {"max_length": 64}}).encoder.max_length
        64
        >>> Recipe.load("sapbert-cpu", training={"steps": 100}).training.steps
        100
        """
        if isinstance(overrides, Mapping):
            tables, overrides = {**overrides, **tables}, ()
        name, values = cls.resolve(recipe, overrides, encoder=encoder, tables=tables)
        return cls.from_values(name, values)

    @classmethod
    def resolve(
        cls,
        recipe: RecipeSource,
        overrides: Sequence[str] = (),
        *,
        encoder: str = "",
        tables: Mapping[str, Any] = MappingProxyType({}),
    ) -> tuple[str, dict[str, Any]]:
        """Return the name and the values of a recipe, merged and overridden but not checked.

        Args:
            recipe: Name of a shipped recipe, a TOML file, or a dictionary of its content.
            overrides: Changes of it, as ``table.key=value``.
            encoder: Name or folder of an encoder, in place of the recipe's.
            tables: Tables and values merged into it first.
        """
        if isinstance(recipe, Mapping):
            values = _extend(copy.deepcopy(dict(recipe)), Path(GIVEN), ())
            name = str(values.pop("name", GIVEN))
        else:
            path = find_recipe(recipe, cls.kind or None)
            name, values = path.stem, read_recipe(path)
        merge_tables(values, copy.deepcopy(dict(tables)))
        owner = cls._owner(name, values)
        changes = [*overrides]
        if encoder:
            key = owner.find_encoder(name, values)
            changes.append(f"{key}={json.dumps(encoder, ensure_ascii=False)}")
        owner.override(name, values, changes)
        return name, values

    @classmethod
    def from_values(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Make a recipe of plain values, checking every key and type.

        Args:
            name: Name of the recipe.
            values: Its tables and values.
        """
        owner = cls._owner(name, values)
        return owner.from_tables(name, {k: v for k, v in values.items() if k != "kind"})

    @classmethod
    def from_tables(cls, name: str, values: Mapping[str, Any]) -> Self:
        """Make a recipe of this kind of its tables.

        Args:
            name: Name of the recipe.
            values: Its tables and values, without ``kind``.
        """
        return from_mapping(cls, {**values, "name": name})

    @classmethod
    def override(
        cls, name: str, values: MutableMapping[str, Any], overrides: Sequence[str]
    ) -> None:
        """Set the values that the user changes.

        Args:
            name: Name of the recipe.
            values: Its values, changed in place.
            overrides: Changes, as ``table.key=value`` or ``-table.key``.
        """
        for override in overrides:
            set_value(values, override)

    @classmethod
    def find_encoder(cls, name: str, values: Mapping[str, Any]) -> str:
        """Return the key under which the recipe names its encoder.

        Args:
            name: Name of the recipe.
            values: Its tables and values.
        """
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
            "biograft.training.pretraining.recipe:PretrainingRecipe",
            "pre-training of an encoder or a generator",
        ),
        "linker": (
            "biograft.training.linkers.recipes:LinkerRecipe",
            "training of an entity linker",
        ),
        "task": (
            "biograft.training.tasks.recipe:TaskRecipe",
            "fine-tuning of an encoder for a task",
        ),
        "graph": ("biograft.graph.config:GraphRecipe", "embeddings of a knowledge graph"),
    },
)
_COMMANDS = {
    "pretrain": "biograft pretrain {name}",
    "linker": "biograft finetune {name}",
    "task": "biograft finetune {name}",
    "graph": "biograft graph embed KB --model {name}",
}


def check_kind(name: str, kind: str, *expected: str) -> None:
    """Refuse a recipe of another kind, and name the command that runs it.

    Args:
        name: Name of the recipe.
        kind: Its kind.
        expected: Kinds that are accepted.
    """
    if kind not in expected:
        command = _COMMANDS.get(kind, "").format(name=name)
        raise ConfigError(
            f"recipe {name}: expected a recipe of kind {' or '.join(expected)}, found {kind!r}"
            + (f"; run it with `{command}`" if command else "")
        )


def shipped_recipes(kind: str | None = None) -> dict[str, Path]:
    """List the recipes that come with biograft by name, all or those of one kind."""
    paths = {path.stem: path for path in (Path(__file__).parent / "recipes").glob("*.toml")}
    return {
        name: paths[name]
        for name in sorted(paths)
        if kind is None or read_recipe(paths[name])["kind"] == kind
    }


def find_recipe(name_or_path: str | Path, kind: str | None = None) -> Path:
    """Find a recipe: a TOML file, or a shipped one by its name.

    Args:
        name_or_path: Name of a shipped recipe, or a TOML file.
        kind: Kind that names are proposed of, if it is not found; default: all.
    """
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
    return _extend(load_toml(path), path, (*extending, resolved))


def _extend(values: dict[str, Any], path: Path, extending: tuple[Path, ...]) -> dict[str, Any]:
    """Merge the values of a recipe into those that its ``base`` names, if it has one."""
    base, without = values.pop("base", None), values.pop("without", [])
    if not isinstance(base, str | None):
        raise ConfigError(f"{path}: base: expected the name of a recipe, found {base!r}")
    if not isinstance(without, list) or not all(isinstance(key, str) for key in without):
        raise ConfigError(f"{path}: without: expected a list of keys, found {without!r}")
    if base is None:
        if without:
            raise ConfigError(f"{path}: without: there is no base to leave out from")
        return values
    merged = _read(_find_base(path, base), extending)
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
    """Put values into a base: tables are merged, everything else is replaced.

    Args:
        base: Values, changed in place.
        values: Values that replace or extend them.
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), MutableMapping):
            merge_tables(base[key], value)
        else:
            base[key] = value


def read_table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table of a recipe, empty if it is not there.

    Args:
        values: Values of a recipe.
        name: Key of the table.
    """
    table = values.get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name}: expected a table, found {table!r}")
    return table

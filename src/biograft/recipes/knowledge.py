"""What a recipe says of its knowledge layers: the table ``[knowledge]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError
from biograft.nn.knowledge_layers import MEMORY, NEIGHBOURS, TOLD_LAYERS, check_layer
from biograft.objectives.showing import WAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeConfig:
    """Which knowledge layers are put into the encoder, where, and how their entities begin.

    ``after`` says behind how many layers of the encoder each stands: ``{ entity_memory = 8 }``; a
    number alone is for ``entity_memory``. All share one table of entities. ``vectors`` is a folder
    of `biograft graph embed`; an entity that it lacks begins at random, and so do all without it.

    For ``entity_memory``: ``n_nearest`` entities make up what a mention is told; they are sought
    in ``n_probed`` clusters of the table, 0: in all of it, exactly.

    For ``neighbour_attention``: ``neighbours`` is a folder of `biograft graph neighbours`, of
    which a mention sees ``n_neighbours``.

    For all that are told entities (``neighbour_attention``, ``entity_fusion``): the table holds the
    ``whole_graph``, all that ``vectors`` and ``neighbours`` have, so that texts to come may name
    any entity, or only those of the text and their neighbours. ``shown`` says which mentions are
    told theirs in training: those that are ``hidden`` from the tokens, or ``all``. With
    ``neutral_start`` an untrained layer changes nothing.
    """

    after: int | Mapping[str, int] = 8
    vectors: Path | None = None
    dim: int = 100
    freeze: bool = False
    n_nearest: int = 100
    n_probed: int = 0
    fusion_norm: bool = False
    neighbours: Path | None = None
    n_neighbours: int = 10
    whole_graph: bool = True
    shown: str = "hidden"
    type_attention: bool = True
    node_attention: bool = True
    neutral_start: bool = True

    def __post_init__(self) -> None:
        for name, after in self.layers.items():
            check_layer(name)
            if after < 0:
                raise ConfigError(f"knowledge.after: expected at least 0, found {after}")
        for name, least in (("dim", 1), ("n_nearest", 1), ("n_probed", 0), ("n_neighbours", 1)):
            if getattr(self, name) < least:
                raise ConfigError(
                    f"knowledge.{name}: expected at least {least}, found {getattr(self, name)}"
                )
        if self.shown not in WAYS:
            raise ConfigError(
                f"knowledge.shown: expected one of {', '.join(WAYS)}, found {self.shown!r}"
            )
        if NEIGHBOURS in self.layers and self.neighbours is None:
            raise ConfigError(
                "knowledge.neighbours: neighbour_attention reads a folder of `biograft graph "
                "neighbours`; name it (--neighbours)"
            )
        if NEIGHBOURS not in self.layers and self.neighbours is not None:
            raise ConfigError(
                "knowledge.neighbours: no layer of the recipe reads neighbours; leave it out, or "
                "add neighbour_attention to knowledge.after"
            )

    @property
    def layers(self) -> Mapping[str, int]:
        """Behind how many layers of the encoder each knowledge layer stands, by its name."""
        return {MEMORY: self.after} if isinstance(self.after, int) else dict(self.after)

    @property
    def tells(self) -> bool:
        """Whether a layer must be told which entities mentions are linked to."""
        return any(name in self.layers for name in TOLD_LAYERS)

    def of_model(self) -> dict[str, Any]:
        """Give the settings under their names in the configuration of a model."""
        own = (
            *("n_nearest", "n_probed", "fusion_norm", "n_neighbours"),
            *("type_attention", "node_attention", "neutral_start"),
        )
        told = {name: getattr(self, name) for name in own}
        return {"knowledge_after": dict(self.layers), "freeze_entities": self.freeze, **told}

    def to_json(self) -> dict[str, Any]:
        """Give what decides a run as plain values, those of layers that are not there left out."""
        chosen = asdict(self)
        of_layers = {
            MEMORY: ("n_nearest", "n_probed", "fusion_norm"),
            NEIGHBOURS: ("neighbours", "n_neighbours", "type_attention", "node_attention"),
        }
        for layer, names in of_layers.items():
            if layer not in self.layers:
                for name in names:
                    del chosen[name]
        if not self.tells:
            del chosen["whole_graph"], chosen["shown"], chosen["neutral_start"]
        if not chosen.get("n_probed", 1):
            del chosen["n_probed"]
        return chosen

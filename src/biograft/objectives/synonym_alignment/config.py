"""What may be chosen of synonym alignment; the defaults are the published settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from biograft.errors import ConfigError, nearest
from biograft.registry import Registry

if TYPE_CHECKING:
    from biograft.objectives.synonym_alignment.objective import SynonymAlignment

MINERS = ("all", "hard", "semihard", "none")

_HOME = "biograft.objectives.synonym_alignment.losses"
LOSSES: Registry[Any] = Registry(
    "alignment loss",
    {
        "multi_similarity": (f"{_HOME}:MultiSimilarity", "soft maximum over each row's pairs"),
        "infonce": (f"{_HOME}:InfoNCE", "each positive against the negatives of its row"),
        "triplet_margin": (f"{_HOME}:TripletMargin", "a positive nearer than a negative by far"),
        "circle": (f"{_HOME}:Circle", "pairs weighted by how far they are from where they belong"),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymAlignmentConfig:
    """Which loss, with which parameters, on which triplets.

    ``miner`` says which triplets (anchor, positive, negative) count: ``all`` whose negative is
    at most ``margin`` farther than the positive, of these the ``hard`` ones (negative no farther)
    or the ``semihard`` ones (the rest); ``none`` keeps every pair of the batch.
    """

    reads: ClassVar[str] = "synonym_pairs"
    """The kind of stream it learns from."""

    loss: str = "multi_similarity"
    parameters: Mapping[str, float] = field(default_factory=dict)
    miner: str = "all"
    margin: float = 0.2
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name, value, known in (("loss", self.loss, LOSSES), ("miner", self.miner, MINERS)):
            if value not in known:
                raise ConfigError(f"{name}: expected one of {', '.join(known)}, "
                                  f"found {value!r}; {nearest(value, known)}")  # fmt: skip
        for name in ("margin", "weight"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(
                    f"{name}: expected a number of at least 0, found {getattr(self, name)}"
                )

    def build(self) -> SynonymAlignment:
        """Make the objective."""
        from biograft.objectives.synonym_alignment.objective import SynonymAlignment

        return SynonymAlignment(self)

"""What is asked of a linker in an evaluation: a mention, its gold concepts, where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from biograft.sources.log import ReadLog

NIL_MARKS = frozenset({"", "-1", "cui-less", "-"})
"""What benchmark files write, in any case, where no concept fits."""


@dataclass(frozen=True, slots=True)
class LinkQuery:
    """A mention to be linked.

    ``gold`` are all ids that count as right, none of them: NIL. ``needed`` says how they belong
    together: a composite mention means one concept of every group. Where the gold is given by
    names, ``gold_names`` holds them until the store says whose names they are.
    """

    mention: str
    gold: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()
    """What is looked up: the mention, or what the benchmark splits it into."""
    needed: tuple[frozenset[str], ...] = ()
    gold_names: tuple[str, ...] = ()
    document: str = ""
    start: int | None = None
    end: int | None = None
    context: str = ""
    """The text that ``start`` and ``end`` count in, where the format has it."""
    type: str = ""

    def __post_init__(self) -> None:
        if not self.parts:
            object.__setattr__(self, "parts", (self.mention,))
        if self.gold and not self.needed:
            object.__setattr__(self, "needed", tuple(frozenset({i}) for i in sorted(self.gold)))

    @property
    def is_nil(self) -> bool:
        """Whether no concept fits."""
        return not self.gold and not self.gold_names

    @property
    def is_composite(self) -> bool:
        """Whether the mention speaks of several concepts."""
        return len(self.needed) > 1 or len(self.gold_names) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldConfig:
    """Which queries of a gold file are asked, and how composites are taken."""

    types: tuple[str, ...] = ()
    """Mentions of these types only; none: all."""
    keep_nil: bool = False
    """Ask also where the gold answer is NIL."""
    split_composites: bool = True
    """Split mentions where the benchmark marks parts (BioSyn files); the published fast path
    does not, and leaves ``+`` alone."""
    drop_composites: bool = False
    drop_duplicates: bool = False
    """Ask each mention with the same gold once (case does not matter)."""


class GoldReader(Protocol):
    """Reads the queries of one format; what is wrong in the file goes to the log."""

    def __call__(self, path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
        """Read queries in the order of the file."""


def gold_ids(cells: Iterable[str]) -> tuple[str, ...]:
    """Bring the ids of a cell to what they name: blanks off, marks of NIL left out, each once."""
    stripped = (cell.strip() for cell in cells)
    return tuple(dict.fromkeys(cell for cell in stripped if cell.lower() not in NIL_MARKS))

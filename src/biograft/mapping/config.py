"""Settings of the matching of knowledge bases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import AtLeast, Config, Doc, Option, Range


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchConfig(Config):
    """Settings of the matching of two knowledge bases."""

    k: Annotated[int, AtLeast(1), Doc("Names of the other side compared with each name.")] = 5
    threshold: Annotated[
        float,
        Range(),
        Option("Leave out matches below this confidence.", metavar="P"),
    ] = 0.5
    xrefs: Annotated[
        bool, Option("Use cross-references, direct or to a third vocabulary, beside names.")
    ] = True
    one_to_one: Annotated[
        bool,
        Option("Match each concept of KB_B once at most: with that of the highest confidence."),
    ] = False
    broader: Annotated[
        bool,
        Option("Place a concept without a match under that of its nearest ancestor."),
    ] = True

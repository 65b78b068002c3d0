"""Configuration of personalised entity PageRank (PEPR)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import Choice, Config, Doc, Option, Range

EXPONENTS = {"columns": 0.0, "symmetric": 0.5, "rows": 1.0}
"""Normalisations of the adjacency A = D^-t W D^(t - 1), and their exponent t."""
MAX_ROUNDS = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class PeprConfig(Config):
    """Configuration of PEPR: how neighbours are scored, and how many are kept."""

    k: Annotated[int, Range(min=1, max=1000), Option("Neighbours per entity.", "-k", "K")] = 10
    damping: Annotated[
        float, Range(min=0.01, max=0.99), Option("Teleport probability.", metavar="A")
    ] = 0.15
    normalise: Annotated[str, Choice(*EXPONENTS), Option("Normalisation of the adjacency.")] = (
        "columns"
    )
    rounds: Annotated[
        int,
        Range(min=0, max=MAX_ROUNDS),
        Option(
            "Power iterations from the start vector, up to 6; 0: solve for the fixed point, which "
            "ignores the start.",
            metavar="N",
        ),
    ] = 0
    relations: Annotated[
        tuple[str, ...], Option("Edges of these relations only.", metavar="is-a,...")
    ] = ()
    refine: Annotated[bool, Option("Solve entities exactly whose ranking is uncertain.")] = False
    exact: Annotated[
        bool, Option("Solve every entity exactly; slow, the reference of benchmarks.")
    ] = False
    tolerance: Annotated[
        float, Range(min=1e-14, max=1e-4), Option("Maximum error of an exact score.", metavar="E")
    ] = 1e-9
    pilots: Annotated[
        int,
        Range(min=8, max=10_000),
        Doc(
            "Entities solved exactly to fit the correction: with over k neighbours, and with fewer."
        ),
    ] = 32
    threads: Annotated[
        int,
        Range(min=0, max=1024),
        Option("Threads; 0: one a core. The result does not depend on it.", metavar="N"),
    ] = 0

"""The layouts of published weights that are read, and the forms that ours are given away in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from biograft.registry import Registry

if TYPE_CHECKING:
    from biograft.checkpoints.published import Published


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """What published weights became."""

    model: Any
    facts: Mapping[str, Any]
    """What there is to know of the model, as plain values."""
    summary: str
    """The same in some words."""
    notes: tuple[str, ...] = ()
    """What one may have expected otherwise."""
    left_out: tuple[str, ...] = ()
    """Names of the weights that have no place in it."""


class Layout(Protocol):
    """How some published weights are named, and what they become."""

    def recognise(self, keys: Set[str]) -> bool:
        """Whether weights of these names are of the layout."""

    def convert(self, published: Published, *, as_published: bool) -> Converted:
        """Make the model; ``as_published`` keeps slips of the published code."""


LAYOUTS: Registry[Layout] = Registry(
    "layout of weights",
    {
        "kebiolm": (
            "biograft.checkpoints.kebiolm:KEBIOLM",
            "KeBioLM as published, pre-trained or fine-tuned",
        ),
        "smedbert": (
            "biograft.checkpoints.smedbert:SMEDBERT",
            "SMedBERT as published, of both generations: the BERT that is in it",
        ),
        "genbioel": (
            "biograft.checkpoints.genbioel:GENBIOEL",
            "BART as GenBioEL publishes it, pre-trained or fine-tuned",
        ),
    },
)

FORMS: Registry[Callable[[Path], Any]] = Registry(
    "form of checkpoint",
    {
        "bert": (
            "biograft.checkpoints.export:plain_bert",
            "the stack alone, as any program reads BERT; with its token head, if there is one",
        ),
    },
)

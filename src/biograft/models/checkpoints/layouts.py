"""The registries of importable weight layouts and of export forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from biograft.registry import Registry

if TYPE_CHECKING:
    from biograft.models.checkpoints.published import Published


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A model made from published weights."""

    model: Any
    facts: Mapping[str, Any]
    """Sizes and properties of the model, as plain values."""
    summary: str
    """The same in words."""
    notes: tuple[str, ...] = ()
    """Warnings about differences from the published model."""
    left_out: tuple[str, ...] = ()
    """Names of the weights that the model does not have."""


class WeightLayout(Protocol):
    """The names of published weights, and their conversion to a model."""

    def recognise(self, keys: Set[str]) -> bool:
        """Whether weights with these names have the layout."""

    def convert(self, published: Published, *, as_published: bool) -> Converted:
        """Build the model.

        Args:
            published: The published checkpoint.
            as_published: Keep the errors of the published code.
        """


LAYOUTS: Registry[WeightLayout] = Registry(
    "layout of weights",
    {
        "kebiolm": (
            "biograft.models.checkpoints.kebiolm:KEBIOLM",
            "KeBioLM as published, pre-trained or fine-tuned",
        ),
        "smedbert": (
            "biograft.models.checkpoints.smedbert:SMEDBERT",
            "SMedBERT as published, in both generations: its BERT without the knowledge layer",
        ),
        "genbioel": (
            "biograft.models.checkpoints.genbioel:GENBIOEL",
            "BART as GenBioEL publishes it, pre-trained or fine-tuned",
        ),
    },
)

FORMS: Registry[Callable[[Path], Any]] = Registry(
    "form of checkpoint",
    {
        "bert": (
            "biograft.models.checkpoints.conversion:plain_bert",
            "a plain BERT without knowledge layers, with its token head if there is one",
        ),
    },
)

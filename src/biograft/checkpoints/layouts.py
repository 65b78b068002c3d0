"""The layouts of published weights that are read, and the forms that ours are given away in."""

from __future__ import annotations

from collections.abc import Callable, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from biograft.registry import Registry

if TYPE_CHECKING:
    from biograft.checkpoints.published import Published


class Layout(Protocol):
    """How some published weights are named, and what they become."""

    def recognise(self, keys: Set[str]) -> bool:
        """Whether weights of these names are of the layout."""

    def convert(self, published: Published, *, as_published: bool) -> tuple[Any, list[str]]:
        """Give the model, and the names of the weights that have no place in it."""


LAYOUTS: Registry[Layout] = Registry(
    "layout of weights",
    {
        "kebiolm": (
            "biograft.checkpoints.kebiolm:KEBIOLM",
            "KeBioLM as published, pre-trained or fine-tuned",
        ),
    },
)

FORMS: Registry[Callable[[Path], Any]] = Registry(
    "form of checkpoint",
    {
        "bert": (
            "biograft.checkpoints.plain:plain_bert",
            "the stack alone, as any program reads BERT; with its token head, if there is one",
        ),
    },
)

"""What the loop is given to learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor, nn

Batch = TypeVar("Batch")
Batch_co = TypeVar("Batch_co", covariant=True)


class BatchSource(Protocol[Batch_co]):
    """Batches of each epoch in a fixed order, to be taken up anywhere; each has a length."""

    def __len__(self) -> int:
        """How many batches an epoch has."""

    def batches(self, epoch: int, position: int = 0) -> Iterator[Batch_co]:
        """Give the batches of an epoch from a position on."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Batch]):
    """What is to be learnt: a model, batches, and the loss of a batch.

    ``compute_loss`` is called with the model as it is run (wrapped where there are several
    processes). ``evaluate`` is called without gradient, the model in its inference mode.

    Losses that are means over something that batches have more or less of (hidden tokens,
    mentions) need ``counts``: how much of it a batch has, by name. ``compute_loss`` is then also
    given by what each mean is to be multiplied, so that an update is the mean over all that its
    batches have, on however many processes they are.
    """

    model: nn.Module
    source: BatchSource[Batch]
    compute_loss: Callable[..., tuple[Tensor, dict[str, float]]]
    """Of model and batch, and of multipliers by name where there are ``counts``."""
    counts: Callable[[Batch], Mapping[str, int]] | None = None
    evaluate: Callable[[], dict[str, Any]] | None = None
    after_epoch: Callable[[int], tuple[dict[str, Any], bool]] | None = None
    """Called as ``evaluate`` is, when an update has ended an epoch, with how many have ended;
    gives what to log, and whether that is enough, which ends the training."""
    described: Mapping[str, Any] = field(default_factory=dict)
    """The whole configuration, kept in ``run.json``; a resumed run must have the same."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What the run is made from; a resumed run must have the same."""

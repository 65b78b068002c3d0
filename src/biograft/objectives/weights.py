"""What every objective's weight must be."""

from __future__ import annotations

from biograft.errors import ConfigError


def check_weight(weight: float) -> None:
    """Refuse a weight that is negative or no number."""
    if not 0 <= weight < float("inf"):
        raise ConfigError(f"weight: expected a number of at least 0, found {weight}")

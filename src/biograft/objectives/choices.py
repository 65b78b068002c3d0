"""What a setting must be that is one of several words."""

from __future__ import annotations

from biograft.errors import ConfigError, nearest


def check_choice(field: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is none of those known."""
    if value not in known:
        raise ConfigError(
            f"{field}: expected one of {', '.join(known)}, found {value!r}; {nearest(value, known)}"
        )

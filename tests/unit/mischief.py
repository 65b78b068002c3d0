"""A pickle that does something when it is read."""

from __future__ import annotations


class Mischief:
    """Prints, should anyone unpickle it."""

    def __reduce__(self):
        return (print, ("run",))

"""``python -m biograft`` is ``biograft``."""

from __future__ import annotations

from biograft.cli import main

if __name__ == "__main__":
    main()

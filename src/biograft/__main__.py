"""The program ``biograft``, and ``python -m biograft``."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line; an interrupt while it is imported ends it without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where interrupts are ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from biograft.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()

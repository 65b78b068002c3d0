"""The program ``biograft``, and ``python -m biograft``."""

from __future__ import annotations

import atexit
import os
import signal
import sys


def main() -> None:
    """Run the command line; an interrupt while it is imported or ends leaves no traceback."""
    _open_closed_streams()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where interrupts are ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_DFL)
    from biograft.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


def _open_closed_streams() -> None:
    """Let standard streams that the caller has closed (``>&-``) read and write nothing.

    Else the first file that is opened has the number of the output, and gets what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    main()

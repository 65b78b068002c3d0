"""Command lines run in this process, or as a process of their own."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Ran:
    """What a command did.

    Attributes:
        status: The exit status.
        out: Standard output.
        err: Standard error.
        kind: The class of the error that ended it; of commands in this process only.
    """

    status: int
    out: str
    err: str
    kind: str = ""

    @property
    def json(self) -> Any:
        """The output as JSON: one value, or a list of the values of several lines."""
        try:
            return json.loads(self.out)
        except json.JSONDecodeError:
            return [json.loads(line) for line in self.out.splitlines() if line]

    @property
    def error(self) -> str:
        """The one line that an error prints; fails where there are more, or a traceback."""
        lines = self.err.splitlines()
        assert self.status == 2, self
        assert [line[:10] for line in lines if line.startswith("biograft: ")] == ["biograft: "], (
            self
        )
        assert "Traceback" not in self.err, self
        return lines[-1].removeprefix("biograft: ")


def run_command(line: str, *more: object, text: str = "") -> Ran:
    """Run a command line of biograft in this process, through the entry of the program.

    Args:
        line: What follows ``biograft``, split as a shell does.
        more: Further arguments, taken as they are (paths).
        text: Standard input.

    Returns:
        Exit status and outputs. An exception that the program does not report is raised.
    """
    from biograft.cli import main

    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    terminate, status, kind = signal.getsignal(signal.SIGTERM), 0, ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["biograft", *shlex.split(line), *map(str, more)])
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))
        patch.setattr(sys, "excepthook", sys.excepthook)  # typer sets its own
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            if status:
                kind = (
                    "UsageError" if ended.__context__ is None else type(ended.__context__).__name__
                )
        finally:
            signal.signal(signal.SIGTERM, terminate)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return Ran(status, out, err, kind)


def run_process(line: str, *more: object, text: str = "") -> Ran:
    """Run a command line of biograft as a process of its own, as a user does.

    Args:
        line: What follows ``biograft``, split as a shell does.
        more: Further arguments, taken as they are (paths).
        text: Standard input.

    Returns:
        Exit status and outputs.
    """
    done = subprocess.run(
        [sys.executable, "-m", "biograft", *shlex.split(line), *map(str, more)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "BIOGRAFT_LANG": "en"},
    )
    return Ran(done.returncode, done.stdout, done.stderr)

"""Run the command line in this process."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any, NamedTuple

import pytest

from biograft.cli import main


class Completed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run_main(capsys, monkeypatch):
    """Return a function that runs the whole program: ``run_main("kb", "info", store)``."""
    handler = signal.getsignal(signal.SIGTERM)

    def run(*arguments: object) -> Completed:
        monkeypatch.setattr(sys, "argv", ["biograft", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return Completed(int(str(code or 0)), out, err)

    yield run
    signal.signal(signal.SIGTERM, handler)

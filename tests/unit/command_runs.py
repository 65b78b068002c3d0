"""Commands run in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.testing import CliRunner


def runner_of(app: typer.Typer) -> Callable[..., Any]:
    """Return a function that runs a command, which must succeed; errors are raised unchanged."""

    def run(*arguments: object) -> Any:
        result = CliRunner().invoke(app, list(map(str, arguments)))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return run

"""Commands run in this process as the command line runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.testing import CliRunner


def runner_of(app: typer.Typer) -> Callable[..., Any]:
    """Make what runs a command that must succeed; an error is raised as it is."""

    def of(*arguments: object) -> Any:
        result = CliRunner().invoke(app, list(map(str, arguments)))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return of

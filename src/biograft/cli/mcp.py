"""``biograft mcp``: the tools of a knowledge base for a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import Kb
from biograft.cli.serve import NOT_OF_SERVICE
from biograft.errors import ConfigError
from biograft.linking.config import LinkerConfig, LinkerFiles


def mcp(
    kb: Kb,
    files: Annotated[LinkerFiles, Offered(without=("detector",))],
    linker: Annotated[LinkerConfig, Offered(without=NOT_OF_SERVICE, k=10)],
    http: Annotated[bool, "--http"] = False,
    host: Annotated[str, "HOST"] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535)] = 8081,
    keys: Annotated[Path | None, "FILE"] = None,
) -> None:
    """Give a language model tools to look up and check concepts (MCP).

    The client starts this command and talks to it on standard input and output; with --http it
    talks to http://127.0.0.1:8081/mcp. Texts are neither kept nor logged.

    Args:
        http: Listen at --port, at /mcp; default: stdio.
        host: With --http: address to listen at; other machines need --keys.
        port: With --http: port.
        keys: With --http: keys that are accepted (biograft key new).
    """
    from biograft.serve.mcp import run_mcp

    if not http and (keys is not None or host != "127.0.0.1"):
        raise ConfigError(f"{'--keys' if keys is not None else '--host'}: needs --http")
    run_mcp(kb, files, linker, http=http, host=host, port=port, keys=keys)

"""``biograft serve``: the service over HTTP; ``biograft key``: its keys; ``biograft mcp``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.fields import CommandGroup, Offered
from biograft.cli.options import Json, Kb, Quiet, note_without_index, open_kb, print_json
from biograft.errors import ConfigError
from biograft.linking.config import LinkerConfig, LinkerFiles
from biograft.serve.config import ServiceConfig

KeyPath = Annotated[
    Path,
    typer.Option("--keys", "--file", metavar="FILE", help="File of the keys' hashes (TOML)."),
]


NOT_OF_SERVICE = ("mentions", "detection", "mention_types", "explain")
"""Settings of a linker that a service has no use for."""


def serve(
    kb: Kb,
    files: Annotated[LinkerFiles, Offered(without=("detector",))],
    linker: Annotated[LinkerConfig, Offered(without=NOT_OF_SERVICE)],
    limits: ServiceConfig,
    host: Annotated[str, "HOST"] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535)] = 8080,
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=256)] = 1,
    keys: Annotated[Path | None, "FILE"] = None,
    no_keys: Annotated[bool, "--no-keys"] = False,
    allow_host: Annotated[list[str] | None, "NAME"] = None,
    system: Annotated[list[str] | None, "NAME=URI"] = None,
    review: Annotated[str | None, "DB"] = None,
    fhir: Annotated[list[Path] | None, "FILE"] = None,
    quiet: Quiet = False,
) -> None:
    """Answer requests over HTTP: link text, search and look up concepts.

    POST /v1/link {"text": "..."}; the others are described at /openapi.json. Texts are neither
    kept nor logged. Without --keys the address that it prints has a token: browsers need it, and so
    do reviews. Ctrl-C, SIGTERM or SIGHUP answers what has arrived and stops.

    Args:
        host: Address to listen at; others than this machine are only answered with --keys.
        port: Port.
        workers: Processes; they share the index.
        keys: Keys that are accepted (biograft key new).
        no_keys: Answer everybody, at any --host.
        allow_host: Host name that requests may use where there are no keys; repeatable.
        system: URI in FHIR of the ids with this prefix, or of this source; repeatable.
        review: Review to open at /review: a file, created if missing, or a postgresql:// URL.
        fhir: FHIR package (.tgz), resource (JSON) or mapping set (SSSOM) to serve; repeatable.
    """
    from biograft.serve import run_service
    from biograft.serve.fhir import parse_systems

    def say(address: str) -> None:
        if not quiet:
            typer.echo(f"The page: {address} (Ctrl-C stops the service)", err=True)
            if review:
                base, mark, token = address.partition("#")
                typer.echo(f"The review: {base}review{mark}{token}", err=True)

    note_without_index(open_kb(kb), files.index, quiet=quiet)
    run_service(
        kb,
        files,
        linker,
        host=host,
        port=port,
        workers=workers,
        keys=keys,
        without_keys=no_keys,
        config=limits,
        systems=parse_systems(system or []),
        review=review,
        allowed_hosts=allow_host or (),
        fhir=fhir or (),
        ready=say,
    )


key_app = CommandGroup("Make and remove the keys of a service.")


@key_app.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    file: KeyPath = Path("keys.toml"),
    role: Annotated[str, "read|review|admin"] = "read",
    as_json: Json = False,
) -> None:
    """Make a key, print it once, and keep only its hash.

    Args:
        name: Who gets the key.
        role: What the key allows.
    """
    from biograft.serve.keys import KeyFile

    key = KeyFile.open(file, create=True).add(name, role)
    if as_json:
        print_json({"name": name, "role": role, "key": key})
    else:
        typer.echo(key)


@key_app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    file: KeyPath = Path("keys.toml"),
    as_json: Json = False,
) -> None:
    """Revoke a key; a running service has to be restarted.

    Args:
        name: Name of the key to revoke.
    """
    from biograft.serve.keys import KeyFile

    KeyFile.open(file).remove(name)
    if as_json:
        print_json({"name": name})


@key_app.command("list")
def list_keys(file: KeyPath = Path("keys.toml"), as_json: Json = False) -> None:
    """List keys with owners and roles."""
    from biograft.serve.keys import KeyFile

    owners = [{"name": key.name, "role": key.role} for key in KeyFile.open(file).keys.values()]
    if as_json:
        print_json(owners)
        return
    for owner in owners:
        typer.echo(f"{owner['name']}  {owner['role']}")


def mcp(
    kb: Kb,
    files: Annotated[LinkerFiles, Offered(without=("detector",))],
    linker: Annotated[LinkerConfig, Offered(without=NOT_OF_SERVICE, k=10)],
    mapping_set: Annotated[list[Path] | None, "FILE"] = None,
    value_set_file: Annotated[list[Path] | None, "FILE"] = None,
    http: Annotated[bool, "--http"] = False,
    host: Annotated[str, "HOST"] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535)] = 8081,
    keys: Annotated[Path | None, "FILE"] = None,
) -> None:
    """Give a language model tools to look up and check concepts (MCP).

    The client starts this command and talks to it on standard input and output; with --http it
    talks to http://127.0.0.1:8081/mcp. Texts are neither kept nor logged.

    Args:
        mapping_set: Mapping set (SSSOM) by which codes are translated; repeatable.
        value_set_file: Value set (FHIR, or ids) that the tools look codes up in; repeatable.
        http: Listen at --port, at /mcp; default: stdio.
        host: With --http: address to listen at; other machines need --keys.
        port: With --http: port.
        keys: With --http: keys that are accepted (biograft key new).
    """
    from biograft.serve.mcp import run_mcp

    if not http and (keys is not None or host != "127.0.0.1"):
        raise ConfigError(f"{'--keys' if keys is not None else '--host'}: needs --http")
    run_mcp(
        kb,
        files,
        linker,
        mapping_sets=mapping_set or (),
        value_sets=value_set_file or (),
        http=http,
        host=host,
        port=port,
        keys=keys,
    )

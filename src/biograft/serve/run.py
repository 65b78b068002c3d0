"""Running the service by uvicorn, in one process or several that share the memory-mapped files."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from biograft.compute import BUDGET
from biograft.config import from_mapping
from biograft.errors import ConfigError, MissingExtraError
from biograft.linking.addresses import host_of, is_loopback
from biograft.linking.config import LinkerConfig, LinkerFiles
from biograft.serve.config import ServiceConfig

if TYPE_CHECKING:
    from biograft.serve.guard import App, Message, Receive, Scope, Send

_SETTINGS = "BIOGRAFT_SERVICE"
"""Environment variable in which worker processes find what to serve."""
_TOKEN = "BIOGRAFT_TOKEN"
_BACKLOG = 1024
_SWITCH_AFTER = 0.001
"""Seconds that a thread at work holds up the loop, which answers look-ups."""
_STOP_WITHIN = 5
"""Seconds that requests in progress have to be answered when the service is stopped."""
_END_WITHIN = 3.0
"""Seconds after that until the process ends, whatever still runs in it."""


def run_service(
    kb: str | Path,
    files: LinkerFiles | str | Path | None = None,
    linker: LinkerConfig | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    workers: int = 1,
    keys: str | Path | None = None,
    without_keys: bool = False,
    config: ServiceConfig | None = None,
    systems: Mapping[str, str] | None = None,
    review: str | None = None,
    allowed_hosts: Sequence[str] = (),
    fhir: Sequence[str | Path] = (),
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until interrupted; other machines are answered only with keys, or ``without_keys``.

    Args:
        kb: The knowledge base, or its folder.
        files: The index and the trained parts of the linker, or the folder of the index alone.
        linker: Settings of the linker.
        host: Address to listen at.
        port: Port to listen at.
        workers: Processes, which share the memory-mapped index.
        keys: File of the keys that are accepted; default: without keys, it is asked by ``host``,
            ``allowed_hosts``, ``localhost`` or an IP address, and not by pages of other sites.
        without_keys: Answer everybody without keys; default: where there are none, browsers need a
            token, which is a part of the address of the page, and so does who reads or changes a
            review. The environment variable ``BIOGRAFT_TOKEN`` may give it.
        config: Limits of the service.
        systems: URIs of code systems, by the prefix of ids or the source of names.
        review: Database of a review, created if missing.
        allowed_hosts: Host names that requests may use where there are no keys.
        fhir: FHIR packages, resources and mapping sets to serve beside the store.
        ready: Called with the address of the page as soon as the store is open.
    """
    if not without_keys:
        check_host(host, keys, ", or --no-keys where something in front of it checks who asks")
    for name in allowed_hosts:
        if not name or host_of(name) != name.lower():
            raise ConfigError(
                f"--allow-host {name}: expected the name alone, such as notes.example.org, "
                "without scheme, port or path"
            )
    _check_installed()
    options = server_options(host, port)
    if not isinstance(files, LinkerFiles):
        files = LinkerFiles(index=None if files is None else Path(files))
    given: dict[str, Any] = {
        "kb": kb,
        "files": asdict(files),
        "linker": asdict(linker or LinkerConfig()),
        "keys": keys,
        "config": asdict(config or ServiceConfig()),
        "systems": dict(systems or {}),
        "review": review,
        "fhir": [*map(str, fhir)],
        "allowed_hosts": [*allowed_hosts] if is_loopback(host) else [host, *allowed_hosts],
    }
    if keys is None and not without_keys:
        given["token"] = os.environ.get(_TOKEN) or secrets.token_urlsafe(16)
    described = json.dumps(given, default=str)
    if workers == 1:
        app: Any = _app(described)
    else:
        os.environ[_SETTINGS] = described
        app = f"{__name__}:worker_app"
        options |= {"factory": True, "workers": workers}
    if ready is not None:
        token = given.get("token")
        ready(_address(host, port) + (f"#token={quote(token, safe='')}" if token else ""))
    run_app(app, options)


def run_app(app: Any, options: Mapping[str, Any]) -> None:
    """Run an application until it is interrupted, told to end, or its terminal is closed.

    Args:
        app: The application, or where worker processes find it.
        options: Options of uvicorn.
    """
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    hangup = getattr(signal, "SIGHUP", None)  # not on Windows
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:  # as nohup leaves it
        signal.signal(hangup, lambda number, frame: signal.raise_signal(signal.SIGTERM))
        Multiprocess.handle_hup = Multiprocess.handle_term  # type: ignore[method-assign]
    elif hangup is not None:
        Multiprocess.handle_hup = lambda self: None  # type: ignore[method-assign]
    uvicorn.run(app, **options)


def check_host(host: str, keys: str | Path | None, otherwise: str = "") -> None:
    """Refuse to listen to other machines without keys.

    Args:
        host: Address to listen at.
        keys: File of the keys.
        otherwise: Another remedy, for the message.
    """
    if keys is None and not is_loopback(host):
        raise ConfigError(
            f"--host {host}: others could read all that is sent; give --keys FILE (see `biograft "
            f"key new`){otherwise}"
        )


def server_options(host: str, port: int) -> dict[str, Any]:
    """Return the options of uvicorn, for every face of the service.

    Args:
        host: Address to listen at.
        port: Port to listen at.
    """
    from biograft.serve.guard import LimitedProtocol

    try:  # said here: uvicorn has its own words, after the page was announced
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise ConfigError(
            f"--port {port}: cannot be listened at ({error.strerror}); choose another"
        ) from error
    return {
        "http": LimitedProtocol,
        "host": host,
        "port": port,
        "log_level": "warning",
        "access_log": False,  # it would write queries
        "server_header": False,
        "backlog": _BACKLOG,
        "timeout_graceful_shutdown": _STOP_WITHIN,
    }


def free_port(first: int = 8080, tries: int = 100) -> int:
    """Return a free port of this machine.

    Args:
        first: First port to try.
        tries: Number of ports to try.
    """
    for port in range(first, first + tries):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ConfigError(f"no port from {first} to {first + tries - 1} is free")


def _address(host: str, port: int) -> str:
    """Return the address of the page, as a browser on this machine wants it."""
    name = "127.0.0.1" if host in ("0.0.0.0", "") else host
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def worker_app() -> App:
    """Return the application of a worker process, as its environment says."""
    return _app(os.environ[_SETTINGS])


def ending(app: App) -> App:
    """Return an application whose process ends soon after it was shut down.

    A thread that works on a request cannot be stopped from outside, and Python waits for it.

    Args:
        app: The application.
    """

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        async def heard() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                last = threading.Timer(_END_WITHIN, os._exit, (0,))
                last.daemon = True
                last.start()
            return message

        await app(scope, heard if scope["type"] == "lifespan" else receive, send)

    return run


def _app(described: str) -> App:
    from biograft.serve.app import create_app

    logging.basicConfig(format="%(asctime)s %(process)d %(message)s")
    logging.getLogger("biograft.serve").setLevel(logging.INFO)
    sys.setswitchinterval(_SWITCH_AFTER)
    BUDGET.end()  # loops are compiled before the first request, not by one
    given = json.loads(described)
    given |= {
        "files": from_mapping(LinkerFiles, given["files"]),
        "linker": from_mapping(LinkerConfig, given["linker"]),
        "config": from_mapping(ServiceConfig, given["config"]),
    }
    app = create_app(**given)
    gc.collect()
    gc.freeze()  # what was opened stays: no collection has to go through it
    return ending(app)


def _check_installed() -> None:
    try:
        import fastapi  # noqa: F401 - said here, before anything is opened
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("serve", "the service") from error

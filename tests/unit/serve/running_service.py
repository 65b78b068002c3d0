"""A service in a process of its own, and what clients send to it byte by byte."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def running(*command: str, **settings: Any) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run ``biograft ... --port N`` until the end of the context; give its process and port.

    Args:
        command: The command without its port.
        settings: Settings of the process.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    whole = [sys.executable, "-m", "biograft", *command, "--port", str(port)]
    settings = {"stderr": subprocess.DEVNULL, "env": os.environ, "text": True, **settings}
    hangup = getattr(signal, "SIGHUP", None)
    before = signal.signal(hangup, signal.SIG_DFL) if hangup else None  # nohup: it is inherited
    process = subprocess.Popen(whole, **settings)
    if hangup:
        signal.signal(hangup, before)
    with process:
        try:
            for _ in range(1200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                assert process.poll() is None
                time.sleep(0.1)
            yield process, port
        finally:
            process.kill()


def sent(port: int, method: str, path: str, body: Any = None, **headers: str) -> socket.socket:
    """Return the connection on which a request was sent, and nothing read.

    Args:
        port: Port of the service.
        method: Method of the request.
        path: Path and query.
        body: Body, written as JSON.
        headers: Further headers.
    """
    content = b"" if body is None else json.dumps(body).encode()
    if body is not None:
        headers |= {"content-type": "application/json", "content-length": str(len(content))}
    lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall("\r\n".join([*lines, "", ""]).encode() + content)
    return made

"""An application that is served in a thread of the test."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def served(app: Any, **settings: Any) -> Iterator[str]:
    """Serve an application in a thread; give its address.

    Args:
        app: The application.
        settings: Settings of uvicorn.
    """
    import uvicorn  # of the extra `serve`

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, **{"log_level": "error", **settings}))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)

"""Places of a review in tests: a SQLite file, and a PostgreSQL server of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_TOOLS = ("initdb", "pg_ctl")


def _tool(name: str) -> str | None:
    found = shutil.which(name)
    others = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return found or (str(others[-1]) if others else None)


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Run a server in a folder of its own, without a port; give its URL."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    tools = {name: _tool(name) for name in _TOOLS}
    if None in tools.values():
        pytest.skip("PostgreSQL (initdb, pg_ctl) is not installed")
    owner: list[str] = []
    if os.getuid() == 0:  # the server does not run as root
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no runuser")
        owner = ["runuser", "-u", "postgres", "--"]
    folder = Path(tempfile.mkdtemp(prefix="biograft-pg-"))
    if owner:
        shutil.chown(folder, "postgres")

    def call(*command: str) -> None:
        done = subprocess.run(
            [*owner, *command],
            cwd=folder,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if done.returncode:
            pytest.skip(f"PostgreSQL does not start here ({command[0]})")

    data, log = str(folder / "data"), str(folder / "log")
    try:
        call(str(tools["initdb"]), "-D", data, "-U", "review", "-A", "trust", "-N")
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        call(str(tools["pg_ctl"]), "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield f"postgresql://review@/postgres?host={folder}"
        finally:
            with contextlib.suppress(pytest.skip.Exception):  # a test may have stopped it
                call(str(tools["pg_ctl"]), "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def end_all_connections(url: str) -> int:
    """End all connections of others to a server; return their number."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    end = sqlalchemy.text(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with engine.connect() as connection:
        n_ended = int(connection.scalar(end))
    engine.dispose()
    return n_ended


def stop(url: str) -> None:
    """Stop the server of a URL at once."""
    folder = Path(url.partition("host=")[2])
    os.kill(int((folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
    for _ in range(200):
        if not (folder / "data" / "postmaster.pid").exists():
            return
        time.sleep(0.05)

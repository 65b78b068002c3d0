"""The load client, and the table of the documentation."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def test_the_load_client_counts_what_comes_back(script):
    http_load = script("http_load")
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.read(4096):
            asked.append(request)
            if len(asked) % 3:
                head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
                writer.write(head)
                await writer.drain()
                writer.write(b"ok")  # an answer may come in parts
            else:
                writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async def run() -> tuple[object, object]:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            requests = [http_load.get("/a", q="x y"), http_load.post("/b", b"{}")]
            closed = await http_load.closed_loop(port, requests, 2, 0.1)
            opened = await http_load.open_loop(port, requests, 200, 0.1)
            await asyncio.sleep(0.1)  # for connections that are being closed
            return closed, opened

    for load in asyncio.run(run()):
        assert load.statuses[200] == len(load.latencies) > 0
        assert load.without_retry_after == load.statuses[503] > 0
        assert load.bodies == {0: {b"ok"}, 1: {b"ok"}}
    assert asked[0].startswith(b"GET /a?q=x%20y HTTP/1.1\r\n")


def test_the_table_of_the_service_is_that_of_the_result_file():
    script, result = BENCHMARKS / "service_load.py", BENCHMARKS / "results" / "service_load.json"
    command = [sys.executable, str(script), "--markdown", str(result)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    page = (BENCHMARKS.parent / "docs" / "service.md").read_text(encoding="utf-8")
    assert done.stdout.strip() in page

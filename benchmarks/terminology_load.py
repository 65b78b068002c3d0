"""Terminology look-ups over HTTP: requests per second, beside a bare ASGI echo in the same run.

The scenarios are those of HL7's public `tx-benchmark` that the knowledge base can answer:
`$lookup`, `$validate-code` of a code system and of a value set, right and wrong, `$subsumes`,
`$expand` with pages and filters, `$translate`. `biograft serve` runs in processes of its own, on
MEDIC; the echo answers every request by the same 600 bytes, with as many processes of uvicorn.
This process is the client, on the same machine. Service and echo are measured in turns, and the
medians are compared. ``cpu_ms`` is the processor time of the service for a request: on a machine
that is busy otherwise, rates fall, and this hardly does. The service keeps answers about codes:
``first_cpu_ms`` is that of the first second, before any turn, in which most requests are new.

    BIOGRAFT_DATA=... python benchmarks/terminology_load.py --json
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from diseases import open_diseases
from http_load import Load, closed_loop, get
from machine import describe_command, describe_commit
from script_options import add_data, add_load_options, measured_or_read, run_with, start_parser
from service_load import cpu_seconds, served

from biograft.compute import describe_machine
from biograft.kb import CodeSystems, KnowledgeBase
from biograft.linking.index import build_index

N_REQUESTS = 2000
MESH = "http://www.nlm.nih.gov/research/umls/msh"
TURNS = 3
_BODY = b"x" * 600


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer any request by the same bytes."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_BODY))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": _BODY})


def scenarios(kb: KnowledgeBase, seed: int = 0) -> dict[str, list[bytes]]:
    """Return the requests of each scenario, about codes that are drawn at random."""
    rng, systems = random.Random(seed), CodeSystems(kb)
    mesh = systems.known(MESH)
    entries = rng.choices(systems.members(mesh).tolist(), k=N_REQUESTS)
    codes = [(systems.code(each), systems.name(systems.row(each))) for each in entries]
    other = [code for code, _ in reversed(codes)]
    top = systems.code(max(entries, key=lambda e: len(systems.descendants(systems.row(e)))))
    below = f"{MESH}?fhir_vs=isa/{top}"
    system, value_set = "/fhir/CodeSystem/", "/fhir/ValueSet/"
    return {
        "$lookup": [get(f"{system}$lookup", system=MESH, code=c) for c, _ in codes],
        "$validate-code": [
            get(f"{system}$validate-code", url=MESH, code=c, display=d) for c, d in codes
        ],
        "$validate-code, wrong display": [
            get(f"{system}$validate-code", url=MESH, code=c, display="no such name")
            for c, _ in codes
        ],
        "$validate-code, value set": [
            get(f"{value_set}$validate-code", url=below, system=MESH, code=c) for c, _ in codes
        ],
        "$subsumes": [get(f"{system}$subsumes", system=MESH, codeA=top, codeB=c) for c in other],
        "$expand, 20 of a branch": [
            get(f"{value_set}$expand", url=below, count="20", offset=str(20 * (i % 5)))
            for i in range(len(codes))
        ],
        "$expand, filter": [
            get(f"{value_set}$expand", url=below, count="10", filter=d[:6].strip() or "a")
            for _, d in codes
        ],
        "$translate": [get("/fhir/ConceptMap/$translate", system=MESH, code=c) for c, _ in codes],
    }


@contextlib.contextmanager
def echoed(workers: int) -> Iterator[tuple[int, int]]:
    """Run the echo by uvicorn; give its port and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "terminology_load:echo", "--port", str(port)]
    command += ["--workers", str(workers), "--log-level", "warning", "--no-access-log"]
    here = str(Path(__file__).parent)
    paths = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(command, cwd=here, env={**os.environ, "PYTHONPATH": paths})
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.1)
        time.sleep(2.0)  # each worker opens by itself
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(60)


def measured(port: int, pid: int, requests: Sequence[bytes], options: Any) -> dict[str, Any]:
    """Measure one turn."""
    used = cpu_seconds(pid)
    load: Load = asyncio.run(closed_loop(port, requests, options.clients, options.seconds))
    used = cpu_seconds(pid) - used
    if set(load.statuses) - {200}:
        raise SystemExit(f"error: statuses {dict(load.statuses)}")
    return {**load.to_json(), "cpu_ms": round(1e3 * used / len(load.latencies), 3)}


def _medians(turns: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: round(median(each[key] for each in turns), 3) for key in turns[0]}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure every scenario beside the echo."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:
        kb = open_diseases(options.data, Path(work))
        build_index(kb, Path(work) / "index", None)
        asked = scenarios(kb)
        with (
            served(kb.folder, Path(work) / "index", options.workers) as (port, pid),
            echoed(options.workers) as (echo_port, echo_pid),
        ):
            for name, requests in asked.items():
                print(f"{name} ...", file=sys.stderr, flush=True)
                first = measured(port, pid, requests, argparse.Namespace(clients=8, seconds=1.0))
                # until each process has answered all of them
                asyncio.run(closed_loop(port, requests, options.clients, options.seconds))
                turns: dict[str, list[dict[str, float]]] = {"service": [], "echo": []}
                for _ in range(options.turns):
                    turns["service"].append(measured(port, pid, requests, options))
                    turns["echo"].append(measured(echo_port, echo_pid, requests, options))
                found = {key: _medians(each) for key, each in turns.items()}
                rates = [found[key]["per_second"] for key in ("service", "echo")]
                costs = [found[key]["cpu_ms"] for key in ("echo", "service")]
                found["share_of_echo"] = {
                    "rate": round(rates[0] / rates[1], 3),
                    "processor": round(costs[0] / costs[1], 3),
                }
                results[name] = {**found, "first_cpu_ms": first["cpu_ms"]}
        return {
            "scenarios": results,
            "workers": options.workers,
            "clients": options.clients,
            "n_concepts": len(kb),
            "machine": describe_machine(),
            "load_of_machine_before": [round(each, 2) for each in options.load_before],
            "commit": describe_commit(),
            "command": describe_command("terminology_load.py", sys.argv[1:]),
        }


def markdown(result: dict[str, Any]) -> str:
    """Return the table of the documentation."""
    lines = [
        "| scenario | a second | echo | share | processor time, ms | p50, p99 |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in result["scenarios"].items():
        own, other = row["service"], row["echo"]
        cells = [name, f"{own['per_second']:,.0f}", f"{other['per_second']:,.0f}"]
        cells.append(f"{row['share_of_echo']['rate']:.0%}")
        first = f"; new {row['first_cpu_ms']:.2f}" if "first_cpu_ms" in row else ""
        cells.append(f"{own['cpu_ms']:.2f} ({other['cpu_ms']:.2f}{first})")
        cells.append(f"{own['p50_ms']:.0f}, {own['p99_ms']:.0f} ms")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    """Read the options."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--clients", type=int, default=16, help="connections")
    parser.add_argument("--seconds", type=float, default=4, help="of each turn")
    parser.add_argument("--turns", type=int, default=TURNS, help="of service and echo, each")
    add_load_options(parser, quick="short turns")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.turns = 1, 1
    options.load_before = os.getloadavg()
    return options


if __name__ == "__main__":
    run_with(partial(measured_or_read, measure, markdown), parse_options())

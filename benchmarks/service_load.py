"""Load on the service: requests per second, percentiles of time, and what happens in overload.

`biograft serve` runs in processes of its own, with the published dictionary of the diseases of
BC5CDR (72,636 names) and short notes made of its names; this process is the client, on the same
machine. For `/v1/search` and `/v1/link`, each lexical and with the vectors of `static-english`:

- closed loop: 1, 8 and 64 clients, each of which sends one request after the other;
- half load: requests at half the rate that 64 clients reach, evenly in time, whose times count from
  when they were due;
- overload: requests at twice that rate for `--overload` seconds. The service must refuse by 429 or
  503 with Retry-After, keep its memory, and be right in what it answers.

Every answer of status 200 is compared with a direct call of the same linker. ``cpu_ms`` is the
processor time of the service for a request: on a machine that is busy otherwise, times grow, and
this hardly does.

    BIOGRAFT_DATA=... python benchmarks/service_load.py --json
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
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
from typing import Any, NamedTuple
from urllib.request import urlopen

from diseases import open_diseases
from http_load import Load, closed_loop, get, open_loop, post
from machine import describe_command, describe_commit
from script_options import (
    add_data,
    add_load_options,
    measured_or_read,
    run_with,
    some_of,
    start_parser,
)

from biograft.compute import describe_machine
from biograft.kb import KnowledgeBase
from biograft.linking.dense.encoders import load_encoder
from biograft.linking.index import build_index
from biograft.serve.engine import LinkJob, ServiceEngine

N_REQUESTS = 4000
CLIENTS = (1, 8, 64)
INDEXES = ("lexical", "vectors")
_SENTENCES = (
    "Patient with {}, admitted for {}.",
    "History of {}. Denies {}.",
    "No signs of {}; mother had {}.",
    "Possible {}, {} was ruled out.",
)
_SCORE_TOLERANCE = 1e-4
"""Vectors that are encoded in other batches differ in the last digits."""


class Workload(NamedTuple):
    """Requests to one route, and the answers of direct calls."""

    route: str
    requests: list[bytes]
    expected: list[Any]


def make_notes(kb: KnowledgeBase, n: int, seed: int = 0) -> list[str]:
    """Return short notes, of two sentences and four names."""
    rng = random.Random(seed)
    names = [kb.name_at(row).lower() for row in rng.choices(range(len(kb)), k=4 * n)]
    notes = []
    for i in range(n):
        first, second = rng.sample(_SENTENCES, 2)
        some = names[4 * i : 4 * i + 4]
        notes.append(f"{first.format(*some[:2])} {second.format(*some[2:])}")
    return notes


def make_queries(kb: KnowledgeBase, n: int, seed: int = 0) -> list[str]:
    """Return what somebody types: the first 2 to 12 characters of names."""
    rng = random.Random(seed)
    return [
        kb.name(rng.randrange(kb.n_names)).text[: rng.randint(2, 12)].strip() or "a"
        for _ in range(n)
    ]


def workloads(engine: ServiceEngine) -> list[Workload]:
    """Return the requests to each route, with the answers of direct calls."""
    queries = make_queries(engine.kb, N_REQUESTS)
    notes = make_notes(engine.kb, N_REQUESTS)
    linked = [engine.link([LinkJob((note,), ())])[0][0] for note in notes]
    return [
        Workload(
            "search",
            [get("/v1/search", q=query) for query in queries],
            [[hit.concept for hit in engine.search(query, 10, None)] for query in queries],
        ),
        Workload(
            "link",
            [post("/v1/link", json.dumps({"text": note}).encode()) for note in notes],
            [
                [
                    (m.start, m.end, m.concept, m.status, m.score if m.score else 0.0)
                    for m in each.mentions  # type: ignore[union-attr]
                ]
                for each in linked
            ],
        ),
    ]


def wrong_answers(work: Workload, load: Load) -> int:
    """Count the different answers that are not those of a direct call."""
    wrong = 0
    for number, bodies in load.bodies.items():
        for body in bodies:
            wrong += not _is_right(work, json.loads(body), work.expected[number])
    return wrong


def _is_right(work: Workload, answer: Any, expected: Any) -> bool:
    if work.route == "search":
        return bool([hit["concept"] for hit in answer["concepts"]] == expected)
    found = answer["mentions"]
    return len(found) == len(expected) and all(
        (m["start"], m["end"], m["concept"], m["status"]) == tuple(wanted[:4])
        and math.isclose(m["score"] or 0.0, wanted[4], abs_tol=_SCORE_TOLERANCE)
        for m, wanted in zip(found, expected, strict=True)
    )


@contextlib.contextmanager
def served(kb: Path, index: Path, workers: int) -> Iterator[tuple[int, int]]:
    """Run the service; give its port and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "biograft", "serve", "--kb", str(kb), "--index", str(index)]
    command += ["--quiet", "--port", str(port), "--workers", str(workers)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).read()
                break
            time.sleep(0.1)
        yield port, process.pid
        if process.poll() is not None:
            raise SystemExit(f"error: the service ended with status {process.returncode}")
    finally:
        process.terminate()
        process.wait(60)


def memory_mib(pid: int) -> float | None:
    """Return the memory of a process and those it started, shared parts once; None if unknown."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    own = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return own / 1024 + sum(memory_mib(int(child)) or 0.0 for child in children)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and those it started; 0 if unknown."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_seconds(int(child)) for child in children)


async def overload(
    port: int, pid: int, work: Workload, per_second: float, seconds: float
) -> dict[str, Any]:
    """Send at a rate that is too high, and return what the service did."""
    before = memory_mib(pid) or 0.0
    peak = before

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, memory_mib(pid) or 0.0)
            await asyncio.sleep(1)

    watcher = asyncio.create_task(watch())
    load = await open_loop(port, work.requests, per_second, seconds, from_due=False)
    watcher.cancel()
    after = await closed_loop(port, work.requests, 1, min(seconds, 2.0))
    return {
        "asked_per_second": round(per_second, 1),
        "seconds": round(load.seconds, 1),
        **load.to_json(),
        "statuses": {str(status): n for status, n in sorted(load.statuses.items())},
        "not_sent": load.not_sent,
        "without_retry_after": load.without_retry_after,
        "wrong": wrong_answers(work, load) + wrong_answers(work, after),
        "memory_mib": {"before": round(before), "peak": round(peak)},
        "afterwards": after.to_json(),
    }


async def measure_route(
    port: int, pid: int, work: Workload, options: argparse.Namespace
) -> dict[str, Any]:
    """Measure one route: closed loops, half load, overload."""
    await closed_loop(
        port, work.requests, 8, options.seconds / 2
    )  # caches, as in a running service
    result: dict[str, Any] = {"clients": {}, "wrong": 0}
    for clients in CLIENTS:
        used = cpu_seconds(pid)
        load = await closed_loop(port, work.requests, clients, options.seconds)
        used = cpu_seconds(pid) - used
        cpu = {"cpu_ms": round(1e3 * used / max(len(load.latencies), 1), 3)}
        result["clients"][str(clients)] = {**load.to_json(), **cpu}
        result["wrong"] += wrong_answers(work, load)
        top = len(load.latencies) / load.seconds
    half = await open_loop(port, work.requests, top / 2, options.seconds)
    result["half_load"] = {"asked_per_second": round(top / 2, 1), **half.to_json()}
    result["wrong"] += wrong_answers(work, half)
    if options.overload:
        result["overload"] = await overload(port, pid, work, 2 * top, options.overload)
    return result


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all routes with all indexes."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:
        kb = open_diseases(options.data, Path(work))
        for kind in options.indexes:
            index = Path(work) / kind
            build_index(kb, index, load_encoder("static-english") if kind == "vectors" else None)
            asked = workloads(ServiceEngine.open(kb.folder, index))
            with served(kb.folder, index, options.workers) as (port, pid):
                for route in asked:
                    if route.route in options.routes:
                        print(f"{route.route}, {kind} ...", file=sys.stderr, flush=True)
                        results[f"{route.route}, {kind}"] = asyncio.run(
                            measure_route(port, pid, route, options)
                        )
        return {
            "routes": results,
            "workers": options.workers,
            "n_names": kb.n_names,
            "machine": describe_machine(),
            "load_of_machine_before": [round(each, 2) for each in options.load_before],
            "commit": describe_commit(),
            "command": describe_command("service_load.py", sys.argv[1:]),
        }


def markdown(result: dict[str, Any]) -> str:
    """Return the table of the documentation."""
    lines = [
        "| route | 1 client | 8 clients | 64 clients | p50, p95, p99 at 64 | p99 at half load |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in result["routes"].items():
        rates = [f"{row['clients'][str(n)]['per_second']:,.0f}" for n in CLIENTS]
        most = row["clients"][str(CLIENTS[-1])]
        times = ", ".join(f"{most[f'{p}_ms']:.0f}" for p in ("p50", "p95", "p99"))
        cells = [f"`/v1/{name.replace(', ', '`, ')}", *rates, f"{times} ms"]
        lines.append(f"| {' | '.join(cells)} | {row['half_load']['p99_ms']:.0f} ms |")
    return "\n".join(lines)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the options."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--routes", type=some_of(("search", "link")), default=["search", "link"])
    parser.add_argument("--indexes", type=some_of(INDEXES), default=list(INDEXES))
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--overload", type=float, default=120, metavar="SECONDS")
    add_load_options(parser, quick="short runs, lexical only")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seconds, options.overload, options.indexes = 2, 4, ["lexical"]
    options.load_before = os.getloadavg()
    return options


if __name__ == "__main__":
    run_with(partial(measured_or_read, measure, markdown), parse_options())

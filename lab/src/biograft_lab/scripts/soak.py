"""Hours of mixed work on one linker and one service: memory stays flat, and answers stay the same.

A linker of this process links notes one by one, in batches and as terms, with settings that change;
at the same time a service (`biograft serve`) answers searches, notes, look-ups, FHIR operations and
requests that are refused. Memory is noted after a tenth of the time, when caches are filled, and at
the end. Then a fresh process answers the same requests, which must give the same bytes.

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.soak --minutes 30 --json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from diseases import open_diseases
from http_load import Answer, connect, get, post
from service_load import make_notes, make_queries, memory_mib, served

from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.dense.encoders import load_encoder
from biograft.linking.index import build_index
from biograft_lab.scripts import new_parser, run

N_NOTES = 400
CONNECTIONS = 4
_CHECKED = 200
"""Requests that are compared with a fresh process."""


def make_requests(kb: KnowledgeBase) -> list[bytes]:
    """Return requests of all kinds, some of which are refused."""
    notes, queries = make_notes(kb, N_NOTES, seed=1), make_queries(kb, N_NOTES, seed=1)
    rng = random.Random(1)
    ids = [kb.id_at(rng.randrange(len(kb))) for _ in range(N_NOTES)]
    requests = []
    for i, (note, query, own) in enumerate(zip(notes, queries, ids, strict=True)):
        requests += [
            post("/v1/link", json.dumps({"text": note, "k": 1 + i % 5}).encode()),
            post("/v1/link", json.dumps({"texts": [note, query]}).encode()),
            post("/v1/mentions", json.dumps({"mentions": [query, note[:40]]}).encode()),
            get("/v1/search", q=query),
            get(f"/v1/concepts/{own}"),
            get("/v1/is-a", concept=own, ancestor=ids[i - 1]),
            get("/fhir/ValueSet/$expand", url="urn:biograft:kb?fhir_vs", filter=query, count="5"),
            post("/v1/link", b'{"text": ' + b"[" * (i % 50)),
            post("/v1/link?to=fhir", json.dumps({"text": note}).encode()),
        ]
    rng.shuffle(requests)
    return requests


def link_some(linkers: list[Linker], notes: list[str], turn: int) -> int:
    """Link notes in a way that changes from turn to turn; return how many mentions there are."""
    linker = linkers[turn % len(linkers)]
    some = [notes[(turn * 7 + i) % len(notes)] for i in range(16)]
    if turn % 3 == 0:
        return sum(len(linker(note).mentions) for note in some)
    if turn % 3 == 1:
        return sum(len(each.mentions) for each in linker.pipe(some))
    return sum(len(found) for found in linker.link_mentions([note[:30] for note in some]))


async def work(port: int, requests: list[bytes], until: float, statuses: Counter[int]) -> None:
    """Send requests one after the other until a time."""

    async def client(first: int) -> None:
        connection, number = await connect(port), first
        while time.perf_counter() < until:
            answer = await connection.send(requests[number % len(requests)])
            statuses[answer.status] += 1
            number += CONNECTIONS
            if not connection.is_open:
                connection = await connect(port)
        connection.close()

    await asyncio.gather(*(client(first) for first in range(CONNECTIONS)))


async def answers(port: int, requests: list[bytes]) -> list[Answer]:
    """Return the answers to some requests."""
    connection = await connect(port)
    found = []
    for request in requests:
        if not connection.is_open:
            connection = await connect(port)
        found.append(await connection.send(request))
    connection.close()
    return found


async def soak(
    port: int, pid: int, requests: list[bytes], linkers: list[Linker], seconds: float
) -> dict[str, Any]:
    """Work for some time, and return what was counted and how memory went."""
    notes = make_notes(linkers[0].kb, N_NOTES)
    started = time.perf_counter()
    statuses: Counter[int] = Counter()
    memory: dict[str, list[float]] = {"linker": [], "service": []}
    turns = 0

    async def link() -> None:
        nonlocal turns
        while time.perf_counter() < started + seconds:
            await asyncio.to_thread(link_some, linkers, notes, turns)
            turns += 1

    async def watch() -> None:
        for _ in range(10):
            await asyncio.sleep(seconds / 10)
            memory["linker"].append(round(memory_mib(os.getpid()) or 0.0, 1))
            memory["service"].append(round(memory_mib(pid) or 0.0, 1))

    await asyncio.gather(work(port, requests, started + seconds, statuses), link(), watch())
    return {
        "requests": sum(statuses.values()),
        "statuses": {str(status): n for status, n in sorted(statuses.items())},
        "notes_linked": turns * 16,
        "memory_mib": memory,
        "growth_mib": {name: round(each[-1] - each[0], 1) for name, each in memory.items()},
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything on the published dictionary of diseases."""
    with tempfile.TemporaryDirectory() as folder:
        kb = open_diseases(options.data, Path(folder))
        index = Path(folder) / "index"
        build_index(kb, index, load_encoder("static-english") if options.vectors else None)
        linker = Linker.open(kb.folder, index, k=5)
        linkers = [linker, linker.with_settings(k=1), linker.with_settings(assertions=False)]
        requests = make_requests(kb)
        before = linker(make_notes(kb, 1, seed=2)[0])
        with served(kb.folder, index, 1) as (port, pid):
            result = asyncio.run(soak(port, pid, requests, linkers, 60 * options.minutes))
            late = asyncio.run(answers(port, requests[:_CHECKED]))
        with served(kb.folder, index, 1) as (port, _):
            fresh = asyncio.run(answers(port, requests[:_CHECKED]))
        different = [
            {"request": request.decode()[:300], "late": a.body.decode(), "fresh": b.body.decode()}
            for request, a, b in zip(requests, late, fresh, strict=False)
            if _plain(a) != _plain(b)
        ]
        same = linker(make_notes(kb, 1, seed=2)[0]).mentions == before.mentions
        return {
            "minutes": options.minutes,
            **result,
            "answers_compared": len(fresh),
            "answers_different": len(different),
            "different": different[:3],
            "linker_answers_the_same": same,
        }


def _plain(answer: Answer) -> tuple[int, Any]:
    """Return what is compared: expansions have an identifier of their own."""
    try:
        content = json.loads(answer.body)
    except ValueError:
        return answer.status, answer.body
    if isinstance(content, dict) and isinstance(content.get("expansion"), dict):
        content["expansion"].pop("identifier", None)
    return answer.status, content


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--vectors", action="store_true", help="with static-english vectors, too")
    parser.add_argument("--quick", action="store_const", dest="minutes", const=0.5)
    run(measure, parser)


if __name__ == "__main__":
    main()

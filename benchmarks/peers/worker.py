"""Run one job of one peer, in a Python that has it, and print one JSON object.

python worker.py MODULE JOB WORK SETTINGS, started by compare_peers.py. MODULE is a file of this
folder, with ``PACKAGES`` (distributions whose versions are reported) and one function for each job
that the peer can do:

build(work, settings)        make an index below WORK, which the others open
open_text(work, settings)    return a function from a text to its spans: (start, end, id)
open_terms(work, settings)   return a function from a term to the id of its concept, or None
open_status(work, settings)  return a function from a sentence and its spans to the flags of each

WORK holds names.json (pairs of an id and a name, preferred names first), texts.json, terms.json and
sentences.json (pairs of a text and its spans).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

INPUTS = {"text": "texts.json", "terms": "terms.json", "status": "sentences.json"}


def read_json(work: Path, name: str) -> Any:
    """Read a file of the folder."""
    return json.loads((work / name).read_text(encoding="utf-8"))


def peak_mib() -> float | None:
    """Return the peak memory of this process alone, where the system says it."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    return None


def main() -> None:
    """Run the job; what a peer prints goes to standard error."""
    name, job, folder, settings = sys.argv[1:]
    work, options = Path(folder), json.loads(settings)
    with contextlib.redirect_stdout(sys.stderr):
        result = run(importlib.import_module(name), job, work, options)
    print(json.dumps(result))


def run(peer: Any, job: str, work: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Build an index, or answer all inputs of a job."""
    started = time.process_time()
    answer: Callable[..., Any] = getattr(peer, job if job == "build" else f"open_{job}")(
        work, options
    )
    if job == "build":
        return {"seconds": time.process_time() - started}
    opened = time.process_time()
    inputs = [each if job == "status" else (each,) for each in read_json(work, INPUTS[job])]
    answer(*inputs[0])  # loads what is loaded with the first input
    started_all = time.process_time()
    answers = [answer(*each) for each in inputs]
    done = time.process_time()
    return {
        "versions": {each: importlib.metadata.version(each) for each in peer.PACKAGES},
        "answers": answers,
        "cold_start_seconds": started_all,  # of the whole process
        "open_seconds": opened - started,
        "seconds": done - started_all,
        "peak_mib": peak_mib(),
    }


if __name__ == "__main__":
    main()

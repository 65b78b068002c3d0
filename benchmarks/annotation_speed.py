"""How fast text is annotated on one core: the matching alone, and all of it.

Names are synthetic (see synthetic_names.py), four to a concept. The text is a file of one
document a line (--text, such as text/english_abstracts.txt.gz of the real data) or, without one,
made of the names themselves. Its first half warms up and the second is timed, since a long
run has read most words before. Times are those of the processor, so other work counts
little. Each number of names runs in a process of its own. The names index is made as `biograft
index` makes it, and opened from disk. Beside it run bare automata over the same names and text
where they are installed (ahocorasick-rs, pyahocorasick), which know neither words nor case.

    python benchmarks/annotation_speed.py --quick --json    73,000 names, 1 MB, under a minute
    python benchmarks/annotation_speed.py --names 73000,1000000 --json
    python benchmarks/annotation_speed.py --names 4000000 --json
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit, peak_gib
from script_options import run_with, start_parser
from synthetic_names import make_names

from biograft.compute import describe_machine
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.kb.sources.files import open_bytes
from biograft.linking import build_index
from biograft.linking.annotation import AnnotationConfig, Annotator
from biograft.linking.annotation.chunks import Chunk, find_files, read_chunks
from biograft.linking.annotation.runner import annotate_chunk
from biograft.text import NamesIndex
from biograft.text.inputs import Inputs

NAMES_PER_CONCEPT = 4
PUBMED_ABSTRACTS, ABSTRACT_BYTES = 35_000_000, 1320
"""Abstracts of PubMed, and what one takes in UTF-8, its title included (the mean of BC5CDR's 1,500
documents)."""
_WORKERS = (1, 16, 64)
_RATE_BYTES = 4_000_000


def measure(n_names: int, text: bytes, options: argparse.Namespace) -> dict[str, Any]:
    """Time matching and annotating against a bare automaton, interleaved, on one core."""
    names = make_names(n_names)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        warm_chunks, chunks, text = read_halves(text, folder)
        store = _build_store(names, folder)
        names_index = _measure_names(store, folder / "names")
        matcher = NamesIndex.open(folder / "names", "benchmark")
        build_index(store, folder / "index")
        started = time.perf_counter()
        annotator = Annotator.open(store, AnnotationConfig(index=folder / "index"))
        seconds = time.perf_counter() - started
        lines = text.decode().splitlines()
        others = _bare_automata(names)
        plain = text.decode()

        def annotate(some: Sequence[Any] = chunks) -> None:
            for chunk in some:
                annotate_chunk(folder, annotator, chunk)

        matcher.search(lines[:10])
        annotate(warm_chunks)
        seconds_of = _interleave(
            options.runs,
            lambda: matcher.search(lines),
            annotate,
            *(_bound(find, plain) for find in others.values() if callable(find)),
        )
    rates = [len(text) / 1e6 / each for each in seconds_of]
    limits = dict(zip([n for n, find in others.items() if callable(find)], rates[2:], strict=True))
    limit = limits.get("ahocorasick_rs")
    return {
        "n_names": n_names,
        "text_mb": len(text) / 1e6,
        "matching_mb_per_second": rates[0],
        "whole_mb_per_second": rates[1],
        "limits_mb_per_second": {
            name: limits.get(name, find if isinstance(find, str) else None)
            for name, find in others.items()
        },
        "matching_over_limit": rates[0] / limit if limit else None,
        "names_index": names_index,
        "open_seconds": seconds,
        "peak_gib": peak_gib(),
        "pubmed": project(rates[1]),
    }


def read_halves(text: bytes, folder: Path) -> tuple[list[Chunk], list[Chunk], bytes]:
    """Write both halves of a text as files; return their chunks, and the second half."""
    middle = text.index(b"\n", len(text) // 2) + 1
    (folder / "warm-up.txt").write_bytes(text[:middle])
    (folder / "text.txt").write_bytes(text[middle:])
    warm_chunks, chunks = (
        list(read_chunks(find_files(Inputs([folder / name]))))
        for name in ("warm-up.txt", "text.txt")
    )
    return warm_chunks, chunks, text[middle:]


def annotation_rate(kb: KnowledgeBase, index: Path, folder: Path, runs: int) -> float:
    """Return megabytes of text annotated in a second of a processor, with an index on disk."""
    annotator = Annotator.open(kb, AnnotationConfig(index=index))
    warm_chunks, chunks, text = read_halves(make_text(None, _RATE_BYTES), folder)

    def annotate(some: Sequence[Chunk] = chunks) -> None:
        for chunk in some:
            annotate_chunk(folder, annotator, chunk)

    annotate(warm_chunks)
    (seconds,) = _interleave(runs, annotate)
    return len(text) / 1e6 / seconds


def _interleave(runs: int, *calls: Callable[[], Any]) -> list[float]:
    """Return the median processor time of each call, interleaved."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(runs):
        for row, call in enumerate(calls):
            start = time.process_time()
            call()
            times[row].append(time.process_time() - start)
    return [statistics.median(each) for each in times]


def project(mb_per_second: float) -> dict[str, Any]:
    """Return the projected time for PubMed; the speed includes reading and writing."""
    megabytes = PUBMED_ABSTRACTS * ABSTRACT_BYTES / 1e6
    return {
        "abstracts": PUBMED_ABSTRACTS,
        "bytes_each": ABSTRACT_BYTES,
        "megabytes": megabytes,
        "mb_per_second_of_a_worker": mb_per_second,
        "formula": "abstracts * bytes_each / 1e6 / mb_per_second_of_a_worker / workers / 3600",
        "hours_by_workers": {str(n): megabytes / mb_per_second / n / 3600 for n in _WORKERS},
    }


def _bound(find: Callable[[str], Any], text: str) -> Callable[[], Any]:
    return lambda: find(text)


def _bare_automata(names: Sequence[str]) -> dict[str, Callable[[str], Any] | str]:
    """Return the automata that are installed, and why others are not measured."""
    found: dict[str, Callable[[str], Any] | str] = {}
    for name, module in (("ahocorasick_rs", "ahocorasick_rs"), ("pyahocorasick", "ahocorasick")):
        if importlib.util.find_spec(module) is None:
            found[name] = f"not measured: {name} is not installed"
        else:
            make = _bare_rust if name == "ahocorasick_rs" else _bare_c
            found[name] = make(importlib.import_module(module), names)
    return found


def _bare_rust(module: Any, names: Sequence[str]) -> Callable[[str], Any]:
    bare = module.AhoCorasick(
        names, matchkind=module.MATCHKIND_LEFTMOST_LONGEST, store_patterns=False
    )
    find: Callable[[str], Any] = bare.find_matches_as_indexes
    return find


def _bare_c(module: Any, names: Sequence[str]) -> Callable[[str], Any]:
    bare = module.Automaton()
    for row, name in enumerate(names):
        bare.add_word(name, row)
    bare.make_automaton()
    return lambda text: sum(1 for _ in bare.iter_long(text))


def _measure_names(store: KnowledgeBase, folder: Path) -> dict[str, float]:
    """Write the names index of a store; say how long that and opening take, and its size."""
    NamesIndex.build(["compiled loops"]).search(["compiled"])
    start = time.process_time()
    NamesIndex.from_store(store).save(folder, "benchmark", store.n_names)
    built = time.process_time()
    NamesIndex.open(folder, "benchmark")
    opened = time.process_time()
    return {
        "build_seconds": built - start,
        "open_milliseconds": 1e3 * (opened - built),
        "megabytes": sum(path.stat().st_size for path in folder.iterdir()) / 1e6,
    }


def _build_store(names: Sequence[str], folder: Path) -> KnowledgeBase:
    source = folder / "dictionary.txt"
    with source.open("w", encoding="utf-8") as file:
        file.writelines(f"D{n // NAMES_PER_CONCEPT:07}||{name}\n" for n, name in enumerate(names))
    build_store(BuildConfig(sources=(SourceConfig(path=source, format="biosyn"),)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")


def make_text(path: Path | None, n_bytes: int) -> bytes:
    """Return whole lines of a file, or lines made of names, one word in five from a name."""
    if path is None:
        words = " was found in the patients who had no other cause of it and then".split()
        names = make_names(20_000)
        parts = (f"{name} {' '.join(words[n % 5 :])}." for n, name in enumerate(names))
        lines = [" ".join(part) for part in zip(*[parts] * 12, strict=False)]
        made = "\n".join(lines).encode() + b"\n"
        return made * (n_bytes // len(made) + 1)
    with open_bytes(path) as file:
        data = file.read(n_bytes)
    return data[: data.rfind(b"\n") + 1].decode(errors="replace").encode()


def _parse() -> argparse.Namespace:
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="73,000 names and 1 MB of text")
    parser.add_argument("--json", action="store_true", help="one line")
    parser.add_argument("--names", default="73000,1000000", help="numbers of names, by commas")
    parser.add_argument("--text", type=Path, help="a file of one document a line")
    parser.add_argument("--mb", type=int, default=4, help="how much of it")
    parser.add_argument("--runs", type=int, default=3, help="runs for the median")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def run(options: argparse.Namespace) -> None:
    """Measure each number of names in a process of its own, and print."""
    n_bytes = 1_000_000 if options.quick else options.mb * 1_000_000
    if options.one:
        print(json.dumps(measure(options.one, make_text(options.text, n_bytes), options)))
        return
    sizes = ["73000"] if options.quick else options.names.split(",")
    results = {}
    for size in sizes:
        command = [sys.executable, __file__, *sys.argv[1:], "--one", size]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        results[size] = json.loads(done.stdout.splitlines()[-1])
    result = {
        "benchmark": "annotation_speed",
        "command": describe_command("annotation_speed.py", sys.argv[1:]),
        "commit": describe_commit(),
        "machine": describe_machine(),
        "names": results,
    }
    print(json.dumps(result) if options.json else json.dumps(result, indent=1))


if __name__ == "__main__":
    run_with(run, _parse())

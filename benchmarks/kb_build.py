"""How fast a UMLS-sized store is built, against a plain-Python build of the same store.

Makes an UMLS-shaped distribution (MRCONSO, MRSTY, MRREL of synthetic rows), builds it once with
biograft and once with dicts and SQLite, each in a process of its own, checks that both hold the
same, and times opening and lookups.

    python benchmarks/kb_build.py --json >benchmarks/results/kb_build.json    5M + 5M rows
    python benchmarks/kb_build.py --quick --json       under a minute
    python benchmarks/kb_build.py --names 15000000 --relations 5000000 --no-python
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from machine import describe_commit

from biograft.compute import describe_machine
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.names import normalise
from biograft.kb.sources import SourceConfig

NAMES_PER_CONCEPT = 4
ISA_RATIO = 0.1
CHUNK = 1_000_000


def make_distribution(folder: Path, n_names: int, n_relations: int, seed: int = 13) -> None:
    """Write the files of a distribution: a tenth of the names repeat, a tenth of MRREL is isa."""
    rng = np.random.default_rng(seed)
    n_concepts = max(1, n_names // NAMES_PER_CONCEPT)
    letters = rng.integers(ord("a"), ord("z") + 1, (30_000, 10), dtype=np.uint8)
    words = np.array(
        [
            row[:n].tobytes().decode()
            for row, n in zip(letters, rng.integers(3, 11, 30_000), strict=True)
        ]
    )
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "MRCONSO.RRF").open("wb") as file:
        for start in range(0, n_names, CHUNK):
            file.write(_names(start, min(CHUNK, n_names - start), words, rng))
    with (folder / "MRREL.RRF").open("wb") as file:
        for start in range(0, n_relations, CHUNK):
            file.write(_relations(start, min(CHUNK, n_relations - start), n_concepts, rng))
    concepts = pl.DataFrame({"c": np.arange(n_concepts)})
    line = pl.format(
        "C{}|T047|B2.2.1.2.1|Disease or Syndrome|AT{}|256|", _padded("c"), _padded("c")
    )
    (folder / "MRSTY.RRF").write_bytes(_lines(concepts.select(line=line)))


def _names(start: int, n: int, words: Any, rng: np.random.Generator) -> bytes:
    """Names of two to four words; every tenth repeats the name before it from another source."""
    number = np.arange(start, start + n)
    third = np.where(rng.random(n) < 0.6, words[rng.integers(0, len(words), n)], "")
    frame = pl.DataFrame(
        {
            "c": number // NAMES_PER_CONCEPT,
            "n": number,
            "first": number % NAMES_PER_CONCEPT == 0,
            "one": words[rng.integers(0, len(words), n)],
            "two": words[rng.integers(0, len(words), n)],
            "three": third,
        }
    ).with_columns(
        name=pl.format(
            "{} {} {}", pl.col("one").str.to_titlecase(), "two", "three"
        ).str.strip_chars()
    )
    repeats = (pl.col("n") % 10 == 9) & ~pl.col("first")
    repeated = pl.when(repeats).then(pl.col("name").shift()).otherwise("name")
    frame = frame.with_columns(name=repeated.fill_null("Repeated name"))
    status = pl.when("first").then(pl.lit("P")).otherwise(pl.lit("S"))
    line = pl.format(
        "C{}|ENG|{}|L{}|PF|S{}|Y|A{}||M{}|D{}|MSH|ET|D{}|{}|0|N|256|",
        _padded("c"),
        status,
        _padded("n"),
        _padded("n"),
        _padded("n"),
        _padded("c"),
        _padded("c"),
        _padded("c"),
        "name",
    )
    return _lines(frame.select(line=line))


def _relations(start: int, n: int, n_concepts: int, rng: np.random.Generator) -> bytes:
    frame = pl.DataFrame(
        {
            "n": np.arange(start, start + n),
            "a": np.sort(rng.integers(0, n_concepts, n)),
            "b": rng.integers(0, n_concepts, n),
            "isa": rng.random(n) < ISA_RATIO,
        }
    )
    name = pl.when("isa").then(pl.lit("CHD")).otherwise(pl.lit("RO"))
    label = pl.when("isa").then(pl.lit("isa")).otherwise(pl.lit("may_treat"))
    line = pl.format(
        "C{}|A{}|AUI|{}|C{}|A{}|AUI|{}|R{}||MSH|MSH|||N||",
        _padded("a"),
        _padded("n"),
        name,
        _padded("b"),
        _padded("n"),
        label,
        _padded("n"),
    )
    return _lines(frame.select(line=line))


def _padded(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).str.zfill(7)


def _lines(frame: pl.DataFrame) -> bytes:
    text: str = frame["line"].str.join("\n")[0]
    return text.encode() + b"\n"


def build_with_biograft(source: Path, out: Path) -> dict[str, Any]:
    """Build with biograft; return counts, seconds and peak memory."""
    start = time.perf_counter()
    config = BuildConfig(sources=(SourceConfig(path=source, format="umls"),))
    report = build_store(config, out, overwrite=True)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "stages": report.seconds,
        "peak_gib": _peak_gib(),
        "n_concepts": report.counts["concepts"],
        "n_names": report.counts["names"],
        "n_relations": report.counts["relations"],
    }


def build_with_python(source: Path, out: Path) -> dict[str, Any]:
    """Build the same store with dicts and SQLite: the natural way without libraries."""
    start = time.perf_counter()
    base = sqlite3.connect(out)
    base.executescript(
        """PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
        CREATE TABLE concepts (row INTEGER PRIMARY KEY, id TEXT);
        CREATE TABLE names (
            concept INTEGER, text TEXT, key TEXT, language TEXT, kind TEXT, source TEXT);
        CREATE TABLE types (concept INTEGER, type TEXT, label TEXT);
        CREATE TABLE relations (head INTEGER, relation TEXT, tail INTEGER, source TEXT);"""
    )
    rows: dict[str, int] = {}
    base.executemany("INSERT INTO names VALUES (?,?,?,?,?,?)", _python_names(source, rows))
    base.executemany("INSERT INTO concepts VALUES (?,?)", ((row, cui) for cui, row in rows.items()))
    base.executemany("INSERT INTO types VALUES (?,?,?)", _python_types(source, rows))
    base.executemany("INSERT INTO relations VALUES (?,?,?,?)", _python_relations(source, rows))
    base.executescript(
        """CREATE INDEX concept_id ON concepts (id);
        CREATE INDEX name_key ON names (key); CREATE INDEX name_concept ON names (concept);
        CREATE INDEX type_concept ON types (concept);
        CREATE INDEX relation_head ON relations (head);
        CREATE INDEX relation_tail ON relations (tail);"""
    )
    base.commit()
    counts = {
        f"n_{table}": base.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        for table in ("concepts", "names", "relations")
    }
    base.close()
    return {"seconds": time.perf_counter() - start, "peak_gib": _peak_gib(), **counts}


def _python_names(source: Path, rows: dict[str, int]) -> Any:
    seen: set[tuple[int, str]] = set()
    with (source / "MRCONSO.RRF").open(encoding="utf-8") as file:
        for line in file:
            field = line.rstrip("\n").split("|")
            if field[16] != "N":
                continue
            row = rows.setdefault(field[0], len(rows))
            if (row, field[14]) in seen:
                continue
            seen.add((row, field[14]))
            preferred = field[2] == "P" and field[4] == "PF" and field[6] == "Y"
            kind = "preferred" if preferred else "synonym"
            yield row, field[14], normalise(field[14]), field[1], kind, field[11]


def _python_types(source: Path, rows: dict[str, int]) -> Any:
    with (source / "MRSTY.RRF").open(encoding="utf-8") as file:
        for line in file:
            field = line.split("|")
            yield rows[field[0]], field[1], field[3]


def _python_relations(source: Path, rows: dict[str, int]) -> Any:
    seen: set[tuple[int, str, int]] = set()
    with (source / "MRREL.RRF").open(encoding="utf-8") as file:
        for line in file:
            field = line.split("|")
            head, tail = rows.get(field[4]), rows.get(field[0])
            if head is None or tail is None or head == tail or field[14] != "N":
                continue
            relation = "is-a" if field[7] == "isa" else field[7]
            if (head, relation, tail) not in seen:
                seen.add((head, relation, tail))
                yield head, relation, tail, field[10]


def read_with_python(source: Path, out: Path) -> dict[str, Any]:
    """Only read the rows, splitting each line: the floor of any plain-Python reader."""
    start = time.perf_counter()
    n = 0
    for name in ("MRCONSO.RRF", "MRREL.RRF"):
        with (source / name).open(encoding="utf-8") as file:
            for line in file:
                n += len(line.split("|")) > 1
    return {"seconds": time.perf_counter() - start, "n_rows": n}


def measure_lookups(folder: Path, n: int = 2000) -> dict[str, float]:
    """Time opening the store, and finding concepts by id and by name."""
    opened = []
    for _ in range(5):
        start = time.perf_counter()
        base = KnowledgeBase.open(folder)
        opened.append(time.perf_counter() - start)
    rng = np.random.default_rng(7)
    rows = [int(row) for row in rng.integers(0, len(base), n)]
    ids = [base.id_at(row) for row in rows]
    names = [base.name_at(row) for row in rows]
    return {
        "open_ms": statistics.median(opened) * 1e3,
        "id_us": _median_us(base.row, ids),
        "name_us": _median_us(base.find, names),
    }


def _median_us(function: Any, arguments: list[str]) -> float:
    times = []
    for argument in arguments:
        start = time.perf_counter()
        result = function(argument)
        times.append(time.perf_counter() - start)
        assert result is not None
    return statistics.median(times) * 1e6


def _peak_gib() -> float:
    """Read the peak memory of this process alone; getrusage counts its parent's too."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 2**20
    return float("nan")


STEPS = {
    "biograft": build_with_biograft,
    "python": build_with_python,
    "read": read_with_python,
}


def run_apart(step: str, source: Path, out: Path) -> dict[str, Any]:
    """Run one step in a process of its own, so that peaks do not mix."""
    command = [sys.executable, __file__, "--step", step, "--source", str(source), "--out", str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Make the data, run both builds, check that they agree."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        source, store = Path(folder) / "META", Path(folder) / "KB"
        make_distribution(source, options.names, options.relations)
        ours = run_apart("biograft", source, store)
        n_rows = options.names + options.relations
        result = {
            "n_name_rows": options.names,
            "n_relation_rows": options.relations,
            "rows_per_second": n_rows / ours["seconds"],
            "peak_gib": ours["peak_gib"],
            "biograft": ours,
            **measure_lookups(store),
        }
        if not options.no_python:
            theirs = run_apart("python", source, Path(folder) / "kb.sqlite")
            reading = run_apart("read", source, Path(folder))
            for count in ("n_concepts", "n_names", "n_relations"):
                if ours[count] != theirs[count]:
                    raise SystemExit(f"{count}: biograft {ours[count]}, Python {theirs[count]}")
            result |= {
                "python": theirs,
                "speedup_over_python": theirs["seconds"] / ours["seconds"],
                "seconds_over_python_reading": ours["seconds"] / reading["seconds"],
            }
    return {**result, "machine": describe_machine(), "commit": describe_commit()}


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", type=int, default=5_000_000)
    parser.add_argument("--relations", type=int, default=5_000_000)
    parser.add_argument("--quick", action="store_true", help="500,000 rows of each")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    parser.add_argument("--no-python", action="store_true", help="skip the plain build")
    parser.add_argument("--folder", help="where to put the files while it runs")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(STEPS[options.step](options.source, options.out)))
        return
    if options.quick:
        options.names = options.relations = 500_000
    result = compare(options)
    if not options.json:
        for key, value in result.items():
            print(f"{key:30} {value}", file=sys.stderr)
    print(json.dumps(result))


if __name__ == "__main__":
    main()

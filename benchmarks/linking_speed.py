"""Speed of lexical search, encoding and dense search, against what the field uses.

Each part runs in a process of its own; both sides of a comparison alternate in that process,
and medians are compared. Names are synthetic (see synthetic_names.py) unless a part says NCBI.

lexical        LexicalIndex.search against scikit-learn's tf-idf of trigrams, product, top k
encode         TextEncoder against the evaluation of SapBERT as published (25 tokens, 32 bits)
search         ExactSearch against faiss.IndexFlatIP, batches of 256 queries, faiss with BLAS
annotate       annotation of text, in MB per second of a processor
lexical_1m     1 million names: building and searching the index, linking, annotation, look-ups by
               id and name, a cold start, memory
lexical_73k, lexical_large  the same with 73,000 and 4 million names                    (--full)
lexical_15m    the same with 15 million names            (--parts lexical_15m; takes hours)
search_large   1 million vectors                                                        (--full)
ncbi           lexical, on the NCBI dictionary and the mentions of its train split        (--full)
scispacy       scispaCy 0.6.2's candidate generator on the same                          (--full)

A cold start is a fresh process of `biograft link` that links one sentence, with the index on disk
and in the file cache. Resident memory is the most that such a process has, mapped files included;
unique memory is what it shares with no other, alone and with eight at once.

    python benchmarks/linking_speed.py --quick --json       some minutes, most for a million names
    python benchmarks/linking_speed.py --full --json >benchmarks/results/linking_speed.json
    python benchmarks/linking_speed.py --parts scispacy --scispacy-python other/bin/python
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from typing import Any

from machine import describe_command, describe_commit, peak_gib
from script_options import add_data, some_of, start_parser

from biograft.compute import describe_machine

PARTS = {
    "lexical": "lexical_speed:compare_lexical",
    "encode": "dense_speed:compare_encoding",
    "search": "dense_speed:compare_search",
    "annotate": "index_sizes:measure_annotation",
    "lexical_1m": "index_sizes:measure_size",
    "lexical_73k": "index_sizes:measure_size",
    "lexical_large": "index_sizes:measure_size",
    "lexical_15m": "index_sizes:measure_size",
    "search_large": "dense_speed:compare_search",
    "ncbi": "lexical_speed:compare_on_ncbi",
    "scispacy": "lexical_speed:measure_scispacy",
}
USUAL_PARTS = ("lexical", "encode", "search", "annotate", "lexical_1m")
HUGE_PARTS = ("lexical_15m",)
"""Parts that run only if they are asked for."""
FIGURES = {
    "lexical_over_sklearn": ("lexical", "over_sklearn"),
    "encode_over_published": ("encode", "over_published"),
    "search_over_faiss_flat": ("search", "over_faiss_flat"),
    "lexical_1m_mentions_s": ("lexical_1m", "mentions_per_second"),
    "cold_start_s": ("lexical_1m", "cold_start_seconds"),
    "annotate_mb_s": ("annotate", "whole_mb_per_second"),
}
"""The figures that scripts rely on: the part that measures each, and its key there."""
QUICK = {
    "names": 73_000,
    "mentions": 1000,
    "texts": 256,
    "vectors": 100_000,
    "queries": 512,
    "runs": 3,
    "engines": 0,
}
"""Sizes; with ``engines`` the encoding is compared with OpenVINO and with a product of matrices."""
USUAL = {
    **QUICK,
    "mentions": 5000,
    "texts": 4096,
    "vectors": 300_000,
    "queries": 1024,
    "engines": 1,
}
LARGE = {
    "lexical_1m": {"names": 1_000_000, "mentions": 2000},
    "lexical_73k": {"names": 73_000, "mentions": 2000},
    "lexical_large": {"names": 4_000_000, "mentions": 2000},
    "lexical_15m": {"names": 15_000_000, "mentions": 1000},
    "search_large": {"vectors": 1_000_000},
}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run the parts one after the other and put the figures first."""
    parts = {}
    for name in options.parts:
        parts[name] = _run_apart(name, _part_options(name, options))
        if not options.json:
            print(name, json.dumps(parts[name], indent=1), file=sys.stderr)
    result: dict[str, Any] = {
        figure: parts.get(p, {}).get(key) for figure, (p, key) in FIGURES.items()
    }
    missing = {name: part["skipped"] for name, part in parts.items() if "skipped" in part}
    missing |= {name: "not requested" for name in PARTS if name not in parts}
    if result["search_over_faiss_flat"] is None and "faiss" in parts.get("search", {}):
        missing["faiss"] = parts["search"]["faiss"]
    return {
        **result,
        "not_measured": missing,
        "parts": parts,
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("linking_speed.py", sys.argv[1:]),
    }


def _part_options(name: str, options: argparse.Namespace) -> dict[str, Any]:
    return {
        **(QUICK if options.quick else USUAL),
        **LARGE.get(name, {}),
        **options.size,
        "folder": options.folder,
        "data": str(options.data),
        "scispacy_python": options.scispacy_python,
    }


def _run_apart(name: str, part_options: dict[str, Any]) -> dict[str, Any]:
    """Run one part in a process of its own, so that memory and threads do not mix.

    A part that fails is reported as not measured; the results of the others are kept.
    """
    command = [sys.executable, __file__, "--step", name]
    done = subprocess.run(
        command, input=json.dumps(part_options), capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{name} failed:\n{done.stderr}", file=sys.stderr)
        return {"skipped": f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _run_step(name: str) -> dict[str, Any]:
    """Run as the process of one part."""
    module, _, function = PARTS[name].partition(":")
    start = time.perf_counter()
    result: dict[str, Any] = getattr(importlib.import_module(module), function)(
        json.load(sys.stdin)
    )
    if "skipped" in result:
        return result
    return {**result, "wall_seconds": time.perf_counter() - start, "peak_gib": peak_gib()}


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if name not in QUICK or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(
            f"expected NAME=NUMBER with one of {', '.join(QUICK)}, found {text!r}"
        )
    return name, int(number)


def _parse() -> argparse.Namespace:
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer mentions, texts and vectors")
    parser.add_argument("--full", action="store_true", help="all parts, with millions of names")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    parser.add_argument("--parts", type=some_of(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument(
        "--size",
        type=_size,
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="another size than usual, as names=5000",
    )
    parser.add_argument("--folder", help="where to put files while it runs")
    add_data(parser)
    parser.add_argument("--scispacy-python", default="", help="a Python that has scispacy 0.6.2")
    parser.add_argument("--step", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.size = dict(options.size)
    options.parts = options.parts or [
        name for name in (PARTS if options.full else USUAL_PARTS) if name not in HUGE_PARTS
    ]
    return options


def main() -> None:
    """Parse the command line, run, print."""
    options = _parse()
    result = _run_step(options.step) if options.step else measure(options)
    print(json.dumps(result))


if __name__ == "__main__":
    main()

"""Aliases of Chinese diseases that a store was not given, linked however they are written.

Of each disease of the graph with aliases one is drawn and held out; the store is built of all else.
The held-out names are asked as they stand, in traditional characters, in full-width signs, and with
a blank in their middle; those that are a name of the store all the same are left out. The names of
some are mixed with Latin letters or digits: they are told apart.

    python benchmarks/chinese_linking.py --encoder DIR
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from command_line import RESULTS, ROOT, add_data, run_with, start_parser
from machine import describe_command, describe_commit, describe_machine
from opencc import OpenCC

from biograft.artifacts import new_file
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.linking import Linker, build_index
from biograft.linking.index import open_index
from biograft.progress import Progress
from biograft.sources import SourceConfig
from biograft.sources.files import read_lines

TRIPLES = "zh/medical_kg/triples_derived.tsv.gz"
_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_TRADITIONAL = OpenCC("s2t")
FORMS: dict[str, Callable[[str], str]] = {
    "as it stands": lambda text: text,
    "traditional": lambda text: str(_TRADITIONAL.convert(text)),
    "full width": lambda text: text.translate(_WIDE),
    "a blank within": lambda text: f"{text[: len(text) // 2]} {text[len(text) // 2 :]}",
}


def run(options: argparse.Namespace) -> None:
    """Hold names out, build, ask."""
    asked = _hold_out(options)
    base = KnowledgeBase.open(_store(options))
    queries = [(alias, concept) for alias, concept in asked if not base.find(alias)]
    encoder = None
    if options.encoder:
        from biograft.nn import TextEncoder

        encoder = TextEncoder.from_pretrained(options.encoder)
    place = options.work / ("both" if encoder else "letters")
    if not place.exists():
        build_index(base, place, encoder, progress=Progress())
    linker = Linker(base, open_index(base, place).search)
    told = {
        "command": describe_command("chinese_linking.py", sys.argv[1:]),
        "commit": describe_commit(),
        "machine": describe_machine(),
        "search": "letters and vectors" if encoder else "letters",
        "n_concepts": len(base),
        "n_names": base.n_names,
        "n_held_out": len(asked),
        "forms": {name: _ask(linker, base, queries, form) for name, form in FORMS.items()},
    }
    with new_file(options.out, overwrite=True) as file:
        file.write((json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode())
    print(json.dumps(told["forms"], ensure_ascii=False))


def _hold_out(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Draw an alias of each disease, and write the triples without it; give alias and disease."""
    lines = [line for _, line in read_lines(options.data / TRIPLES)]
    rows = list(csv.DictReader(lines, delimiter="\t"))
    aliases = defaultdict(list)
    for row in rows:
        if row["relation"] == "alias" and row["head"] != row["tail"]:
            aliases[row["head"]].append(row["tail"])
    draw = random.Random(options.seed)
    held = {name: draw.choice(sorted(set(some))) for name, some in sorted(aliases.items())}
    out = set(held.items())
    kept = [row for row in rows if not _is_held(row, out)]
    if not (options.work / "triples.tsv").exists():
        options.work.mkdir(parents=True, exist_ok=True)
        with new_file(options.work / "triples.tsv") as file:
            for cells in (list(rows[0]), *(list(row.values()) for row in kept)):
                file.write(("\t".join(cells) + "\n").encode())
    return [(alias, name) for name, alias in held.items()]


def _is_held(row: dict[str, str], out: set[tuple[str, str]]) -> bool:
    return row["relation"] == "alias" and (row["head"], row["tail"]) in out


def _store(options: argparse.Namespace) -> Path:
    folder: Path = options.work / "KB"
    if not folder.exists():
        source = SourceConfig(
            path=options.work / "triples.tsv", format="triples", language="zh", same_as=("alias",)
        )
        build_store(BuildConfig(sources=(source,)), folder)
    return folder


def _ask(
    linker: Linker,
    base: KnowledgeBase,
    queries: Sequence[tuple[str, str]],
    form: Callable[[str], str],
) -> dict[str, Any]:
    """Say how often the disease is among the first concepts, of all and of mixed names."""
    found = linker.link_mentions([form(alias) for alias, _ in queries], 5)
    places = []
    for (_, name), candidates in zip(queries, found, strict=True):
        right = {match.concept for match in base.find(name)}
        ids = [candidate.concept for candidate in candidates]
        places.append(next((k for k, each in enumerate(ids) if each in right), None))
    mixed = [any(sign.isascii() and sign.isalnum() for sign in alias) for alias, _ in queries]
    return {"all": _shares(places), "mixed": _shares(
        [place for place, is_mixed in zip(places, mixed, strict=True) if is_mixed]
    )}  # fmt: skip


def _shares(places: Sequence[int | None]) -> dict[str, Any]:
    within = {k: sum(place is not None and place < k for place in places) for k in (1, 5)}
    n = max(1, len(places))
    return {
        "n": len(places),
        **{f"acc@{k}": round(100 * hits / n, 2) for k, hits in within.items()},
    }


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--encoder", default="", metavar="DIR", help="search by vectors, too")
    parser.add_argument("--seed", type=int, default=0, help="of what is held out")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "chinese-linking")
    parser.add_argument("--out", type=Path, default=RESULTS / "chinese_linking.json")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()

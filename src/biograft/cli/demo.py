"""``biograft demo``: the whole way on the knowledge base that ships with the package."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.kb_text import print_concept, print_matches, print_report
from biograft.errors import OutputError

_QUERIES = ("heart attack", "2型糖尿病", "pd", "kidney fail")


def _refuse_other(store: Path) -> None:
    """Replace what an earlier demo made, and nothing else."""
    from biograft.kb.manifest import is_store, read_manifest

    if is_store(store) and [s["format"] for s in read_manifest(store)["sources"]] != ["jsonl"]:
        raise OutputError(f"{store}: is a knowledge base of yours; choose another place with -o")


def demo(
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for what the demo makes.")
    ] = Path("demo"),
) -> None:
    """Build the starter knowledge base, show a concept, search names in two languages."""
    from biograft.kb import KnowledgeBase, build_starter, search

    store = out / "starter"
    _refuse_other(store)
    typer.echo(f"$ biograft kb build starter -o {store}")
    print_report(build_starter(store, overwrite=True))
    start = time.perf_counter()
    base = KnowledgeBase.open(store)
    typer.echo(f"opened in {(time.perf_counter() - start) * 1e3:.1f} ms")
    typer.echo(f"\n$ biograft kb show {store} D009203")
    concept = base["D009203"]
    print_concept(concept, base.relations(concept.id), 3)
    for query in _QUERIES:
        typer.echo(f"\n$ biograft kb search {store} '{query}' -k 3")
        print_matches(search(base, query, limit=3), query)
    typer.echo(f"\nThe store is in {store}; try `biograft kb search {store} fever`.")

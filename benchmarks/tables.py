"""Write the tables in documents from the result files, so that no figure is typed by hand.

python benchmarks/tables.py            rewrite the documents
python benchmarks/tables.py --check    exit with 1 if one is not up to date
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DOCUMENTS = ("README.md",)


def kb_build(result: dict[str, Any]) -> str:
    """Sum up the build of a UMLS-sized store."""
    rows = (result["n_name_rows"] + result["n_relation_rows"]) / 1e6
    ours, python = result["biograft"], result["python"]
    return f"""A store of UMLS's shape, {rows:.0f} million rows (MRCONSO and MRREL) on two cores,
against a plain-Python build of the same store (dicts and SQLite) in the same run
([result](benchmarks/results/kb_build.json), `python benchmarks/kb_build.py`):

| | biograft | plain Python |
|---|---|---|
| build, rows per second | {_rate(result, ours)} | {_rate(result, python)} |
| ratio of times | 1 | {result["speedup_over_python"]:.1f} |
| peak memory, GiB | {ours["peak_gib"]:.1f} | {python["peak_gib"]:.1f} |
| open the store | {result["open_ms"]:.0f} ms | |
| look-up by id / by name | {result["id_us"]:.0f} µs / {result["name_us"]:.0f} µs | |

{_larger()}
"""


def _larger() -> str:
    """Say in a sentence what the build of UMLS's own size took."""
    result = json.loads((RESULTS / "kb_build_15m.json").read_text(encoding="utf-8"))
    names, relations = result["n_name_rows"] / 1e6, result["n_relation_rows"] / 1e6
    return (
        f"With {names:.0f} million rows of names and {relations:.0f} million relations, once: "
        f"{result['biograft']['seconds']:.0f} s, {result['peak_gib']:.1f} GiB, opened in "
        f"{result['open_ms']:.0f} ms ([result](benchmarks/results/kb_build_15m.json))."
    )


def _rate(result: dict[str, Any], step: dict[str, Any]) -> str:
    rows = result["n_name_rows"] + result["n_relation_rows"]
    return f"{rows / step['seconds'] / 1e3:,.0f} thousand"


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {"kb_build": kb_build}


def render(text: str) -> str:
    """Fill every marked block of a document from its result file."""
    for name, table in TABLES.items():
        path = RESULTS / f"{name}.json"
        begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
        if begin in text and path.exists():
            before, _, rest = text.partition(begin)
            _, _, after = rest.partition(end)
            filled = table(json.loads(path.read_text(encoding="utf-8")))
            text = before + begin + filled + end + after
    return text


def main() -> None:
    """Rewrite or check the documents."""
    stale = []
    for document in DOCUMENTS:
        path = ROOT / document
        text = path.read_text(encoding="utf-8")
        if (rendered := render(text)) != text:
            stale.append(document)
            if "--check" not in sys.argv:
                path.write_text(rendered, encoding="utf-8")
    if "--check" in sys.argv and stale:
        sys.exit(f"not up to date: {', '.join(stale)}; run python benchmarks/tables.py")


if __name__ == "__main__":
    main()

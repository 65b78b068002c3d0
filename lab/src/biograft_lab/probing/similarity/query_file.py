"""Similarity queries on disk, to probe several encoders with the same queries.

JSON lines: a header with format and provenance, then a query a line. The file has no date, so that
equal queries give equal files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import biograft
from biograft.errors import FormatError
from biograft.kb.names import normalise
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.json_files import decode_json
from biograft.progress import Progress
from biograft.text.formats.format import MalformedError, field, fields
from biograft.text.shards import Shards
from biograft_lab.probing.similarity.queries import SimilarityQuery

FORMAT, VERSION = "biograft-similarity-queries", 1


def write_queries(
    file: IO[bytes], queries: Iterable[SimilarityQuery], made_of: Mapping[str, Any]
) -> None:
    """Write queries to an open file, with their provenance."""
    head = {"format": FORMAT, "version": VERSION, "made_by": f"biograft {biograft.__version__}"}
    file.write(_line({**head, **made_of}))
    for query in queries:
        row = {
            "query": query.query,
            "positive": query.positive,
            "negatives": query.negatives,
            "concepts": query.concepts,
            "same_neighbours": query.same_neighbours,
        }
        file.write(_line(row | ({"frequencies": query.frequencies} if query.frequencies else {})))


def read_queries(path: Path) -> tuple[list[SimilarityQuery], dict[str, Any]]:
    """Read queries and their provenance; all must have equally many hard negatives."""
    made_of: dict[str, Any] = {}
    queries: list[SimilarityQuery] = []
    for number, line in read_lines(path):
        try:
            value = decode_json(line)
            if number == 1:
                made_of = _head(value)
            elif line.strip():
                queries.append(_query(value, len(queries[0].negatives) if queries else 0))
        except (ValueError, RecursionError) as error:
            raise FormatError("is not JSON", path=path, line=number, text=line) from error
        except MalformedError as error:
            raise FormatError(str(error), path=path, line=number, text=line) from error
    if not queries:
        raise FormatError("holds no queries", path=path)
    return queries, made_of


def _line(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False) + "\n").encode()


def _head(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise MalformedError(
            "holds no queries of `biograft probe similarity`; make them with its option -o"
        )
    if value.get("version") != VERSION:
        raise MalformedError(
            f"queries of version {value.get('version')!r}, this biograft reads version {VERSION}"
        )
    return {
        key: value_of
        for key, value_of in value.items()
        if key not in ("format", "version", "made_by")
    }


def _query(value: Any, n_negatives: int) -> SimilarityQuery:
    """Parse one query with ``n_negatives`` hard negatives; 0: any number."""
    concepts, negatives = fields(value, "concepts", str), fields(value, "negatives", str)
    counts_in_text = fields(value, "frequencies", int)
    query = SimilarityQuery(
        field(value, "query", str),
        field(value, "positive", str),
        tuple(negatives),
        (concepts[0], concepts[-1]) if len(concepts) == 2 else ("", ""),
        field(value, "same_neighbours", bool, False),
        (counts_in_text[0], counts_in_text[1]) if len(counts_in_text) == 2 else None,
    )
    if not negatives or (n_negatives and len(negatives) != n_negatives):
        raise MalformedError(
            f"expected {n_negatives or 'some'} negatives as above, found {len(negatives)}"
        )
    if len(concepts) != 2 or len(counts_in_text) not in (0, 2):
        raise MalformedError("expected two concepts, and two frequencies or none")
    return query


def count_names(folder: Path, progress: Progress | None = None) -> Counter[str]:
    """Count the spans of annotated text by normalised key."""
    shards = Shards.open(folder)
    counts_in_text: Counter[str] = Counter()
    for n, document in enumerate(shards, 1):
        counts_in_text.update(document.text[span.start : span.end] for span in document.spans)
        if progress:
            progress.advance(1, n / max(len(shards), 1))
    counts: Counter[str] = Counter()
    for text, n in counts_in_text.items():
        counts[normalise(text)] += n
    return counts


def with_frequencies(
    queries: Sequence[SimilarityQuery], counts: Counter[str]
) -> list[SimilarityQuery]:
    """Add the frequencies of query and positive to queries."""
    return [
        replace(
            query,
            frequencies=(counts[normalise(query.query)], counts[normalise(query.positive)]),
        )
        for query in queries
    ]

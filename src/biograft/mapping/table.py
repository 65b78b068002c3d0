"""A mapping as CSV or TSV: one row a term, with fixed columns, safe to open in a spreadsheet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from biograft.artifacts import new_file
from biograft.linking.outputs.delimited import delimited_rows
from biograft.linking.outputs.findings import DECIMALS
from biograft.linking.outputs.output import encoded
from biograft.linking.outputs.report import ConceptIds
from biograft.mapping.terms import TermMapping

COLUMNS = (
    *("source_term", "concept", "name", "score", "probability", "flag"),
    *("source_code", "frequency"),
)
"""The first columns; then come ``candidate_N``, ``name_N`` and ``score_N`` for N from 2 to k."""
DELIMITERS = {"csv": ",", "tsv": "\t"}


def write_mapping(
    mappings: Iterable[TermMapping],
    path: Path,
    ids: ConceptIds,
    *,
    k: int,
    to: str = "csv",
    overwrite: bool = False,
) -> Counter[str]:
    """Write a mapping with up to ``k`` concepts a term; return the number of terms of each flag."""
    counts: Counter[str] = Counter()
    numbers = range(2, k + 1)
    header = [f"{what}_{n}" for n in numbers for what in ("candidate", "name", "score")]
    with new_file(path, overwrite=overwrite) as file:
        file.write(encoded(delimited_rows([[*COLUMNS, *header]], DELIMITERS[to])))
        for mapping in mappings:
            counts[mapping.flag] += 1
            row = _row(mapping, ids, len(numbers))
            file.write(encoded(delimited_rows([row], DELIMITERS[to])))
    return counts


def _row(mapping: TermMapping, ids: ConceptIds, n_others: int) -> list[Any]:
    term, concept = mapping.term, mapping.concept
    cells: list[Any] = [
        term.text,
        None if concept is None else ids.chosen(concept),
        mapping.name,
        _rounded(mapping.score),
        _rounded(mapping.probability),
        mapping.flag,
        term.code,
        term.frequency,
    ]
    for other in mapping.others[:n_others]:
        cells += [ids.chosen(other.concept), other.concept_name, _rounded(other.score)]
    return cells + [None] * (len(COLUMNS) + 3 * n_others - len(cells))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)

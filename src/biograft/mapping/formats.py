"""Formats of a mapping: tables, SSSOM, OMOP's source_to_concept_map, and FHIR's ConceptMap."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from biograft.artifacts import new_file
from biograft.errors import ConfigError
from biograft.linking.outputs.delimited import cut, delimited_rows
from biograft.linking.outputs.omop import omop_number
from biograft.linking.outputs.output import encoded
from biograft.mapping.decisions import Decision, MappingSet, write_decisions
from biograft.mapping.earlier import CHANGES
from biograft.mapping.mapped import MappingRun, as_decision
from biograft.mapping.table import table_chunks
from biograft.mapping.terms import TermMapping
from biograft.vocabularies import code_of, system_of

FORMATS = {
    "csv": "one row a term, for spreadsheets",
    "tsv": "the same with tabs",
    "sssom": "SSSOM TSV: mappings with who made them and how",
    "omop": "rows of source_to_concept_map of the OMOP CDM 5.4, as CSV",
    "fhir": "FHIR R4 ConceptMap, as JSON",
}
_SUFFIXES = {
    ".sssom.tsv": "sssom",
    ".sssom": "sssom",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "fhir",
}


def format_of(path: Path, to: str = "") -> str:
    """Return the format of an output: the one that is named, or that of its ending.

    >>> format_of(Path("lab.sssom.tsv")), format_of(Path("lab.csv"), "omop")
    ('sssom', 'omop')
    """
    if to:
        if to not in FORMATS:
            raise ConfigError(f"--to: expected one of {', '.join(FORMATS)}, found {to!r}")
        return to
    name = path.name.lower()
    found = next((form for suffix, form in _SUFFIXES.items() if name.endswith(suffix)), None)
    if found is None:
        raise ConfigError(
            f"--out: expected a file that ends in {', '.join(_SUFFIXES)}, found {path.name!r}; "
            f"or name its format (--to {'|'.join(FORMATS)})"
        )
    return found


def write_mapping(
    mappings: Iterable[TermMapping],
    path: Path,
    run: MappingRun,
    *,
    to: str = "csv",
    overwrite: bool = False,
    left_out: list[tuple[str, str]] | None = None,
) -> Counter[str]:
    """Write a mapping; return the number of terms of each flag. A failure leaves nothing.

    Args:
        mappings: Mapped terms.
        path: File to write.
        run: Settings of the mapping.
        to: Name of a format (`FORMATS`).
        overwrite: Replace an existing file.
        left_out: Filled with the terms that SSSOM cannot hold, and why; without it, the first of
            them is an error.
    """
    counts: Counter[str] = Counter()
    counted = _counted(mappings, counts)
    if to == "sssom":
        metadata = MappingSet(source=run.source, kb=run.kb_name, justification=run.justification)
        decisions = _decisions(counted, run, left_out)
        write_decisions(path, decisions, metadata, overwrite=overwrite)
        return counts
    with new_file(path, overwrite=overwrite) as file:
        for chunk in _chunks(counted, run, to):
            file.write(encoded(chunk))
    return counts


def _decisions(
    mappings: Iterable[TermMapping], run: MappingRun, left_out: list[tuple[str, str]] | None
) -> Iterator[Decision]:
    store = run.store
    for mapping in mappings:
        try:
            yield as_decision(mapping, run, store)
        except ConfigError as error:
            if left_out is None:
                raise
            left_out.append((repr(mapping.term.text), str(error)))


def _chunks(mappings: Iterable[TermMapping], run: MappingRun, to: str) -> Iterator[str]:
    if to == "omop":
        return omop_chunks(mappings, run)
    if to == "fhir":
        return iter([f"{json.dumps(concept_map(mappings, run), ensure_ascii=False, indent=1)}\n"])
    return table_chunks(mappings, run, to)


def _counted(mappings: Iterable[TermMapping], counts: Counter[str]) -> Iterator[TermMapping]:
    for mapping in mappings:
        counts[mapping.flag] += 1
        yield mapping


OMOP_COLUMNS = (
    *("source_code", "source_concept_id", "source_vocabulary_id", "source_code_description"),
    *("target_concept_id", "target_vocabulary_id", "valid_start_date", "valid_end_date"),
    "invalid_reason",
)
_MAX_CODE, _MAX_VOCABULARY, _MAX_DESCRIPTION = 50, 20, 255
_VALID = ("1970-01-01", "2099-12-31")
_NO_VOCABULARY = "None"


def omop_chunks(mappings: Iterable[TermMapping], run: MappingRun) -> Iterator[str]:
    """Give the header, then a row a term; one without a concept has the target 0."""
    if not 0 < len(run.source) <= _MAX_VOCABULARY:
        raise ConfigError(
            f"--source-vocabulary: OMOP has up to {_MAX_VOCABULARY} characters, found "
            f"{run.source!r}; give a shorter name"
        )
    yield delimited_rows([OMOP_COLUMNS])
    for mapping in mappings:
        yield delimited_rows([_omop_row(mapping, run)])


def _omop_row(mapping: TermMapping, run: MappingRun) -> tuple[Any, ...]:
    term = mapping.term
    code = term.code or term.text
    if len(code) > _MAX_CODE:
        raise ConfigError(
            f"--to omop: a code has up to {_MAX_CODE} characters, found {code[:60]!r}; "
            "name the column of the codes (--code-column)"
        )
    concept = _applicable(mapping)
    target, vocabulary = (0, _NO_VOCABULARY) if concept is None else _omop_target(concept, run)
    description = cut(term.text, _MAX_DESCRIPTION)
    return (code, 0, run.source, description, target, vocabulary, *_VALID, None)


def _omop_target(concept: str, run: MappingRun) -> tuple[int, str]:
    """Return the OMOP id of a concept, and the vocabulary that its preferred name is from."""
    numbers = (omop_number(identifier, run.ids) for identifier in run.ids.all(concept))
    number = next((number for number in numbers if number is not None), None)
    found = run.kb[concept]
    if number is None:
        raise ConfigError(
            f"--to omop: {concept} ({found.name}) has no OMOP id, and the table takes no other; "
            "map to a store of OMOP concepts (ids as OMOP:316866), or write another format"
        )
    sources = (n.source for n in found.names if n.text == found.name)
    return number, next(sources, "")[:_MAX_VOCABULARY]


def _applicable(mapping: TermMapping) -> str | None:
    """Return the concept; none where a decision would change silently."""
    return None if mapping.flag in CHANGES else mapping.concept


_EQUIVALENCES = {
    "exact": "equivalent",
    "broad": "wider",
    "narrow": "narrower",
    "close": "inexact",
    "related": "relatedto",
}


def concept_map(mappings: Iterable[TermMapping], run: MappingRun) -> dict[str, Any]:
    """Return a FHIR R4 ConceptMap: a group for each code system of the concepts."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for mapping in mappings:
        decision = as_decision(mapping, run, "")
        concept = _applicable(mapping)
        vocabulary = "" if concept is None else run.ids.vocabulary(decision.concept)
        element = {
            "code": mapping.term.code or mapping.term.text,
            "display": mapping.term.text,
            "target": [_target(decision, vocabulary, unmatched=concept is None)],
        }
        groups[vocabulary].append(element)
    source = {"source": run.source} if ":" in run.source else {}
    return {
        "resourceType": "ConceptMap",
        "status": "draft",
        "date": run.time.date().isoformat(),
        "title": f"{run.source} to {run.kb_name}",
        **({"sourceUri": run.source} if source else {}),
        "group": [
            {**source, **_system(vocabulary), "element": elements}
            for vocabulary, elements in sorted(groups.items())
        ],
    }


def _system(vocabulary: str) -> dict[str, str]:
    system = system_of(vocabulary)
    return {} if system is None else {"target": system}


def _target(decision: Decision, vocabulary: str, *, unmatched: bool) -> dict[str, str]:
    """Return the target of a term; FHIR asks for a comment on what is not equivalent."""
    if unmatched:
        comment = decision.comment or "no concept of the knowledge base"
        return {"equivalence": "unmatched", "comment": comment}
    said = f"concept is {decision.relation}" if decision.is_decided else "proposed, not decided"
    return {
        "code": code_of(decision.concept, vocabulary),
        **({"display": decision.name} if decision.name else {}),
        "equivalence": _EQUIVALENCES[decision.relation],
        "comment": "; ".join(filter(None, (said, decision.comment))),
    }

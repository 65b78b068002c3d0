"""Formats of a mapping: tables, SSSOM, OMOP's source_to_concept_map, and FHIR's ConceptMap.

A table has one row a term, with fixed columns, and is safe to open in a spreadsheet. A reviewer
fills in the column ``verdict``; rows with one are read back as decisions.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from biograft.artifacts import new_file
from biograft.config import check_choice
from biograft.errors import ConfigError, EncodingError, FormatError, NotFoundError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_version
from biograft.kb.names import decimal_cell, fold_lines, whole_cell
from biograft.kb.records import MAPS_TO, MAPS_TO_VALUE
from biograft.kb.vocabularies import code_of, system_of, vocabulary_of
from biograft.linking import Linker
from biograft.linking.outputs.findings import DECIMALS, cut, delimited_rows, plain
from biograft.linking.outputs.omop import omop_number
from biograft.linking.outputs.output import ConceptIds, encoded
from biograft.linking.outputs.tables import DELIMITERS, XLSX, write_table
from biograft.mapping.decisions import APPROVED, NIL, PROPOSED, REJECTED, RELATIONS, Decision
from biograft.mapping.omop_tables import OMOP, USAGI, VALUE, is_value, kept_cells
from biograft.mapping.rows import MappingRow
from biograft.mapping.sets import MappingSet, read_decisions
from biograft.mapping.sssom import named_cells, read_table
from biograft.mapping.standard import (
    StandardConcepts,
    described,
    omop_vocabulary,
    says_standard,
    source_files,
)
from biograft.mapping.terms import CHANGES, EXACT, SEEN, SourceTerm, TermMapping

FHIR = "fhir"
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingRun:
    """One mapping of a table, as its outputs need it."""

    kb: KnowledgeBase
    """Knowledge base that terms are mapped to."""
    ids: ConceptIds
    """Ids in the form that is written."""
    k: int = 3
    """Maximum concepts given for a term."""
    source: str = "source"
    """Name or IRI of the vocabulary of the source terms."""
    has_context: bool = False
    """Whether terms have columns of context."""
    is_standard: bool = False
    """Whether the terms are mapped to standard concepts of OMOP."""
    justification: str = "LexicalMatching"
    """Justification of the rows, a term of SEMAPV."""
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    """Time of the mapping, written into the rows."""

    @property
    def store(self) -> str:
        """Identity of the store: the beginning of the hash of its content."""
        return store_version(self.kb)

    @property
    def kb_name(self) -> str:
        """Name of the knowledge base: that of its folder."""
        return self.kb.folder.resolve().name


def justification_of(linker: Linker) -> str:
    """Return how a linker finds concepts, in the words of SEMAPV."""
    kinds = set(linker.search.weights) if linker.search else set()
    if linker.ranker is None and kinds == {"lexical"}:
        return "LexicalMatching"
    is_dense = linker.ranker is None and kinds == {"dense"}
    return "SemanticSimilarityThresholdMatching" if is_dense else "CompositeMatching"


def as_decision(mapping: TermMapping, run: MappingRun, store: str) -> Decision:
    """Return an earlier decision that stands, or the proposal of this run.

    Args:
        mapping: A mapped term.
        run: The run that it is from: its time, and the ids that it shows.
        store: Fingerprint of the knowledge base.
    """
    term, decision = mapping.term, mapping.decision
    if mapping.flag == SEEN and decision is not None:
        return replace(decision, term=term.text, code=term.code, frequency=term.frequency)
    comment = ""
    if mapping.flag in CHANGES and decision is not None:
        comment = f"{mapping.flag} since it was decided: {decision.concept} {decision.name}".strip()
    return Decision(
        term=term.text,
        code=term.code,
        context=term.context_text,
        part=mapping.part,
        concept="" if mapping.concept is None else run.ids.chosen(mapping.concept),
        name=fold_lines(mapping.name or ""),
        relation="exact" if mapping.flag == EXACT or mapping.concept is None else "related",
        time=run.time.date().isoformat(),
        comment="; ".join(
            filter(None, (comment or _shown(mapping.flag), mapping.reason, _path(mapping)))
        ),
        probability=mapping.probability,
        store=store,
        frequency=term.frequency,
    )


def _shown(flag: str) -> str:
    return "" if flag == EXACT else flag


def _path(mapping: TermMapping) -> str:
    """Return over which concepts a standard one was found, and that it is only a value."""
    value = mapping.mapping_type if mapping.mapping_type == MAPS_TO_VALUE else ""
    return "; ".join(filter(None, (mapping.through and f"through {mapping.through}", value)))


_SAMPLED = 500
"""Concepts of a store that show its vocabularies."""
COLUMNS = (
    *("source_term", "concept", "name", "score", "probability", "flag"),
    *("source_code", "frequency", "relation", "verdict", "part", "reason"),
)
"""The first columns; then come ``context``, where there is one, `STANDARD_COLUMNS`, where standard
concepts were asked for, and ``candidate_N``, ``name_N`` and ``score_N`` for N from 2 to k."""
STANDARD_COLUMNS = ("vocabulary", "mapping_type", "through")
CHOICES = {"verdict": (APPROVED, REJECTED, NIL), "relation": RELATIONS}
"""Values of the columns that a reviewer fills in."""


def candidate_columns(n_others: int) -> list[str]:
    """Return the columns of the candidates after the first."""
    return [f"{what}_{n + 2}" for n in range(n_others) for what in ("candidate", "name", "score")]


def table_rows(mappings: Iterable[TermMapping], run: MappingRun) -> Iterator[list[Any]]:
    """Give the header, then a row a term.

    Args:
        mappings: Mapped terms, in the order of the rows.
        run: The run that they are from: number of candidates, ids that it shows.
    """
    n_others = run.k - 1
    yield [
        *COLUMNS,
        *(["context"] if run.has_context else []),
        *(STANDARD_COLUMNS if run.is_standard else ()),
        *candidate_columns(n_others),
    ]
    for mapping in mappings:
        yield _row(mapping, run, n_others)


def _row(mapping: TermMapping, run: MappingRun, n_others: int) -> list[Any]:
    term, concept = mapping.term, mapping.concept
    decision = mapping.decision if mapping.flag == "seen" else None
    cells: list[Any] = [
        term.text,
        None if concept is None else run.ids.chosen(concept),
        mapping.name,
        _rounded(mapping.score),
        _rounded(mapping.probability),
        mapping.flag,
        term.code,
        term.frequency,
        decision and decision.relation,
        decision and decision.verdict,
        mapping.part,
        mapping.reason,
        *([term.context_text] if run.has_context else []),
    ]
    if run.is_standard:
        vocabulary = concept and omop_vocabulary(run.kb[concept])
        cells += [vocabulary, mapping.mapping_type, mapping.through]
    others = mapping.others[:n_others]
    for other in others:
        cells += [run.ids.chosen(other.concept), other.concept_name, _rounded(other.score)]
    return cells + [None] * (3 * (n_others - len(others)))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)


def read_earlier(path: str | Path, encoding: str = "utf-8") -> list[Decision]:
    """Read decisions: an SSSOM file, or a mapped table that a reviewer edited.

    Args:
        path: File to read.
        encoding: Its encoding.

    Raises:
        FormatError: A row is invalid, or no row of the table has a verdict.
    """
    path = Path(path)
    decisions = []
    try:
        _, header, rows = read_table(path, encoding)
        if not {"source_term", "concept"} <= set(header):
            return read_decisions(path, encoding)
        for line, cells in named_cells(path, header, rows):
            row = {name: plain(cell.strip()).strip() for name, cell in cells.items()}
            if row.get("verdict"):
                try:
                    decisions.append(_decision(row))
                except (ConfigError, ValueError) as error:
                    raise FormatError(str(error), path=path, line=line) from error
    except EncodingError as error:
        raise EncodingError(
            error.problem,
            path=path,
            line=error.line,
            remedy="save it as UTF-8 (in a spreadsheet: CSV UTF-8)",
        ) from error
    if not decisions:
        raise FormatError(
            "no row has a verdict",
            path=path,
            remedy="fill in the column 'verdict' with approved, rejected or nil where you decided",
        )
    return decisions


def without_foreign(
    decisions: Sequence[Decision], kb: KnowledgeBase
) -> tuple[list[Decision], Counter[str]]:
    """Return decisions without those for concepts of vocabularies that a store does not have.

    Mapping sets of others name objects of several vocabularies. One is foreign if the store knows
    none of its objects, and has no concepts of it; the decisions of each are counted.

    Args:
        decisions: Decisions, and proposals.
        kb: Knowledge base.
    """
    by_vocabulary: dict[str, list[Decision]] = defaultdict(list)
    for each in decisions:
        by_vocabulary[vocabulary_of(each.concept)].append(each)
    rows = range(0, len(kb), max(1, len(kb) // _SAMPLED))
    own = {"", kb.vocabulary, *(vocabulary_of(kb.id_at(row)) for row in rows)}

    def is_known(concept: str) -> bool:
        return bool(kb.rows_of([concept]) or kb.by_xref(concept) or kb.replacement(concept))

    foreign = Counter(
        {
            vocabulary: len(group)
            for vocabulary, group in by_vocabulary.items()
            if vocabulary not in own and not any(is_known(each.concept) for each in group)
        }
    )
    kept = [each for each in decisions if vocabulary_of(each.concept) not in foreign]
    return kept, foreign


def _decision(row: Mapping[str, str]) -> Decision:
    verdict = row["verdict"].lower()
    return Decision(
        term=row["source_term"],
        code=row.get("source_code", ""),
        context=row.get("context", ""),
        part=row.get("part", ""),
        concept="" if verdict == NIL else row["concept"],
        name="" if verdict == NIL else row.get("name", ""),
        relation=row.get("relation", "").lower() or "exact",
        verdict=verdict,
        probability=decimal_cell("probability", row.get("probability", "")),
        frequency=whole_cell("frequency", row.get("frequency") or "1"),
    )


FORMATS = {
    "csv": "one row a term, for spreadsheets",
    "tsv": "the same with tabs",
    "xlsx": "the same as a workbook, for Excel, WPS and LibreOffice",
    "sssom": "SSSOM TSV: mappings with who made them and how",
    OMOP: "rows of source_to_concept_map of the OMOP CDM 5.4, as CSV",
    USAGI: "the file that Usagi saves and opens, as CSV",
    FHIR: "FHIR R4 ConceptMap, as JSON",
}
_SUFFIXES = {
    ".sssom.tsv": "sssom",
    ".sssom": "sssom",
    ".csv": "csv",
    ".tsv": "tsv",
    ".xlsx": "xlsx",
    ".json": FHIR,
}


def format_of(path: Path, to: str = "") -> str:
    """Return the format of an output: the one that is named, or that of its ending.

    Args:
        path: File to write.
        to: Name of a format (`FORMATS`).

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
    encoding: str = "utf-8",
) -> Counter[str]:
    """Write a mapping; return the number of terms of each flag. A failure leaves nothing.

    Args:
        mappings: Mapped terms.
        path: File to write.
        run: Settings of the mapping.
        to: Name of a format (`FORMATS`).
        overwrite: Replace an existing file.
        left_out: Filled with the terms that the format cannot hold, and why; without it, or if it
            can hold none, the first of them is an error.
        encoding: Encoding of CSV and TSV.
    """
    counts: Counter[str] = Counter()

    def counted() -> Iterator[TermMapping]:
        before = None
        for mapping in mappings:
            counts[mapping.flag] += mapping.term is not before  # one with several targets: once
            before = mapping.term
            yield mapping

    if to in ("sssom", USAGI):
        held = [*_held(counted(), partial(_decided, run=run, store=run.store), left_out)]
        mapped = MappingSet.of_decisions(
            (decision for _, decision in held),
            source=run.source,
            kb=run.kb_name,
            justification=run.justification,
            prefixes=run.kb.iris.prefixes,
        )
        if to == "sssom":
            mapped.write(path, overwrite=overwrite)
            return counts
        both = zip(mapped.rows, held, strict=True)
        scored = [_with_score(row, mapping) for row, (mapping, _) in both]
        replace(mapped, rows=scored).write_usagi(path, overwrite=overwrite, left_out=left_out)
        return counts
    if to in (*DELIMITERS, XLSX):
        rows = table_rows(counted(), run)
        write_table(rows, path, to=to, encoding=encoding, choices=CHOICES, overwrite=overwrite)
        return counts
    if to == OMOP:
        chunks = omop_chunks(counted(), run, left_out)
    else:
        content = concept_map(counted(), run, left_out)
        chunks = iter([f"{json.dumps(content, ensure_ascii=False, indent=1)}\n"])
    with new_file(path, overwrite=overwrite) as file:
        for chunk in chunks:
            file.write(encoded(chunk))
    return counts


def _decided(mapping: TermMapping, run: MappingRun, store: str) -> tuple[TermMapping, Decision]:
    return mapping, as_decision(mapping, run, store)


def _with_score(row: MappingRow, mapping: TermMapping) -> MappingRow:
    """Add the score, which Usagi shows."""
    return replace(row, slots={**row.slots, "similarity_score": f"{mapping.score or 0:.2f}"})


def _held(
    mappings: Iterable[TermMapping],
    convert: Callable[[TermMapping], _Row],
    left_out: list[tuple[str, str]] | None,
) -> Iterator[_Row]:
    """Yield what a format can hold, list the rest; raise the first error if it holds no concept.

    Args:
        mappings: Mapped terms.
        convert: Makes the row of a term, or raises.
        left_out: Filled with the terms that were left out; without it, the first is an error.
    """
    n_held, first = 0, None
    for mapping in mappings:
        try:
            row = convert(mapping)
        except ConfigError as error:
            if left_out is None:
                raise
            first = first or error
            left_out.append((repr(mapping.term.text), str(error)))
        else:
            n_held += mapping.concept is not None
            yield row
    if first is not None and not n_held:
        raise first


OMOP_COLUMNS = (
    *("source_code", "source_concept_id", "source_vocabulary_id", "source_code_description"),
    *("target_concept_id", "target_vocabulary_id", "valid_start_date", "valid_end_date"),
    "invalid_reason",
)
_MAX_CODE, _MAX_VOCABULARY, _MAX_DESCRIPTION = 50, 20, 255
_VALID = ("1970-01-01", "2099-12-31")
_NO_VOCABULARY = "None"
_KEPT = ("source_concept_id", "valid_start_date", "valid_end_date")
"""Cells of a row that was read, which are written again."""


def omop_chunks(
    mappings: Iterable[TermMapping],
    run: MappingRun,
    left_out: list[tuple[str, str]] | None = None,
) -> Iterator[str]:
    """Give the header, then a row a term; one without a concept has the target 0.

    Args:
        mappings: Mapped terms.
        run: Settings of the mapping.
        left_out: Filled with the terms that the table cannot hold; see `write_mapping`.
    """
    yield delimited_rows([OMOP_COLUMNS])
    row_of = _omop_writer(run)

    def row(mapping: TermMapping) -> str:
        term = mapping.term
        if mapping.part.startswith(VALUE):
            raise ConfigError(
                f"--to omop: {mapping.concept} ({mapping.name}) is a value, for which the table "
                "has no column"
            )
        return row_of(term.text, term.code, _applicable(mapping), {})

    yield from _held(mappings, row, left_out)


def omop_set_chunks(
    mappings: MappingSet,
    run: MappingRun,
    left_out: list[tuple[str, str]],
    *,
    proposals: bool = False,
    counts: Counter[str] | None = None,
) -> Iterator[str]:
    """Give the header, then the rows of ``source_to_concept_map`` of a mapping set.

    A concept that is not standard is followed to those that it maps to, or was replaced by.

    Args:
        mappings: Mappings of terms; rejections and values have no row.
        run: Knowledge base, and vocabulary of the terms.
        left_out: Filled with the terms that the table cannot hold, and why.
        proposals: Write undecided suggestions, too.
        counts: Filled with the mappings that were followed, and values that these lead to.
    """
    yield delimited_rows([OMOP_COLUMNS])
    row_of, counts = _omop_writer(run), Counter() if counts is None else counts
    standard = StandardConcepts(run.kb) if says_standard(run.kb) else None
    for row in mappings.rows:
        decision = row.decision()
        if decision.verdict == REJECTED or not (decision.is_decided or proposals):
            continue
        if is_value(row):
            continue
        try:
            concept = run.kb.id_at(run.kb.row(decision.concept)) if decision.concept else None
            found, kept = [concept], kept_cells(row, OMOP)
            if concept and standard and not standard.is_standard(concept):
                targets = standard.proposed(concept)
                found = [t.concept for t in targets if t.mapping_type == MAPS_TO] or found
                counts["n_followed"] += bool(targets)
                counts["n_values"] += sum(t.mapping_type != MAPS_TO for t in targets)
            for each in found:
                yield row_of(decision.term, decision.code, each, kept)
        except (ConfigError, NotFoundError) as error:
            left_out.append((repr(decision.term or decision.code), str(error)))


def write_set(
    mappings: MappingSet,
    path: Path,
    to: str,
    *,
    kb: KnowledgeBase | None = None,
    source: str = "",
    proposals: bool = False,
    overwrite: bool = False,
    left_out: list[tuple[str, str]] | None = None,
) -> dict[str, int]:
    """Write a mapping set in another format; return the number of its rows, and of those written.

    Args:
        mappings: The set.
        path: File to write.
        to: ``sssom``, ``usagi``, ``omop`` (``source_to_concept_map``), or ``fhir`` (ConceptMap).
        kb: Knowledge base of the targets, which ``omop`` and ``fhir`` need.
        source: Vocabulary of the terms in ``omop``; default: that of the set.
        proposals: In ``omop``, write undecided suggestions, too.
        overwrite: Replace an existing file.
        left_out: Filled with the terms that the format cannot hold, and why.
    """
    check_choice("--to", to, ("sssom", USAGI, OMOP, FHIR))
    left_out = [] if left_out is None else left_out
    counts = {"n_rows": len(mappings.rows)}
    if to == "sssom":
        return {**counts, "n_written": mappings.write(path, overwrite=overwrite)}
    if to == USAGI:
        n = mappings.write_usagi(path, overwrite=overwrite, left_out=left_out)
        return {**counts, "n_written": n}
    if kb is None:
        raise ConfigError(f"--to {to}: name the knowledge base of the targets (--kb)")
    run = MappingRun(kb=kb, ids=ConceptIds(kb), source=source or mappings.source)
    if to == FHIR:
        found = [row.decision() for row in mappings.rows]
        decided = [each for each in found if each.verdict in (APPROVED, NIL)]
        content = concept_map(map(_of_decision, decided), run, left_out)
        with new_file(path, overwrite=overwrite) as file:
            file.write(encoded(json.dumps(content, ensure_ascii=False, indent=1) + "\n"))
        n_open = sum(not each.is_decided for each in found)
        return {**counts, "n_written": len(decided), "n_not_decided": n_open}
    more = Counter(n_followed=0, n_values=sum(map(is_value, mappings.rows)))
    lines = list(omop_set_chunks(mappings, run, left_out, proposals=proposals, counts=more))
    with new_file(path, overwrite=overwrite) as file:
        for line in lines:
            file.write(encoded(line))
    n_open = sum(row.decision().verdict == PROPOSED for row in mappings.rows)
    counts |= {"n_written": len(lines) - 1, "n_not_decided": 0 if proposals else n_open}
    return {**counts, **more}


def _of_decision(decision: Decision) -> TermMapping:
    """Return a decision as the mapping of its term."""
    context = (("", decision.context),) if decision.context else ()
    term = SourceTerm(decision.term, decision.code, decision.frequency, context)
    concept, name = decision.concept or None, decision.name or None
    return TermMapping(term, concept, name, None, None, SEEN, decision=decision, part=decision.part)


def _omop_writer(
    run: MappingRun,
) -> Callable[[str, str, str | None, Mapping[str, str]], str]:
    """Return what makes the row of a term, its code and its concept, with the cells that it had."""
    if not 0 < len(run.source) <= _MAX_VOCABULARY:
        raise ConfigError(
            f"--source-vocabulary: OMOP has up to {_MAX_VOCABULARY} characters, found "
            f"{run.source!r}; give a shorter name"
        )
    standard = StandardConcepts(run.kb) if says_standard(run.kb) else None

    def row(term: str, code: str, concept: str | None, kept: Mapping[str, str]) -> str:
        code = code or term
        if len(code) > _MAX_CODE:
            raise ConfigError(
                f"--to omop: a code has up to {_MAX_CODE} characters, found {code[:60]!r}; "
                "name the column of the codes (--code-column)"
            )
        target = (0, _NO_VOCABULARY) if concept is None else _omop_target(concept, run, standard)
        values = (code, 0, run.source, cut(term, _MAX_DESCRIPTION), *target, *_VALID, None)
        cells = dict(zip(OMOP_COLUMNS, values, strict=True))
        again = {name: cell for name, cell in kept.items() if name in _KEPT}
        return delimited_rows([list((cells | again).values())])

    return row


def _omop_target(
    concept: str, run: MappingRun, standard: StandardConcepts | None
) -> tuple[int, str]:
    """Return the OMOP id and the vocabulary of a concept; refuse one that is not standard."""
    numbers = (omop_number(identifier, run.ids) for identifier in run.ids.all(concept))
    number = next((number for number in numbers if number is not None), None)
    found = run.kb[concept]
    if number is None:
        raise ConfigError(
            f"--to omop: {concept} ({found.name}) has no OMOP id, and the table takes no other; "
            "map to a store of OMOP concepts (ids as OMOP:316866), or write another format"
        )
    if standard is not None and not standard.is_standard(concept):
        raise ConfigError(
            f"--to omop: {described(found)} is not a standard concept; `map --standard` "
            "follows it to one"
        )
    vocabulary = omop_vocabulary(found, source_files(run.kb))
    if not vocabulary:
        raise ConfigError(
            f"--to omop: the vocabulary of {concept} ({found.name}) is not known; build the "
            "knowledge base from the folder of an Athena bundle"
        )
    return number, vocabulary[:_MAX_VOCABULARY]


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


def concept_map(
    mappings: Iterable[TermMapping],
    run: MappingRun,
    left_out: list[tuple[str, str]] | None = None,
) -> dict[str, Any]:
    """Return a FHIR R4 ConceptMap: a group for each code system of the concepts.

    Args:
        mappings: Mapped terms.
        run: Settings of the mapping.
        left_out: Filled with the terms that it cannot hold; see `write_mapping`.
    """
    decided = partial(_decided, run=run, store="")
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for mapping, decision in _held(mappings, decided, left_out):
        concept = _applicable(mapping)
        vocabulary = "" if concept is None else run.ids.vocabulary(decision.concept)
        if concept is None:  # FHIR asks for a comment on what is not equivalent
            comment = decision.comment or "no concept of the knowledge base"
            target = {"equivalence": "unmatched", "comment": comment}
        else:
            said = f"concept is {decision.relation}"
            if not decision.is_decided:
                said = "proposed, not decided"
            target = {
                "code": code_of(decision.concept, vocabulary),
                **({"display": decision.name} if decision.name else {}),
                "equivalence": _EQUIVALENCES[decision.relation],
                "comment": "; ".join(filter(None, (said, decision.comment))),
            }
        term = mapping.term
        code = term.code or term.text
        before = groups[vocabulary][-1] if groups[vocabulary] else {}
        if (before.get("code"), before.get("display")) == (code, term.text):
            before["target"].append(target)  # of a term of several concepts
        else:
            element = {"code": code, "display": term.text, "target": [target]}
            groups[vocabulary].append(element)
    is_iri = ":" in run.source
    by_system = [
        {
            **({"source": run.source} if is_iri else {}),
            **({"target": system} if (system := system_of(vocabulary)) else {}),
            "element": elements,
        }
        for vocabulary, elements in sorted(groups.items())
    ]
    return {
        "resourceType": "ConceptMap",
        "status": "draft",
        "date": run.time.date().isoformat(),
        "title": f"{run.source} to {run.kb_name}",
        **({"sourceUri": run.source} if is_iri else {}),
        "group": by_system,
    }

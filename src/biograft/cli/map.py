"""``biograft map``: a column of local terms to concepts."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import (
    REJECTED,
    Json,
    Kb,
    Overwrite,
    Quiet,
    open_kb,
    open_linker,
    print_json,
    refuse_input_as_output,
    report_encoding,
    report_inputs,
    report_left_out,
)
from biograft.config import split_list
from biograft.errors import ConfigError, FormatError, InputError
from biograft.kb.names import one_line, whole_cell
from biograft.linking.config import LinkerConfig, LinkerFiles, OutputConfig
from biograft.progress import Progress
from biograft.text.input_config import TABLE, UTF_8, InputConfig

if TYPE_CHECKING:
    from biograft.mapping import SourceTerm, TermMapping
    from biograft.text.inputs import Inputs

_SETTINGS = (
    *("k", "threshold", "search", "lexical_weight", "similarity", "types", "sources"),
    *("value_set", "languages", "abbreviations", "appositions", "short_forms"),
)
"""Settings of a linker that count for terms."""
_POOL = 10
"""Candidates that are followed to standard concepts."""
_ALWAYS = ("exact", "ambiguous", "nil")
"""Flags whose numbers are printed even where they are 0."""


def map_column(
    table: Annotated[Path, typer.Argument(metavar="TABLE")],
    column: Annotated[str, "NAME"],
    kb: Kb,
    files: Annotated[LinkerFiles, Offered(without=("detector",))],
    reading: Annotated[InputConfig, Offered("sheet", "encoding", column="#1")],
    linker: Annotated[LinkerConfig, Offered(*_SETTINGS, k=3)],
    output: Annotated[OutputConfig, Offered("prefer", "name_language")],
    out: Annotated[Path, "-o", "--out", "OUT"],
    to: Annotated[str, "csv|tsv|xlsx|sssom|omop|usagi|fhir"] = "",
    apply: Annotated[Path | None, "DECISIONS"] = None,
    code_column: Annotated[list[str] | None, "NAME"] = None,
    frequency_column: Annotated[str, "NAME"] = "",
    context_column: Annotated[list[str] | None, "NAME"] = None,
    standard: Annotated[bool, "--standard"] = False,
    domain: Annotated[str, "Condition,..."] = "",
    source_vocabulary: Annotated[str, "NAME"] = "",
    out_encoding: Annotated[str, "NAME"] = UTF_8,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Map a column of local terms to concepts, one row a distinct term.

    The exit status is 1 if rows were left out because they are damaged.

    Args:
        table: CSV, TSV, JSON lines, a workbook (XLSX, XLS, ODS) or Parquet.
        column: Column of the terms, by name or as #1.
        out: File to write: .csv, .tsv, .xlsx, .sssom.tsv or .json.
        to: Format of OUT; default: by its ending (.json: fhir).
        apply: Earlier decisions to apply: SSSOM TSV, a mapped table with verdicts, a file of
            Usagi, or source_to_concept_map.
        code_column: Column of the codes of the terms; repeatable, codes are joined by |.
        frequency_column: Column with the frequency of a term; default: each row counts 1.
        context_column: Column that belongs to the term, such as its unit; chooses among equally
            good concepts; repeatable.
        standard: Map to standard concepts of OMOP only; what is not standard is followed along
            'Maps to', 'Maps to value' and 'Concept replaced by'.
        domain: With --standard: domains of these concepts; default: all.
        source_vocabulary: Name or IRI of the vocabulary of the terms; default: the name of
            TABLE.
        out_encoding: Encoding of a CSV or TSV: utf-8-sig for Excel, gb18030 or utf-16.
    """
    from biograft.linking.outputs import ConceptIds
    from biograft.linking.outputs.tables import check_encoding
    from biograft.mapping import EarlierDecisions, MappingRun, map_terms, read_earlier
    from biograft.mapping.formats import (
        format_of,
        justification_of,
        without_foreign,
        write_mapping,
    )
    from biograft.mapping.standard import MAPPED, StandardConcepts
    from biograft.mapping.terms import FLAGS, PARTIAL, SHORT
    from biograft.text.inputs import Inputs

    if domain and not standard:
        raise ConfigError("--domain: needs --standard; --types limits the concepts of any store")
    form = format_of(out, to)
    check_encoding(out_encoding, form)
    refuse_input_as_output(out, table, apply)
    started, progress = time.perf_counter(), Progress(enabled=not quiet)
    codes, contexts = tuple(code_column or ()), tuple(context_column or ())
    inputs = Inputs([table], replace(reading, format=TABLE, column=column))
    decided = None
    if apply:
        report_encoding(apply)
        decided = read_earlier(apply)
    progress.start("read")
    terms = _terms(inputs, (column, codes, frequency_column, contexts))
    if not terms:
        raise InputError(
            f"the column {column!r} has no term", path=table, remedy="name another column"
        )
    base = open_kb(kb)
    opened = open_linker(base, files, linker, quiet=quiet)
    targets = StandardConcepts(base, split_list(domain)) if standard else None
    if targets is not None:
        # several candidates may lead to one target
        opened = opened.with_settings(concepts=targets.leading, k=max(linker.k, _POOL))
    ids = ConceptIds(base, output.prefer)
    earlier = None
    if decided is not None:
        decided, foreign = without_foreign(decided, base)
        if not decided:
            raise ConfigError(
                f"--apply: the knowledge base has no concept of {', '.join(foreign)}, which the "
                "mappings name; lead them on to its ids (`biograft mapping chain`)"
            )
        for vocabulary, n in foreign.items():
            typer.echo(
                f"warning: {apply}: {n:,} mappings to {vocabulary} are not applied, the knowledge "
                "base has no concept of it",
                err=True,
            )
        earlier = EarlierDecisions(decided, base, ids)
    if earlier is not None and not earlier.n_decided:
        raise ConfigError(
            f"--apply: none of its {earlier.n_proposed:,} mappings is decided; approve them first "
            "(mapping_justification semapv:ManualMappingCuration, or a reviewer)"
        )
    run = MappingRun(
        kb=base,
        ids=ids,
        k=linker.k,
        has_context=bool(contexts),
        is_standard=standard,
        justification=justification_of(opened),
        source=source_vocabulary or table.name.partition(".")[0],
    )
    changed: list[dict[str, Any]] = []
    gc.freeze()  # what was opened stays: no collection has to go through it
    found = map_terms(opened, terms, earlier)
    if targets is not None:
        found = targets.follow(found)
    if output.name_language:
        found = (each.named(base, output.name_language) for each in found)
    concepts: list[str] = []
    mapped = _watched(found, len(terms), progress, changed, concepts)
    left_out: list[tuple[str, str]] = []
    counts = write_mapping(
        mapped,
        out,
        run,
        to=form,
        overwrite=overwrite,
        left_out=left_out,
        encoding=out_encoding,
    )
    report_left_out(left_out)
    flags = [*_ALWAYS, PARTIAL, SHORT, "context", *([MAPPED] if standard else [])]
    flags += ["rejected", *FLAGS] if earlier else []
    summary: dict[str, Any] = {
        "n_terms": len(terms),
        "n_targets": len(concepts),
        **{f"n_{flag}": counts[flag] for flag in flags},
        **({"n_unused_decisions": earlier.n_unused} if earlier else {}),
        "n_left_out": len(left_out),
        "seconds": round(time.perf_counter() - started, 3),
    }
    more = {} if earlier is None else {"changed": changed}
    _report(summary, changed, {**more, "out": str(out)} if as_json else None)
    if report_inputs(inputs):
        raise typer.Exit(REJECTED)


def _terms(
    inputs: Inputs, columns: tuple[str, tuple[str, ...], str, tuple[str, ...]]
) -> list[SourceTerm]:
    """Read the distinct terms of the columns of terms, codes, frequencies and contexts."""
    from biograft.kb.sources.workbooks import KEEP_DIGITS, lost_digits
    from biograft.mapping import SourceTerm, distinct_terms
    from biograft.text.inputs import read_columns

    column, codes, frequency, contexts = columns
    names = [column, *codes, *([frequency] if frequency else []), *contexts]

    def rows() -> Iterator[SourceTerm]:
        for file in inputs.files():
            for line, cells in read_columns(file, names, inputs.log):
                said = cells[frequency] if frequency else "1"
                try:
                    n = whole_cell(frequency, said)
                except ValueError:
                    n = 0
                if not n:
                    reason = "the frequency is no whole number above 0"
                    inputs.log.reject(reason, line, said, path=file.path)
                    continue
                for name in codes:
                    if problem := lost_digits(cells[name]):
                        raise FormatError(
                            f"{name}: {problem}", path=file.path, line=line, remedy=KEEP_DIGITS
                        )
                code = "|".join(one_line(cells[name]) for name in codes)
                context = tuple((name, one_line(cells[name])) for name in contexts)
                yield SourceTerm(cells[column], code.strip("|") and code, n, context)

    return distinct_terms(rows())


def _watched(
    mappings: Iterable[TermMapping],
    n_terms: int,
    progress: Progress,
    changed: list[dict[str, Any]],
    concepts: list[str],
) -> Iterator[TermMapping]:
    """Show the progress, and note the decisions that the knowledge base no longer has as they were.

    Args:
        mappings: The mappings.
        n_terms: Their number.
        progress: Shows it.
        changed: Gets what was decided and what is known now.
        concepts: Gets the concepts; a term may have several.
    """
    from biograft.mapping.terms import CHANGES

    progress.start("map")
    before, n = None, 0
    for mapping in mappings:
        n += mapping.term is not before
        before = mapping.term
        progress.advance(1, n / n_terms)
        concepts += [mapping.concept] if mapping.concept else []
        if mapping.flag in CHANGES and mapping.decision is not None:
            changed.append(
                {
                    "term": mapping.term.text,
                    "code": mapping.term.code,
                    "change": mapping.flag,
                    "decided": {"concept": mapping.decision.concept, "name": mapping.decision.name},
                    "now": {"concept": mapping.concept, "name": mapping.name},
                }
            )
        yield mapping
    progress.finish()


def _report(
    summary: dict[str, Any], changed: list[dict[str, Any]], more: dict[str, Any] | None
) -> None:
    """Print the counts, with ``more`` as JSON; warn of decisions that were not applied."""
    if more is not None:
        print_json({**summary, **more})
    else:
        always = {"n_terms", "seconds", *(f"n_{flag}" for flag in _ALWAYS)}
        shown = {key: n for key, n in summary.items() if n or key in always}
        words = (f"{key.removeprefix('n_').replace('_', ' ')} {n:,}" for key, n in shown.items())
        typer.echo("  ".join(words))
    if changed:
        first = changed[0]
        typer.echo(
            f"warning: the knowledge base changed, {len(changed):,} decisions are not applied, "
            f"such as {first['decided']['concept']} for {first['term']!r} ({first['change']})",
            err=True,
        )

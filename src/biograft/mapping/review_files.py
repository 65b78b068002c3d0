"""Files of a review: mapped tables in, worksheets for a spreadsheet in and out, SSSOM in and out.

A worksheet has a row a term with its version, and what was decided when it was written (``was``),
so that a row that was edited is known from one that another reviewer decided meanwhile.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from biograft.artifacts import new_file
from biograft.errors import BiograftError, ConfigError, FormatError, nearest
from biograft.kb import KnowledgeBase
from biograft.kb.names import decimal_cell, fold_lines, term_key, whole_cell
from biograft.kb.sources.table import fit
from biograft.linking.outputs.findings import plain
from biograft.linking.outputs.tables import DELIMITERS, XLSX, write_table
from biograft.mapping.decisions import APPROVED, REJECTED, RELATIONS, Decision
from biograft.mapping.formats import candidate_columns, read_earlier, write_set
from biograft.mapping.omop_tables import table_of
from biograft.mapping.review_records import (
    ACTIONS,
    APPROVE,
    NO_CONCEPT,
    PROPOSED,
    STATUS_OF,
    UNDECIDED,
    ReviewItem,
    ReviewTerm,
    SuggestedConcept,
    TermDecision,
)
from biograft.mapping.review_store import DEFAULT_QUEUE, ReviewStore
from biograft.mapping.sets import MappingSet, read_decisions
from biograft.mapping.sssom import check_codes, is_term, read_table, subject_curie

SSSOM_ENDING = ".sssom.tsv"
_ALL = "all"
ENDINGS = {
    "sssom": SSSOM_ENDING,
    "usagi": ".usagi.csv",
    "omop": ".omop.csv",
    "csv": ".csv",
    "tsv": ".tsv",
    "xlsx": ".xlsx",
    "fhir": ".json",
    _ALL: ".zip",
}
"""Endings of the files that `export_review` writes, by format."""
_WORKSHEET = ("review_id", "version", "was", "decision")
_SHOWN_FAULTS = 3
"""Lines that an error names."""
_MAX_MISSING = 2
"""A table that lacks no more of these columns was a worksheet."""
_COLUMNS = (
    *("review_id", "version", "source_term", "source_code", "context", "part", "frequency", "flag"),
    *("status", "suggestion", "suggestion_name", "score", "probability"),
    *("decision", "concept", "name", "relation", "reason", "decided_by", "comment", "was"),
)
"""The columns of a worksheet; ``decision``, ``concept``, ``relation`` and ``reason`` are edited."""
_CHOICES = {"decision": ACTIONS, "relation": RELATIONS}
_ACTION_OF = {verdict: action for action, verdict in STATUS_OF.items()}
_NOTHING = SuggestedConcept("")


_Row = tuple[int, dict[str, str]]
"""A line and its cells by column."""
_Key = tuple[str, str, str]
"""Identity of a term: text and part, code and context."""


@dataclass(frozen=True, slots=True)
class ReviewImport:
    """Result of an import."""

    n_rows: int
    n_added: int = 0
    """Terms that are new in the queue, or have new suggestions."""
    n_decided: int = 0
    n_unchanged: int = 0
    problems: tuple[tuple[int, str], ...] = ()
    """Lines that were left out, and why: most often another reviewer decided meanwhile."""
    batch: str = ""
    """Batch id with which ``biograft review undo`` undoes the decisions."""


def import_review(
    store: ReviewStore,
    path: str | Path,
    *,
    reviewer: str,
    queue: str = DEFAULT_QUEUE,
    approvals: int | None = None,
    encoding: str = "utf-8",
) -> ReviewImport:
    """Read a mapped table, a worksheet or an SSSOM file, as its columns say, into a queue.

    Args:
        store: The review.
        path: File to read.
        reviewer: Name of the person who imports it.
        queue: Name of the queue, which is made if there is none.
        approvals: Reviewers that must agree on a decision, 1 or 2; None: as it is, or 1.
        encoding: Encoding of the file.
    """
    path = Path(path)
    _, columns, cells = read_table(path, encoding)
    header = set(columns)
    rows: list[_Row] = []
    for line, row in cells:
        if any(map(str.strip, row)):  # cells as they were before they were made safe
            fitted = map(plain, fit(row, len(columns), padded=True))
            rows.append((line, dict(zip(columns, fitted, strict=True))))
            check_codes(path, line, rows[-1][1])
    if {"predicate_id", "object_id"} <= header or table_of(columns):
        decisions = read_decisions(path, encoding)
        _check_subjects(path, rows, decisions)
        lines = [line for line, _ in rows]
        return _import_decisions(store, _apart(decisions), lines, reviewer, queue, approvals)
    missing = sorted(set(_WORKSHEET) - header)
    if missing and len(missing) <= _MAX_MISSING:
        raise FormatError(
            f"is a worksheet without the column {missing[0]!r}",
            path=path,
            remedy="keep the columns of the worksheet (`biograft review export` writes it again)",
        )
    if not missing:
        return _import_worksheet(store, rows, reviewer, queue)
    if "source_term" not in header:
        raise FormatError(
            "is no mapped table, worksheet or mapping set: it has no column 'source_term'",
            path=path,
            remedy=f"map the terms first (`biograft map`); {nearest('source_term', header)}",
        )
    mapped = [(line, _mapped(path, line, cells).folded()) for line, cells in rows]
    parts = _parts([(replace(t, part="").key, t.part, _first(t)) for _, t in mapped])
    mapped = [
        (line, replace(term, part=part)) for (line, term), part in zip(mapped, parts, strict=True)
    ]
    faulty = tuple((line, term.fault) for line, term in mapped if term.fault)
    terms = [term for _, term in mapped if not term.fault]
    decided = [line for line, cells in rows if cells.get("verdict", "").strip()]
    decisions = read_earlier(path, encoding) if decided else []  # errors come before any change
    done = store.add_terms(terms, reviewer=reviewer, queue=queue, approvals=approvals)
    if decided:
        of_line = {line: term.part for line, term in mapped}
        decisions = [
            replace(each, part=of_line[line]) for line, each in zip(decided, decisions, strict=True)
        ]
        said = _import_decisions(store, decisions, decided, reviewer, queue, approvals)
        problems = tuple(sorted({*faulty, *said.problems}))
        return replace(said, n_rows=len(rows), n_added=done.n_changed, problems=problems)
    return ReviewImport(
        len(rows),
        n_added=done.n_changed,
        n_unchanged=len(terms) - done.n_changed,
        problems=faulty,
        batch=done.batch,
    )


# ---- mapping sets


def _check_subjects(path: Path, rows: list[_Row], decisions: list[Decision]) -> None:
    """Refuse a mapping set that a review would write back otherwise, or not whole.

    A code becomes a CURIE where its prefix is known.
    """
    faults: list[str] = []
    for (line, cells), each in zip(rows, decisions, strict=True):
        subject = cells.get("subject_id", "").strip()
        if subject and not is_term(subject) and subject_curie(each.term, each.code) != subject:
            faults.append(f"line {line}: the subject {subject} has a prefix that is not known")
    if faults:
        more = len(faults) - _SHOWN_FAULTS
        raise FormatError(
            f"{len(faults):,} of its mappings would be lost or changed in a review: "
            f"{'; '.join(faults[:_SHOWN_FAULTS])}{f'; and {more:,} more' if more > 0 else ''}",
            path=path,
            remedy="`biograft map --apply` and `biograft learn` take the file as it is",
        )


# ---- mapped tables


def _mapped(path: Path, line: int, cells: Mapping[str, str]) -> ReviewTerm:
    try:
        return ReviewTerm(
            text=cells["source_term"].strip(),
            code=cells.get("source_code", "").strip(),
            context=cells.get("context", "").strip(),
            frequency=max(whole_cell("frequency", cells.get("frequency") or "1"), 1),
            flag=cells.get("flag", "").strip(),
            candidates=tuple(_candidates(cells)),
            part=cells.get("part", "").strip(),
            reason=cells.get("reason", "").strip(),
        )
    except ValueError as error:
        raise FormatError(str(error), path=path, line=line) from None


def _candidates(cells: Mapping[str, str]) -> Iterator[SuggestedConcept]:
    """Yield the concepts of a row; a term without one has its best candidate as the second."""
    score, probability = _number(cells, "score"), _number(cells, "probability")
    if concept := cells.get("concept", "").strip():
        yield SuggestedConcept(concept, cells.get("name", ""), score, probability)
    number = 2
    while f"candidate_{number}" in cells:
        if concept := cells[f"candidate_{number}"].strip():
            own = _number(cells, f"score_{number}")
            yield SuggestedConcept(concept, cells.get(f"name_{number}", ""), own)
        number += 1


def _number(cells: Mapping[str, str], column: str) -> float | None:
    return decimal_cell(column, cells.get(column, ""))


# ---- worksheets


def _said(action: str, relation: str, concept: str | None) -> str:
    """Return a decision as a worksheet has it in ``was``."""
    return " ".join(filter(None, (action, relation if action == APPROVE else "", concept)))


def _was(item: ReviewItem) -> str:
    return _said(item.state.action, item.state.relation, item.state.concept)


def _import_worksheet(
    store: ReviewStore, rows: list[_Row], reviewer: str, queue: str
) -> ReviewImport:
    items = {item.id: item for item in store.items(queue, viewer=reviewer)}
    wanted: dict[int, tuple[int, TermDecision]] = {}
    problems: list[tuple[int, str]] = []
    n_unchanged = 0
    for line, cells in rows:
        try:
            decision = _edited(cells, items, reviewer)
        except (ValueError, ConfigError) as error:
            problems.append((line, str(error)))
            continue
        if decision is None:
            n_unchanged += 1
        elif decision.term_id in wanted:
            problems.append((line, f"term {decision.term_id} has an earlier row, too"))
        else:
            wanted[decision.term_id] = (line, decision)
    done = ReviewImport(len(rows), n_unchanged=n_unchanged)
    return _decide(store, list(wanted.values()), problems, done)


def _decide(
    store: ReviewStore,
    wanted: list[tuple[int, TermDecision]],
    problems: list[tuple[int, str]],
    done: ReviewImport,
) -> ReviewImport:
    """Write the decisions of lines, and complete the result of the import."""
    result, errors = store.decide_each([decision for _, decision in wanted])
    refused = [(line, str(e)) for (line, _), e in zip(wanted, errors, strict=True) if e]
    return replace(
        done,
        n_decided=result.n_changed,
        problems=tuple(sorted(problems + refused)),
        batch=result.batch,
    )


def _edited(
    cells: Mapping[str, str], items: Mapping[int, ReviewItem], reviewer: str
) -> TermDecision | None:
    """Return the decision of a row of a worksheet; None if nothing was edited."""
    item = items.get(whole_cell("review_id", cells["review_id"]))
    if item is None:
        raise ValueError(f"review_id: no term of this queue has {cells['review_id']}")
    if term_key(cells.get("source_term", item.term.text)) != term_key(item.term.text):
        raise ValueError("source_term: was edited; a row stays with its term")
    action, concept = cells["decision"].strip().lower(), cells.get("concept", "").strip()
    if action and action not in ACTIONS:
        raise ValueError(f"decision: expected one of {', '.join(ACTIONS)}, found {action!r}")
    relation = cells.get("relation", "").strip().lower() if action == APPROVE else ""
    said = _said(action, relation, concept)
    if said == cells["was"].strip():
        return None
    if not action:
        if concept:
            raise ValueError("decision: is empty, and a concept is given; write approve or reject")
        raise ValueError("decision: was emptied; take it back by `biograft review undo`")
    if said == _was(item):
        return None  # another reviewer decided the same
    return TermDecision(
        item.id,
        action,
        reviewer,
        whole_cell("version", cells["version"]),
        concept or None,
        relation=relation or "exact",
        comment=cells.get("reason", "").strip(),
    )


# ---- SSSOM


def _import_decisions(
    store: ReviewStore,
    decisions: list[Decision],
    lines: list[int],
    importer: str,
    queue: str,
    approvals: int | None,
) -> ReviewImport:
    """Add the terms of decisions that are new, and decide as they say.

    A decision that is older than what the queue has is left out.
    """
    groups: dict[_Key, list[Decision]] = {}
    for each in decisions:
        groups.setdefault(_key(each), []).append(each)
    queues = {each["queue"]: each["approvals"] for each in store.queues()}
    known = {_key(item.term) for item in store.items(queue)} if queue in queues else set()
    proposed = {key: _proposed(group) for key, group in groups.items() if key not in known}
    faults = {key: term.fault for key, term in proposed.items() if term.fault}
    terms = [term for key, term in proposed.items() if key not in faults]
    added = store.add_terms(terms, reviewer=importer, queue=queue, approvals=approvals)
    of_two = (approvals or queues.get(queue)) == 2
    items = {_key(item.term): item for item in store.items(queue)}
    wanted: list[tuple[int, TermDecision]] = []
    problems: list[tuple[int, str]] = []
    n_unchanged = 0
    for line, each in zip(lines, decisions, strict=True):
        if fault := faults.get(_key(each)):
            problems.append((line, fault))
            continue
        item = items[_key(each)]
        if not each.is_decided or _says(item, each):
            n_unchanged += 1
        elif item.state.status not in UNDECIDED and each.time < item.updated_at:
            problems.append(
                (line, f"term {item.id}: was decided anew since then{item.last_change}")
            )
        else:
            people = [each.author or importer, *([each.reviewer] if of_two else [])]
            wanted += [
                (
                    line,
                    TermDecision(
                        item.id,
                        _ACTION_OF[each.verdict],
                        who,
                        None,
                        each.concept or None,
                        each.name or None,
                        each.relation,
                        each.comment,
                        each.time,
                    ),
                )
                for who in dict.fromkeys(people)
                if who
            ]
    done = ReviewImport(len(decisions), added.n_changed, n_unchanged=n_unchanged)
    return _decide(store, wanted, problems, done)


def _key(of: ReviewTerm | Decision) -> _Key:
    if isinstance(of, ReviewTerm):
        return of.key
    return ReviewTerm(of.term or of.code, of.code, of.context, part=of.part).key


def _first(term: ReviewTerm) -> SuggestedConcept:
    return term.candidates[0] if term.candidates else _NOTHING


def _parts(targets: Sequence[tuple[_Key, str, SuggestedConcept]]) -> list[str]:
    """Return the parts of terms that have several concepts; empty for all others.

    Where several do not say their part, each of these is called by its name.

    Args:
        targets: Keys without parts, parts, and concepts.
    """
    counts = Counter(key for key, _, _ in targets)
    unnamed = Counter(key for key, part, _ in targets if not part)
    used: set[tuple[_Key, str]] = set()
    found = []
    for key, part, concept in targets:
        own = part if counts[key] > 1 else ""
        if unnamed[key] > 1:
            own = part or concept.name or concept.concept or "-"
        if (key, own) in used and own:
            own = f"{own} ({concept.concept})"
        used.add((key, own))
        found.append(own)
    return found


def _apart(decisions: Sequence[Decision]) -> list[Decision]:
    """Return decisions with the parts that they are of, where a term has several concepts.

    Rejections and terms without a concept are of the part that they name, else of the first.
    """
    plain = [_key(replace(each, part="")) for each in decisions]
    targets: dict[_Key, dict[tuple[str, str], SuggestedConcept]] = defaultdict(dict)
    for approved in (True, False):
        for key, each in zip(plain, decisions, strict=True):
            if (each.verdict == APPROVED) != approved or each.verdict == REJECTED:
                continue
            known = {part for part, _ in targets[key]}
            if approved or (each.part and each.part not in known):
                place = each.part, each.concept if approved else ""
                targets[key].setdefault(place, SuggestedConcept(each.concept, each.name))
    found: list[Decision] = []
    of_key = {
        key: dict(zip(own, _parts([(key, p, c) for (p, _), c in own.items()]), strict=True))
        for key, own in targets.items()
    }
    for key, each in zip(plain, decisions, strict=True):
        own = of_key.get(key, {})
        concept = each.concept if each.verdict == APPROVED else ""
        same = [name for (part, _), name in own.items() if part == each.part]
        names = [own[each.part, concept]] if (each.part, concept) in own else same
        found.append(replace(each, part=next(iter([*names, *own.values()]), "")))
    return found


def _proposed(group: list[Decision]) -> ReviewTerm:
    """Return a term with the concepts that decisions and proposals name, the likeliest first."""
    named = sorted(
        (each for each in group if each.concept),
        key=lambda each: (each.verdict == "rejected", -(each.probability or 0)),
    )
    candidates: dict[str, SuggestedConcept] = {}
    for each in named:
        suggested = SuggestedConcept(each.concept, each.name, probability=each.probability)
        candidates.setdefault(each.concept, suggested)
    first = group[0]
    flag = NO_CONCEPT if all(each.verdict == "nil" for each in group) else ""
    return ReviewTerm(
        first.term or first.code,
        first.code,
        first.context,
        first.frequency,
        flag,
        tuple(candidates.values()),
        first.part,
    )


def _says(item: ReviewItem, decision: Decision) -> bool:
    """Return whether a term was decided as a decision says."""
    if decision.verdict == "rejected":
        return decision.concept in item.state.rejected
    expected = (decision.verdict, decision.concept or None, decision.relation)
    state = item.state
    return (state.status, state.concept, state.relation) == expected


def export_decisions(
    store: ReviewStore,
    queue: str = DEFAULT_QUEUE,
    *,
    proposals: bool = False,
    left_out: list[tuple[str, str]] | None = None,
) -> list[Decision]:
    """Return the decisions of a queue that stand.

    Args:
        store: The review.
        queue: Name of the queue.
        proposals: Return what is still open as well.
        left_out: Filled with the terms that no mapping set can hold, and why; without it, the
            first of them is an error. Databases of earlier versions may have some.
    """
    comments, rejections = store.comments(queue), store.rejections(queue)
    found: list[Decision] = []
    for item in sorted(store.items(queue), key=lambda each: each.id):
        try:
            found += _decisions_of(item, comments.get(item.id, ""), rejections, proposals=proposals)
        except ConfigError as error:
            if left_out is None:
                raise
            left_out.append((f"term {item.id}", str(error)))
    return found


def _decisions_of(
    item: ReviewItem,
    comment: str,
    rejections: Mapping[tuple[int, str], tuple[str, str]],
    *,
    proposals: bool,
) -> list[Decision]:
    term, state = item.term, item.state
    known: dict[str | None, SuggestedConcept] = {c.concept: c for c in reversed(term.candidates)}
    plain = Decision(
        term=fold_lines(term.text),
        code=fold_lines(term.code),
        context=fold_lines(term.context),
        part=fold_lines(term.part),
        frequency=term.frequency,
    )
    found: list[Decision] = []

    def add(verdict: str, concept: str | None, name: str | None, **more: Any) -> None:
        name, concept = fold_lines(name or ""), concept or ""
        found.append(replace(plain, verdict=verdict, concept=concept, name=name, **more))

    for concept in state.rejected:
        who, at = rejections.get((item.id, concept), ("", ""))
        name = known.get(concept, _NOTHING).name
        add("rejected", concept, name, author=who, time=at, comment=comment)
    if state.status in ("approved", "nil"):
        add(
            state.status,
            state.concept,
            state.name,
            relation=state.relation,
            author=state.reviewer or "",
            reviewer=state.second_reviewer or "",
            time=item.updated_at,
            comment=comment,
            probability=known.get(state.concept, _NOTHING).probability,
        )
    elif proposals and state.status in UNDECIDED:
        first = item.suggestion or _NOTHING
        add(PROPOSED, first.concept, first.name, probability=first.probability)
    return found


def format_of_export(path: Path) -> str:
    """Return the format that the ending of a file names."""
    for form, ending in ENDINGS.items():
        if path.name.lower().endswith(ending):
            return form
    known = ", ".join(ENDINGS.values())
    raise ConfigError(f"--out: expected a file that ends in {known}, found {path.name!r}")


def export_review(
    store: ReviewStore,
    path: str | Path,
    *,
    queue: str = DEFAULT_QUEUE,
    proposals: bool = False,
    overwrite: bool = False,
    left_out: list[tuple[str, str]] | None = None,
    encoding: str = "utf-8",
    kb: KnowledgeBase | None = None,
) -> int:
    """Write the decisions of a queue as a mapping set, or all of it as a worksheet.

    Return the number of rows; of a .zip, the number of its files.

    Args:
        store: The review.
        path: File to write; its ending names the format: .sssom.tsv, .usagi.csv, .omop.csv
            (``source_to_concept_map``) or .json (FHIR ConceptMap) of decisions; .csv, .tsv or .xlsx
            as a worksheet; .zip for all of them.
        queue: Name of the queue.
        proposals: In SSSOM, write what is still open as well.
        overwrite: Replace an existing file.
        left_out: Filled with the terms that the format cannot hold, and why; see
            `export_decisions`.
        encoding: Encoding of CSV and TSV.
        kb: Knowledge base, which OMOP and FHIR need.
    """
    path = Path(path)
    form = format_of_export(path)
    if form == _ALL:
        return _export_all(store, path, queue, overwrite, left_out, kb)
    if form not in (*DELIMITERS, XLSX):
        decisions = export_decisions(store, queue, proposals=proposals, left_out=left_out)
        mappings = MappingSet.of_decisions(decisions, source=queue)
        written = write_set(
            mappings, path, form, kb=kb, source=queue, overwrite=overwrite, left_out=left_out
        )
        return written["n_written"]
    items, comments = store.items(queue, viewer=""), store.comments(queue, viewer="")
    # all candidates of a term for which nothing is suggested
    others = [[c for c in item.term.candidates if c != item.suggestion] for item in items]
    n_others = max(map(len, others), default=0)

    def rows() -> Iterator[list[Any]]:
        yield [*_COLUMNS, *candidate_columns(n_others)]
        for item, more in zip(items, others, strict=True):
            term, state, first = item.term, item.state, item.suggestion or _NOTHING
            cells: list[Any] = [
                item.id,
                item.version,
                term.text,
                term.code,
                term.context,
                term.part,
                term.frequency,
                term.flag,
                state.status,
                first.concept,
                first.name,
                first.score,
                first.probability,
                state.action,
                state.concept,
                state.name,
                state.relation if state.action == APPROVE else "",
                "",
                "|".join(filter(None, (state.reviewer, state.second_reviewer))),
                comments.get(item.id),
                _was(item),
            ]
            for each in [*more, *[_NOTHING] * (n_others - len(more))]:
                cells += [each.concept, each.name, each.score]
            yield cells

    return write_table(
        rows(), path, to=form, encoding=encoding, choices=_CHOICES, overwrite=overwrite
    )


def _export_all(
    store: ReviewStore,
    path: Path,
    queue: str,
    overwrite: bool,
    left_out: list[tuple[str, str]] | None,
    kb: KnowledgeBase | None,
) -> int:
    """Write a ZIP with a file for each format; what a format cannot hold is left out of it."""
    names: list[str] = []
    with new_file(path, overwrite=overwrite) as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for form, ending in ENDINGS.items():
            if form == _ALL:
                continue
            missing: list[tuple[str, str]] = []
            with tempfile.TemporaryDirectory() as folder:
                part = Path(folder) / f"review{ending}"
                try:
                    export_review(store, part, queue=queue, left_out=missing, kb=kb)
                    archive.write(part, part.name)
                    names.append(part.name)
                except BiograftError as error:
                    missing.append((form, str(error)))
            if left_out is not None:
                left_out += missing
    return len(names)

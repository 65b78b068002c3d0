"""What the ``kb`` commands say to a person."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from biograft.kb import BuildReport, Concept, Match, Relation, SourceReport

_SHOWN_EXAMPLES = 3


def print_report(report: BuildReport) -> None:
    """Say what a build read, kept, merged, filtered and rejected."""
    for source in report.sources:
        _print_source(source)
    merged = {what: n for what, n in report.merged.items() if n}
    if merged:
        typer.echo("merged      " + ", ".join(f"{n:,} {what}" for what, n in merged.items()))
    dropped = {what: n for what, n in report.dropped.items() if n}
    if dropped:
        typer.echo("dropped     " + ", ".join(f"{n:,} {what}" for what, n in dropped.items()))
    for warning in report.warnings:
        typer.echo(f"warning     {warning}")
    kept = ", ".join(f"{n:,} {what}" for what, n in report.counts.items())
    typer.echo(f"kept        {kept}")
    typer.echo(f"store       {report.store}  ({sum(report.seconds.values()):.1f} s)")


def _print_source(source: SourceReport) -> None:
    typer.echo(f"read        {source.n_read:,} rows of {source.path} ({source.format})")
    for reason, n in source.filtered.items():
        typer.echo(f"  filtered  {n:,}  {reason}")
    for what, found in (("rejected", source.rejected), ("doubtful", source.doubtful)):
        for reason, entry in found.items():
            typer.echo(f"  {what}  {entry['n']:,}  {reason}")
            for example in entry["examples"][:_SHOWN_EXAMPLES]:
                typer.echo(f"            {example['file']}:{example['line']}: {example['text']}")
    for note in source.notes:
        typer.echo(f"  note      {note}")


def print_info(info: dict[str, Any], store: Path) -> None:
    """Say what a store holds."""
    typer.echo(
        f"{store}: {info['n_concepts']:,} concepts, made {info['made_at']} by {info['made_by']}"
    )
    for what in ("names", "definitions", "types", "ids", "relations"):
        typer.echo(f"  {what:12} {info[f'n_{what}']:>12,}")
    languages = sorted(info["n_names_by_language"].items(), key=lambda item: -item[1])
    typer.echo("  languages    " + ", ".join(f"{tag} {n:,}" for tag, n in languages))
    for source in info["sources"]:
        typer.echo(
            f"  from         {source['path']} ({source['format']}): {source['n_read']:,} rows"
        )
        for reason, n in source["filtered"].items():
            typer.echo(f"               filtered {n:,}  {reason}")
        for what in ("rejected", "doubtful"):
            for reason, entry in source[what].items():
                typer.echo(f"               {what} {entry['n']:,}  {reason}")
        for note in source["notes"]:
            typer.echo(f"               {note}")
    for warning in info["warnings"]:
        typer.echo(f"  warning      {warning}")


def print_concept(concept: Concept, relations: Iterable[Relation], limit: int) -> None:
    """Show a concept."""
    types = ", ".join(f"{t.code} {t.label}".strip() for t in concept.types)
    typer.echo(f"{concept.id}  {concept.name}" + (f"  [{types}]" if types else ""))
    by_language: dict[str, list[str]] = {}
    for name in concept.names:
        by_language.setdefault(name.language, []).append(name.text)
    for language, names in by_language.items():
        typer.echo(f"  {language:4} {_some(list(dict.fromkeys(names)), limit)}")
    for definition in concept.definitions:
        typer.echo(f"  def  {definition.text}")
    if concept.ids:
        typer.echo("  ids  " + ", ".join(f"{i.id} ({i.kind})" for i in concept.ids))
    for key, others in _by_kind(concept, relations).items():
        typer.echo(f"  {key} {_some(others, limit)}")


def _by_kind(concept: Concept, relations: Iterable[Relation]) -> dict[str, list[str]]:
    """Group the other ends of relations by kind and direction."""
    grouped: dict[str, list[str]] = {}
    for relation in relations:
        if relation.head == concept.id:
            key, other = f"{relation.relation} ->", f"{relation.tail_name} ({relation.tail})"
        else:
            key, other = f"<- {relation.relation}", f"{relation.head_name} ({relation.head})"
        grouped.setdefault(key, []).append(other)
    return grouped


def _some(items: list[str], limit: int) -> str:
    shown = items[:limit] if limit else items
    more = f"; and {len(items) - len(shown):,} more" if len(items) > len(shown) else ""
    return "; ".join(shown) + more


def print_matches(matches: list[Match], text: str) -> None:
    """Show what a search found."""
    if not matches:
        typer.echo(f"no name holds {text!r}", err=True)
    width = max((len(match.concept) for match in matches), default=0)
    for match in matches:
        own = "" if match.name == match.concept_name else f"  = {match.concept_name}"
        typer.echo(f"{match.concept:{width}}  {match.name}{own}  ({match.how}, {match.language})")

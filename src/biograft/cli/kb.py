"""``biograft kb``: build, formats, info, show, search, export, diff."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.fields import CommandGroup, Offered
from biograft.cli.options import (
    Json,
    Overwrite,
    Quiet,
    Store,
    open_kb,
    print_json,
    print_log,
    report_left_out,
)
from biograft.cli.valueset import app as valueset_app
from biograft.config import split_list
from biograft.errors import ConfigError, visible
from biograft.kb.config import BuildConfig
from biograft.kb.records import RETIRED
from biograft.kb.sources import STARTER, SourceConfig
from biograft.language import READER
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import (
        Concept,
        ConceptRelation,
        KnowledgeBase,
        RelationCount,
        Replacement,
        StoreDiff,
    )


_NO_PATH = Path()
"""Path of a source before the sources are known."""

app = CommandGroup("Build, inspect, search, export and compare knowledge bases.")
app.add_typer(valueset_app, name="valueset")


@app.command()
def build(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...")],
    out: Annotated[Path, "-o", "--out", "KB"],
    reading: Annotated[SourceConfig, Offered(path=_NO_PATH)],
    build_config: Annotated[BuildConfig, Offered(sources=({"path": _NO_PATH},))],
    unmerged: Annotated[Path | None, "FILE"] = None,
    merged: Annotated[Path | None, "FILE"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Build a knowledge base from ontology files of any format.

    Args:
        sources: Files or folders to read; 'starter' is the built-in knowledge base,
            'clinical-findings' has more findings; a single .toml file describes a whole build.
        out: Folder of the new knowledge base.
        merged: Write the ids that were merged into others, by what, and the shared names (TSV).
        unmerged: Write the links that were not used to merge, with reasons (TSV).
    """
    from biograft.kb import build_store

    config = _build_config(sources, reading, build_config)
    report = build_store(config, out, overwrite=overwrite, progress=Progress(enabled=not quiet))
    if unmerged is not None:
        report.write_unmerged(unmerged, overwrite=overwrite)
    if merged is not None:
        report.write_merges(merged, overwrite=overwrite)
    said = report.to_json()
    if as_json:
        print_json(said)
        return
    for source in said["sources"]:
        typer.echo(
            f"read        {source['n_read']:,} rows of {source['path']} ({source['format']})"
        )
        print_log(source)
    _print_counts("merged", report.merged)
    for by, entry in said["merges"].items():
        typer.echo(f"  by {by}  {entry['n']:,}")
        for each in entry["examples"]:
            typer.echo(visible(f"{'':12}{each['id']} into {each['into']}  {each['name']}"))
    _print_counts("dropped", report.dropped)
    for warning in report.warnings:
        typer.echo(f"warning     {warning}")
    counts = ", ".join(f"{n:,} {what}" for what, n in report.counts.items())
    typer.echo(f"kept        {counts}")
    typer.echo(f"store       {report.store}  ({sum(report.seconds.values()):.1f} s)")


def _print_counts(title: str, counts: dict[str, int]) -> None:
    if shown := [f"{n:,} {what}" for what, n in counts.items() if n]:
        typer.echo(f"{title:12}{', '.join(shown)}")


def _build_config(sources: list[str], reading: SourceConfig, config: BuildConfig) -> BuildConfig:
    """Add the sources to the configuration, or read the build file, which stands alone."""
    if len(sources) > 1 or not sources[0].endswith(".toml"):
        return replace(config, sources=tuple(replace(reading, path=Path(s)) for s in sources))
    if (reading, config) != (SourceConfig(path=_NO_PATH), BuildConfig(sources=(reading,))):
        raise ConfigError(
            f"{sources[0]}: a build file stands alone; write the other options into it"
        )
    return _read_build_file(Path(sources[0]))


def _read_build_file(path: Path) -> BuildConfig:
    """Read a build from a TOML file; the paths in it are relative to its folder."""
    from biograft.config import from_mapping, load_toml

    values = load_toml(path)
    sources = values.get("sources")
    for source in sources if isinstance(sources, list) else []:
        source_path = source.get("path") if isinstance(source, dict) else None
        if isinstance(source_path, str) and source_path != STARTER:
            source["path"] = str(path.parent / source_path)
    return from_mapping(BuildConfig, values, f"{path}: ")


@app.command()
def formats(as_json: Json = False) -> None:
    """List the source formats."""
    from biograft.kb.sources import FORMATS

    for name, help_line in FORMATS.help().items():
        if as_json:
            print_json({"format": name, "help": help_line})
        else:
            typer.echo(f"{name:12} {help_line}")


@app.command()
def info(
    store: Store,
    as_json: Json = False,
) -> None:
    """Print the contents of a knowledge base, its sources and what was rejected."""
    base = open_kb(store)
    info = base.info()
    if as_json:
        print_json(info)
        return
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
        print_log(source)
    for warning in info["warnings"]:
        typer.echo(f"  warning      {warning}")


@app.command()
def show(
    store: Store,
    identifier: Annotated[str, typer.Argument(metavar="ID")],
    limit: Annotated[int, typer.Option("-k", "--limit", metavar="N", min=0)] = 10,
    as_json: Json = False,
) -> None:
    """Show a concept: names, definitions, types, ids and relations.

    An id that is only a cross-reference shows every concept that has it; that of a retired
    concept shows those that take its place.

    Args:
        identifier: Any id of the concept.
        limit: Maximum names per language and relations per kind, of 100 kinds; 0: all.
    """
    from dataclasses import asdict

    base = open_kb(store)
    retired = base.replacement(identifier)
    if retired is not None and not as_json:
        typer.echo(visible(str(retired)))
    for concept in _concepts_by_id(base, identifier, retired):
        related = base.relations(concept.id, limit=limit or None)
        counts = base.count_relations(concept.id)
        if as_json:
            listed = {
                "n_relations": [asdict(count) for count in counts],
                "relations": [asdict(relation) for relation in related],
            }
            about = {} if retired is None else {"replacement": retired.to_json()}
            print_json({**concept.to_json(), **listed, **about})
        else:
            _print_concept(base, concept, related, counts, limit)


def _concepts_by_id(
    base: KnowledgeBase, identifier: str, retired: Replacement | None
) -> list[Concept]:
    """Return the concept with an id; else those in the place of a retired one, or by reference."""
    if identifier in base:
        return [base[identifier]]
    if retired is not None:
        return [base[each] for each in (*retired.replaced_by, *retired.consider)]
    return base.by_xref(identifier) or [base[identifier]]


_MAX_KINDS = 100
"""Kinds of relations that are printed of a concept."""


def _print_concept(
    base: KnowledgeBase,
    concept: Concept,
    relations: Iterable[ConceptRelation],
    counts: Iterable[RelationCount],
    limit: int,
) -> None:
    """Print a concept: up to ``limit`` names per language, and the relations given of all."""
    types = ", ".join(READER.translate(f"{t.code} {t.label}".strip()) for t in concept.types)
    title = f"{concept.id}  {base.name_in(base.row(concept.id), READER.language)}"
    typer.echo(visible(title + (f"  [{types}]" if types else "")))
    if concept.iri:
        typer.echo(visible(f"  {concept.iri}"))
    by_language: dict[str, list[str]] = {}
    for name in concept.names:
        by_language.setdefault(name.language, []).append(name.text)
    for language, names in by_language.items():
        distinct = list(dict.fromkeys(names))
        some = _some(distinct[: limit or None], len(distinct))
        typer.echo(visible(f"  {language:4} {some}"))
    for definition in concept.definitions:
        typer.echo(visible(f"  def  {definition.text}"))
    for label, retired in (("ids", False), ("retired ids", True)):
        ids = [f"{i.id} ({i.kind})" for i in concept.ids if (i.kind in RETIRED) is retired]
        if ids:
            typer.echo(visible(f"  {label}  {', '.join(ids)}"))
    n = {_key(count.relation, count.direction): count.n for count in counts}
    kinds = _by_kind(base, concept, relations)
    for key, others in islice(kinds.items(), _MAX_KINDS if limit else None):
        typer.echo(visible(f"  {READER.translate(key)} {_some(others, n[key])}"))
    if limit and len(kinds) > _MAX_KINDS:
        typer.echo(f"  and {len(kinds) - _MAX_KINDS:,} more kinds of relations (--limit 0: all)")


def _key(relation: str, direction: str) -> str:
    return f"{relation} ->" if direction == "out" else f"<- {relation}"


def _by_kind(
    base: KnowledgeBase, concept: Concept, relations: Iterable[ConceptRelation]
) -> dict[str, list[str]]:
    """Group the related concepts by relation and direction."""
    grouped: dict[str, list[str]] = {}
    for relation in relations:
        is_head = relation.head == concept.id
        key = _key(relation.relation, "out" if is_head else "in")
        other = relation.tail if is_head else relation.head
        name = base.name_in(base.row(other), READER.language)
        grouped.setdefault(key, []).append(f"{name} ({other})")
    return grouped


def _some(first: list[str], n: int) -> str:
    """Join the first items of ``n``, and say how many more there are."""
    more = READER.translate(f"and {n - len(first):,} more") if n > len(first) else ""
    return "; ".join([*first, *filter(None, [more])])


@app.command()
def search(
    store: Store,
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    limit: Annotated[int, typer.Option("-k", "--limit", metavar="N", min=1)] = 10,
    lang: Annotated[str | None, "en"] = None,
    as_json: Json = False,
) -> None:
    """Search concepts by name.

    Args:
        text: A name or a part of one.
        limit: Maximum number of concepts.
        lang: Names in this language only.
    """
    from biograft.kb import search_names
    from biograft.kb.names import language_code

    language = language_code(lang) if lang else None
    base = open_kb(store)
    matches = search_names(base, text, limit=limit, language=language)
    if as_json:
        for match in matches:
            print_json(match.to_json())
        return
    if not matches:
        typer.echo(f"no name contains {text!r}", err=True)
    width = max((len(match.concept) for match in matches), default=0)
    for match in matches:
        name = base.name_in(base.row(match.concept), READER.language)
        own = "" if match.name == name else f"  = {name}"
        how = READER.translate(match.how)
        line = f"{match.concept:{width}}  {match.name}{own}  ({how}, {match.language})"
        typer.echo(visible(line))


@app.command()
def export(
    store: Store,
    out: Annotated[str, "-o", "--out", "FILE"],
    form: Annotated[str, "--format", "jsonl|biosyn|triples"] = "jsonl",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Export everything as JSON lines, the names as id||name, or the triples.

    Args:
        out: File to write; '-' is stdout.
        form: Format to write.
    """
    from biograft.kb import export_store

    target = None if out == "-" else Path(out)
    progress = Progress(enabled=not quiet)
    base = open_kb(store)
    left_out: list[tuple[str, str]] = []
    n_lines = export_store(
        base, target, form, overwrite=overwrite, progress=progress, left_out=left_out
    )
    report_left_out(left_out)
    if target is not None:
        typer.echo(f"{n_lines:,} lines written to {out}", err=True)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD")],
    new: Annotated[Path, typer.Argument(metavar="NEW")],
    only: Annotated[str, "added,..."] = "",
    out: Annotated[Path | None, "-o", "--out", "FILE"] = None,
    limit: Annotated[int, typer.Option("-k", "--limit", metavar="N", min=0)] = 3,
    exit_code: Annotated[bool, "--exit-code"] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two stores of an ontology: concepts, names, parents and types that changed.

    Exits with 0 whether or not there are changes, unless --exit-code is given; 2 is an error.

    Args:
        old: Folder of the earlier store.
        new: Folder of the later store.
        only: Kinds of changes to look for: added, retired, merged, replaced, renamed,
            name-added, name-removed, moved, types-changed; default: all.
        out: Write one change a line to a .tsv or .jsonl file (.gz: compressed).
        limit: Maximum examples of each kind.
        exit_code: Exit with 1 if anything has changed, otherwise with 0.
    """
    from biograft.kb import diff_stores
    from biograft.kb.diff import form_of

    if out is not None:
        form_of(out)  # refuse it before the work
    progress = Progress(enabled=not quiet)
    kinds = split_list(only)
    changes = diff_stores(open_kb(old), open_kb(new), only=kinds, progress=progress)
    if out is not None:
        n_changes = changes.write(out, overwrite=overwrite, progress=progress)
        typer.echo(f"{n_changes:,} changes written to {out}", err=True)
    if as_json:
        print_json(changes.to_json(limit))
    else:
        _print(changes, limit)
    if exit_code and changes:
        raise typer.Exit(1)


def _print(changes: StoreDiff, limit: int) -> None:
    from biograft.kb import CHANGES

    for what, sizes in (
        ("concepts", (len(changes.old), len(changes.new))),
        ("names", (changes.old.n_names, changes.new.n_names)),
    ):
        typer.echo(f"{what:14} {sizes[0]:>11,} -> {sizes[1]:,}")
    for note in changes.notes:
        typer.echo(f"note: {note}")
    for kind, n in changes.counts.items():
        typer.echo(f"{kind:14} {n:>11,}  {CHANGES[kind]}")
        for change in changes.examples(kind, limit):
            typer.echo(visible(f"{'':28}{change}"))

"""What the ``kb`` commands say to a person."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Json, Overwrite, Quiet, Store, split_list
from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.kb import BuildConfig, BuildReport, Concept, Match, Relation, SourceReport

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


app = typer.Typer(
    help="Build a knowledge base, look into it, take it out again.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _columns(value: str | None) -> dict[str, str]:
    columns = {}
    for part in split_list(value):
        role, equals, column = part.partition("=")
        if not equals or not column or not role.strip():
            raise ConfigError(f"--columns: expected role=column, found {part!r}")
        columns[role.strip()] = column.strip()
    return columns


@app.command()
def build(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Files or folders to read; 'starter' is the built-in knowledge base; "
            "one .toml file describes a whole build.",
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="KB", help="Folder to make.")],
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Format; default: found by content.")
    ] = "",
    lang: Annotated[
        str | None,
        typer.Option(metavar="en,zh", help="Keep names in these languages; the first is main."),
    ] = None,
    sab: Annotated[
        str | None, typer.Option(metavar="MSH,...", help="Keep these vocabularies (UMLS SAB).")
    ] = None,
    tty: Annotated[
        str | None, typer.Option(metavar="PT,...", help="Keep these term types (UMLS TTY).")
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(metavar="T047,...", help="Keep concepts of these semantic types, or below."),
    ] = None,
    relations: Annotated[
        str | None, typer.Option(metavar="is-a,...", help="Keep these relations only.")
    ] = None,
    merge: Annotated[
        str,
        typer.Option(
            metavar="none|ids|xrefs",
            help="Unite concepts of several sources by alternate ids, or by cross-references too.",
        ),
    ] = "none",
    keep_suppressed: Annotated[
        bool, typer.Option("--keep-suppressed", help="Keep what the source marks as withdrawn.")
    ] = False,
    codes: Annotated[
        bool,
        typer.Option("--codes", help="Keep codes of source vocabularies as xrefs (UMLS CODE)."),
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of the files.")] = "utf-8",
    language: Annotated[
        str, typer.Option(metavar="en", help="Language of names where the format does not say.")
    ] = "",
    default_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="Semantic type where the format has none.")
    ] = "",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="id=code,name=label,...",
            help="For a CSV or TSV: which column holds the id, name, synonyms, definition, type, "
            "language, parents, alternates, xrefs, relation.NAME; or head, relation, tail. "
            "A file without header has columns #1, #2, ...",
        ),
    ] = None,
    separator: Annotated[
        str, typer.Option(metavar="|", help="For a CSV or TSV: what parts values in one cell.")
    ] = "",
    same_as: Annotated[
        str | None,
        typer.Option(
            metavar="alias,...",
            help="For triples: relations whose tail is another name of their head.",
        ),
    ] = None,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Lower the case of names.")
    ] = False,
    strip_symbols: Annotated[
        bool, typer.Option("--strip-symbols", help="Turn symbols in names into blanks.")
    ] = False,
    resolve_shared: Annotated[
        bool,
        typer.Option(
            "--resolve-shared",
            help="Keep a name that several concepts share in the one with the fewest names.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Build a knowledge base from ontology files of any format."""
    from biograft.config import from_mapping
    from biograft.kb import BuildConfig, build_store
    from biograft.progress import Progress
    from biograft.sources import SourceConfig

    reading = {
        "format": form,
        "languages": split_list(lang),
        "vocabularies": split_list(sab),
        "term_types": split_list(tty),
        "relations": split_list(relations),
        "keep_suppressed": keep_suppressed,
        "keep_codes": codes,
        "encoding": encoding,
        "language": language,
        "default_type": default_type,
        "columns": _columns(columns),
        "separator": separator,
        "same_as": split_list(same_as),
    }
    rules = {
        "lowercase": lowercase,
        "strip_symbols": strip_symbols,
        "resolve_shared": resolve_shared,
    }
    values = {
        "merge": merge,
        "types": split_list(types),
        "languages": split_list(lang),
        "names": rules,
    }
    described = [{"path": path, **reading} for path in sources]
    config = from_mapping(BuildConfig, {"sources": described, **values})
    if len(sources) == 1 and sources[0].endswith(".toml"):
        if config != BuildConfig(sources=(SourceConfig(path=Path(sources[0])),)):
            raise ConfigError(
                f"{sources[0]}: a build file stands alone; write what the options say into it"
            )
        config = _from_file(Path(sources[0]))
    report = build_store(config, out, overwrite=overwrite, progress=Progress(enabled=not quiet))
    if as_json:
        _print_json(report.to_json())
    else:
        print_report(report)


def _from_file(path: Path) -> BuildConfig:
    """Read a build from a TOML file; the paths in it are relative to its folder."""
    from biograft.config import from_mapping, load_toml
    from biograft.kb import BuildConfig
    from biograft.sources import STARTER

    values = load_toml(path)
    sources = values.get("sources")
    for source in sources if isinstance(sources, list) else []:
        place = source.get("path") if isinstance(source, dict) else None
        if isinstance(place, str) and place != STARTER:
            source["path"] = str(path.parent / place)
    return from_mapping(BuildConfig, values, f"{path}: ")


@app.command()
def formats(as_json: Json = False) -> None:
    """List the formats that can be read."""
    from biograft.sources import FORMATS

    for name, help_line in FORMATS.help().items():
        if as_json:
            _print_json({"format": name, "help": help_line})
        else:
            typer.echo(f"{name:12} {help_line}")


@app.command()
def info(
    store: Store,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare every file with its recorded hash.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what a knowledge base holds, where it came from and what was rejected."""
    from biograft.kb import KnowledgeBase

    base = KnowledgeBase.open(store)
    if verify:
        base.verify()
    if as_json:
        _print_json(base.info())
    else:
        print_info(base.info(), store)


@app.command()
def show(
    store: Store,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Any id of the concept.")],
    limit: Annotated[
        int,
        typer.Option(
            "-k",
            "--limit",
            metavar="N",
            min=0,
            help="Show at most so many names of a language and relations of a kind; 0: all.",
        ),
    ] = 10,
    as_json: Json = False,
) -> None:
    """Show a concept: names, definitions, types, ids and relations.

    An id that no concept has as its own shows all that carry it as a cross-reference.
    """
    from dataclasses import asdict

    from biograft.kb import KnowledgeBase

    base = KnowledgeBase.open(store)
    concepts = [] if identifier in base else base.by_xref(identifier)
    for concept in concepts or [base[identifier]]:
        related = base.relations(concept.id)
        if as_json:
            _print_json({**concept.to_json(), "relations": [asdict(r) for r in related]})
        else:
            print_concept(concept, related, limit)


@app.command(name="search")
def search_names(
    store: Store,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A name or a part of one.")],
    limit: Annotated[
        int,
        typer.Option("-k", "--limit", metavar="N", min=1, help="Show at most so many concepts."),
    ] = 10,
    lang: Annotated[
        str | None, typer.Option(metavar="en", help="Names in this language only.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search concepts by name."""
    from biograft.kb import KnowledgeBase, search
    from biograft.languages import language_code

    language = language_code(lang) if lang else None
    matches = search(KnowledgeBase.open(store), text, limit=limit, language=language)
    if as_json:
        for match in matches:
            _print_json(match.to_json())
    else:
        print_matches(matches, text)


@app.command()
def export(
    store: Store,
    out: Annotated[
        str, typer.Option("-o", "--out", metavar="FILE", help="File to write; '-' is stdout.")
    ],
    form: Annotated[
        str, typer.Option("--format", metavar="jsonl|biosyn|triples", help="What to write.")
    ] = "jsonl",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write a knowledge base out: everything as JSON lines, names as id||name, or triples."""
    from biograft.kb import KnowledgeBase, export as export_store
    from biograft.progress import Progress

    target = None if out == "-" else Path(out)
    progress = Progress(enabled=not quiet)
    base = KnowledgeBase.open(store)
    n_lines = export_store(base, target, form, overwrite=overwrite, progress=progress)
    if target is not None:
        typer.echo(f"{n_lines:,} lines written to {out}", err=True)


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")

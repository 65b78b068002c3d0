"""Write the reference pages, docs/reference/*.md, and tables of the guides, from the program.

    python tools/reference_pages.py          write them
    python tools/reference_pages.py --check  exit 1 if one of them is out of date

The commands are read from the command line's own help, the named parts from the registries, and
the routes from the OpenAPI description of the service. In a guide, a table between
``<!-- options of biograft link: --types -k -->`` and ``<!-- end of options -->`` has the rows of
these options, of all where none is named; in docs/zh in Chinese.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
_NOTE = "<!-- Written by tools/reference_pages.py (`make reference`); do not edit. -->\n"
_SPACE = re.compile(r"\s+")


def cell(text: object) -> str:
    """Return a text as it stands in a cell of a table."""
    return _SPACE.sub(" ", str(text)).strip().replace("|", "\\|").replace("<", "&lt;")


def table(head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> list[str]:
    """Return a table as lines; none without rows."""
    if not rows:
        return []
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows), ""]


# ---- commands


def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the commands in the order of the help, each with its words."""
    inner = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, each in inner.items():
        yield from walk(each, (*path, name))


def describe_commands() -> str:
    """Return the page of all commands."""
    from biograft.cli import app

    lines = [_NOTE, "# Commands", ""]
    lines += ["Every command takes `--help`. `biograft --install-completion` makes the shell"]
    lines += ["complete commands and options. Exit status 2 with one line on stderr is an error"]
    lines += ["that you can fix; 1 means that something was left out.", ""]
    for path, command in walk(typer.main.get_command(app), ("biograft",)):
        lines += [f"## {' '.join(path)}", "", *_paragraphs(command.help)]
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join([*path, *map(_argument, arguments), "[OPTIONS]"])
        lines += [f"```text\n{usage}\n```", ""]
        lines += table(
            ("argument", "meaning"), [(f"`{p.metavar or p.name}`", p.help) for p in arguments]
        )
        options = [p for p in command.params if p.param_type_name != "argument"]
        lines += table(("option", "meaning"), [(_option(p), p.help) for p in options])
    return "\n".join(lines)


def _paragraphs(text: str | None) -> list[str]:
    return [f"{_SPACE.sub(' ', part).strip()}\n" for part in (text or "").split("\n\n")]


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    return ", ".join(f"`{name}{value}`" for name in names)


# ---- tables of options in the guides

_TABLE = re.compile(
    r"(<!-- options of biograft ([\w -]+?)(?:: ([^>]*?))? -->\n)(.*?)(<!-- end of options -->)",
    re.DOTALL,
)
_COMMON = {"--help", "--kb", "--overwrite", "--quiet"}


def fill_tables(text: str, language: str) -> str:
    """Return a guide with its tables of options as the commands have them."""
    from biograft.catalogue import Catalogue
    from biograft.cli import app

    tree = {" ".join(path[1:]): c for path, c in walk(typer.main.get_command(app), ("biograft",))}
    translate = Catalogue.open("zh").help if language == "zh" else str
    head = ("选项", "含义") if language == "zh" else ("option", "meaning")

    def filled(match: re.Match[str]) -> str:
        begin, words, chosen, _, end = match.groups()
        wanted = set((chosen or "").split())
        options = [p for p in tree[words].params if p.param_type_name != "argument"]
        shown = [
            p
            for p in options
            if (wanted & {*p.opts, *p.secondary_opts} if wanted else True)
            and not _COMMON & set(p.opts)
        ]
        rows = [(_option(p), translate(_SPACE.sub(" ", p.help or ""))) for p in shown]
        return f"{begin}\n" + "\n".join(table(head, rows)) + f"\n{end}"

    return _TABLE.sub(filled, text)


def guides() -> Iterator[tuple[Path, str]]:
    """Yield the guides that have tables of options, each with its language."""
    for path in sorted(FOLDER.parent.rglob("*.md")):
        if "<!-- options of" in path.read_text(encoding="utf-8"):
            yield path, "zh" if path.parent.name == "zh" else "en"


# ---- named parts


def describe_parts() -> str:
    """Return the page of all registries and recipes."""
    from biograft.evaluation.gold import GOLD_FORMATS
    from biograft.kb.sources.format import FORMATS
    from biograft.linking.batches import ENGINES
    from biograft.linking.outputs.registry import OUTPUTS
    from biograft.metrics.linking import METRICS
    from biograft.models.checkpoints.layouts import LAYOUTS
    from biograft.models.encoder import POOLINGS
    from biograft.models.knowledge_layers import KNOWLEDGE_LAYERS
    from biograft.models.tasks.task import TASKS
    from biograft.recipe import RECIPE_KINDS, Recipe, shipped_recipes
    from biograft.text.formats.format import DOCUMENT_FORMATS
    from biograft.text.tasks.registry import TASK_FORMATS
    from biograft.training.linkers.recipes import LINKERS
    from biograft.training.objectives import OBJECTIVES
    from biograft.training.objectives.configs import LOSSES
    from biograft.training.pretraining.recipe import STREAMS

    registries: list[tuple[str, str, Any]] = [
        ("Formats of ontologies", "`biograft kb build --format`", FORMATS),
        ("Formats of documents", "`biograft link --format`, `biograft corpus`", DOCUMENT_FORMATS),
        ("Formats of findings", "`biograft link --to`", OUTPUTS),
        ("Formats of gold mentions", "`biograft evaluate link --format`", GOLD_FORMATS),
        ("Formats of task files", "`biograft finetune --format`", TASK_FORMATS),
        ("Linkers", "`linker` of a recipe", LINKERS),
        ("Tasks", "`task` of a recipe", TASKS),
        ("Streams of training data", "`stream.kind` of a recipe", STREAMS),
        ("Objectives", "`[objective.NAME]` of a recipe", OBJECTIVES),
        ("Alignment losses", "`[loss]` of a recipe", LOSSES),
        ("Knowledge layers", "`[knowledge.layers.NAME]` of a recipe", KNOWLEDGE_LAYERS),
        ("Poolings", "`encoder.pooling` of a recipe", POOLINGS),
        ("Metrics of linking", "`biograft evaluate link`", METRICS),
        ("Layouts of published weights", "`biograft checkpoint`", LAYOUTS),
        ("Engines of annotation", "`biograft corpus annotate --engine`", ENGINES),
    ]
    lines = [_NOTE, "# Names of parts", ""]
    lines += ["What options and recipes call by name. A package of your own can add to most of"]
    lines += ["these lists; see [contributing](../contributing.md).", ""]
    for title, use, registry in registries:
        parts = registry if isinstance(registry, dict) else registry.help()
        rows: list[tuple[object, ...]] = [(f"`{k}`", about) for k, about in parts.items()]
        lines += [f"## {title}", "", f"{use}.", "", *table(("name", "meaning"), rows)]
    lines += ["## Recipes", "", "`biograft recipe show NAME` prints one in full.", ""]
    for kind in RECIPE_KINDS:
        names = shipped_recipes(kind)
        lines += [f"### {kind}", ""]
        lines += table(("recipe", "description"), [(f"`{n}`", Recipe.load(n).about) for n in names])
    return "\n".join(lines)


# ---- routes


def describe_routes() -> str:
    """Return the page of the routes of the service."""
    from biograft.kb import build_starter
    from biograft.serve.app import create_app

    with tempfile.TemporaryDirectory() as folder:
        build_starter(Path(folder) / "kb")
        guarded: Any = create_app(Path(folder) / "kb")
        description: dict[str, Any] = guarded._app._app.openapi()
    lines = [_NOTE, "# Routes of the service", ""]
    lines += ["`biograft serve` describes itself at `/openapi.json`; [the service](../service.md)"]
    lines += ["has examples.", ""]
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            lines += [f"## {method.upper()} {path}", ""]
            lines += _paragraphs(route.get("description") or route.get("summary", ""))
            lines += table(
                ("parameter", "in", "type", "required", "meaning"),
                [_parameter(each) for each in route.get("parameters", ())],
            )
            lines += _body(route, description)
    return "\n".join(lines)


def _parameter(parameter: dict[str, Any]) -> tuple[object, ...]:
    needed = "yes" if parameter.get("required") else "no"
    kind = _type(parameter["schema"])
    about = parameter.get("description", "")
    return (f"`{parameter['name']}`", parameter["in"], kind, needed, about)


def _body(route: dict[str, Any], description: dict[str, Any]) -> list[str]:
    """Describe the fields of the body of a request."""
    content = route.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    if not reference:
        return []
    schema = description["components"]["schemas"][reference.rpartition("/")[2]]
    needed = schema.get("required", ())
    rows: list[tuple[object, ...]] = [
        (f"`{name}`", _type(each), "yes" if name in needed else "no", each.get("description", ""))
        for name, each in schema.get("properties", {}).items()
    ]
    return table(("field of the body", "type", "required", "meaning"), rows)


def _type(schema: dict[str, Any]) -> str:
    """Say of what type a value is."""
    if "anyOf" in schema:
        kinds = [_type(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kind = str(schema.get("type", "any"))
    return f"list of {_type(schema.get('items', {}))}" if kind == "array" else kind


PAGES = {"commands.md": describe_commands, "parts.md": describe_parts, "routes.md": describe_routes}


def out_of_date() -> list[str]:
    """Return the names of the pages that are not what the program says now."""
    stale = [name for name, describe in PAGES.items() if _read(name) != describe().rstrip() + "\n"]
    texts = ((path, path.read_text("utf-8"), language) for path, language in guides())
    return [*stale, *(path.name for path, text, lang in texts if fill_tables(text, lang) != text)]


def _read(name: str) -> str:
    path = FOLDER / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main() -> None:
    """Write or check the pages."""
    if "--check" in sys.argv[1:]:
        stale = out_of_date()
        sys.exit(f"out of date: {', '.join(stale)}; run: make reference" if stale else 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, describe in PAGES.items():
        (FOLDER / name).write_text(describe().rstrip() + "\n", encoding="utf-8")
    for path, language in guides():
        path.write_text(fill_tables(path.read_text("utf-8"), language), encoding="utf-8")


if __name__ == "__main__":
    main()

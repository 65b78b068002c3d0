"""Hooks of `make docs`: navigation, pages of the Python API, links out of docs/, assets."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src"
_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?\)")
_OUTSIDE_ASSET = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^\s>]*"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|icon))"
    r"[^>]*\bhref=[\"']?(?:https?:)?//[^\s>]*",
)
"""What a browser loads from another host when it opens a page; links that one clicks are none."""
_CODE_WITH_BAR = re.compile(r"`([^`]*\\\|[^`]*)`")
_IMPORT = re.compile(r"(?:@import|url\()\s*[\"']?https?://")


def listed(nav: Any) -> list[str]:
    """Return the pages of a navigation, in order."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in listed(part)]


def title(page: Path) -> str:
    """Return the first heading of a page."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else page.stem


def exported(package: Path) -> Iterator[tuple[str, str]]:
    """Yield the public names of a package, each with the module that it is from."""
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    for block in tree.body:
        for node in block.body if isinstance(block, ast.If) else ():
            if isinstance(node, ast.ImportFrom):
                yield from ((each.asname or each.name, str(node.module)) for each in node.names)


def api_pages() -> dict[str, str]:
    """Return a page for each package that exports names, by its file: what mkdocstrings reads."""
    pages = {}
    for file in sorted((SOURCE / "biograft").rglob("__init__.py")):
        names = sorted(exported(file.parent))
        package = ".".join(file.parent.relative_to(SOURCE).parts)
        if names:
            parts = [f"::: {module}.{name}" for name, module in names]
            pages[f"reference/python/{package}.md"] = "\n\n".join([f"# {package}", *parts]) + "\n"
    return pages


def complete(nav: list[Any]) -> list[Any]:
    """Put the pages that are listed nowhere into the sections that are empty."""
    known = set(listed(nav))
    rest: dict[str, list[Any]] = {"Decisions": [], "中文": [], "More": []}
    rest["Python"] = [{Path(name).stem: name} for name in api_pages()]
    for page in sorted(DOCS.rglob("*.md")):
        name = page.relative_to(DOCS).as_posix()
        if name not in known:
            section = {"decisions": "Decisions", "zh": "中文"}.get(name.partition("/")[0], "More")
            rest[section].append({title(page): name})
    return [filled for entry in nav if (filled := _fill(entry, rest)) is not None]


def _fill(entry: Any, rest: dict[str, list[Any]]) -> Any:
    """Fill an entry, and those within; None for a section in which nothing is."""
    if isinstance(entry, str):
        return entry
    ((name, inner),) = entry.items()
    if isinstance(inner, str):
        return entry
    filled = [each for part in inner if (each := _fill(part, rest)) is not None]
    return {name: filled + rest.get(name, [])} if filled or rest.get(name) else None


def within(markdown: str, page: str) -> str:
    """Turn the links of a page that lead out of docs/ into text."""

    def replace(match: re.Match[str]) -> str:
        target = Path((DOCS / page).parent / match[2]).resolve()
        if target == ROOT / "README.md":
            return f"](index.md{match[3] or ''})" if "/" not in page else "](../index.md)"
        is_page = target.is_relative_to(DOCS) and not target.is_dir()
        return match[0] if is_page else "](#)"

    replaced = _LINK.sub(replace, markdown)
    return re.sub(r"\[([^\]]+)\]\(#\)", r"\1", replaced)


def show_bars(markdown: str) -> str:
    """Write code with an escaped bar in a table as HTML: the escape would be shown."""

    def as_html(match: re.Match[str]) -> str:
        text = html.escape(match[1].replace("\\|", "|")).replace("|", "&#124;")
        return f"<code>{text}</code>"

    lines = markdown.split("\n")
    return "\n".join(
        _CODE_WITH_BAR.sub(as_html, line) if line.startswith("|") else line for line in lines
    )


def outside_assets(site: Path) -> list[str]:
    """Return what the pages of a built site would load from other hosts."""
    found = []
    for page in sorted(site.rglob("*.html")):
        found += [
            f"{page.name}: {tag[:120]}" for tag in _OUTSIDE_ASSET.findall(page.read_text("utf-8"))
        ]
    for sheet in sorted(site.rglob("*.css")):
        found += [f"{sheet.name}: {tag}" for tag in _IMPORT.findall(sheet.read_text("utf-8"))]
    return found


# ---- what mkdocs calls


def on_config(config: Any) -> Any:
    """Complete the navigation."""
    config.nav = complete(config.nav)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the changelog, which is in the folder above, and the pages of the Python API."""
    from mkdocs.structure.files import File

    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](site/")
    text = re.sub(r"\[([^\]]+)\]\((?!site/)[^):]*\)", r"\1", text).replace("](site/", "](")
    for name, content in {"changelog.md": text, **api_pages()}.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mend the links and tables of a page."""
    return show_bars(within(markdown, page.file.src_uri))


def on_post_build(config: Any) -> None:
    """Refuse a site that loads anything from another host."""
    from mkdocs.exceptions import PluginError

    if found := outside_assets(Path(config.site_dir)):
        raise PluginError("the site would load from elsewhere: " + "; ".join(found[:5]))

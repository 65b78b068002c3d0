"""The documentation as a whole: links, navigation, generated pages, lists of packages."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    page for folder in (DOCS, ROOT / "lab", ROOT / "benchmarks") for page in folder.rglob("*.md")
) + sorted(ROOT.glob("*.md"))


def tool(name):
    """Import a script of tools/."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def navigation():
    yaml = pytest.importorskip("yaml")
    text = re.sub(r"^ *slugify:.*\n", "", (ROOT / "mkdocs.yml").read_text("utf-8"), flags=re.M)
    return yaml.safe_load(text)["nav"]


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    site = tool("documentation_site")
    pages = site.listed(site.complete(navigation()))
    assert len(pages) == len(set(pages))
    in_folder = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert set(pages) == in_folder | {"changelog.md"} | set(site.api_pages())
    assert (
        "::: biograft.kb.store.KnowledgeBase" in site.api_pages()["reference/python/biograft.kb.md"]
    )


def anchors(page):
    """Return the anchors of the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain}


@pytest.mark.parametrize("name", ["architecture.md", "contributing.md"])
def test_files_of_the_code_that_a_page_names_exist(name):
    text = re.sub(r"^```.*?^```", "", (DOCS / name).read_text("utf-8"), flags=re.M | re.S)
    code = ROOT / "src" / "biograft"
    rooms = {folder.name for folder in code.iterdir()} | {"tests", "lab", "docs"}
    named = re.findall(r"`(\w[\w/]*/[\w/]*(?:\.\w+)?|\w+\.py)`", text)
    missing = [
        each
        for each in named
        if ("/" not in each and not list(code.rglob(each)))
        or (
            each.split("/")[0] in rooms
            and not (code / each).exists()
            and not (ROOT / each).exists()
        )
    ]
    assert len(named) > 10
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings_that_exist(page):
    """Two links of the guides led nowhere."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    dead = []
    for target, section in re.findall(r"\]\(([^()#\s]*)(?:#([^()\s]+))?\)", text):
        if "://" in target or target.startswith("mailto:"):
            continue
        other = (page.parent / target).resolve() if target else page
        if not other.exists() or (section and section not in anchors(other)):
            dead.append(f"{target}#{section}")
    assert not dead


def test_links_out_of_the_documentation_become_text():
    within = tool("documentation_site").within
    assert within("[a](../benchmarks/README.md) [b](linking.md#x)", "mapping.md") == (
        "a [b](linking.md#x)"
    )
    assert within("[start](../../README.md)", "how-to/csv.md") == "[start](../index.md)"


def test_bars_of_code_in_tables_are_shown():
    show = tool("documentation_site").show_bars
    table = "| `--to a\\|b<c>` | `x` |"
    assert show(table) == "| <code>--to a&#124;b&lt;c&gt;</code> | `x` |"
    assert show("`a\\|b` in text") == "`a\\|b` in text"


def test_what_a_page_loads_from_elsewhere_is_found(tmp_path):
    find = tool("documentation_site").outside_assets
    page = tmp_path / "a.html"
    page.write_text(
        '<a href="https://x.org">x</a><script src="b.js"></script><link rel="next" href="//x.org">'
    )
    assert find(tmp_path) == []
    for asset in (
        '<script async src="https://x.org/a.js"></script>',
        "<img src=//x.org/a.png>",
        '<link rel="stylesheet" href="https://x.org/a.css">',
        '<link href="https://x.org/font" rel="preload">',
    ):
        page.write_text(asset)
        assert len(find(tmp_path)) == 1, asset


def test_reference_pages_are_up_to_date():
    """``make reference`` writes them."""
    pytest.importorskip("fastapi")
    assert tool("reference_pages").out_of_date() == []


def test_packages_are_listed_with_version_and_licence():
    """``make constraints licences`` writes the lists."""
    groups = tool("packages").declared().values()
    declared = {requirement.name.lower() for group in groups for requirement in group}
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    licences = (DOCS / "licences.md").read_text("utf-8")
    for name in (each.replace(".", "-").replace("_", "-") for each in declared - {"biograft"}):
        assert re.search(rf"^{name}==\d", constraints, re.MULTILINE), name
        assert re.search(rf"^\| {name} \| [^|]+ \| [^|]+ \|", licences, re.MULTILINE), name


def test_the_citation_names_the_five_papers():
    yaml = pytest.importorskip("yaml")
    import biograft

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == biograft.__version__
    assert len(cited["references"]) == 5
    assert all(each["authors"] and each["title"] and each["year"] for each in cited["references"])


def test_the_container_runs_without_rights_and_is_watched():
    lines = (ROOT / "Containerfile").read_text("utf-8")
    assert re.search(r"^USER \d+$", lines, re.MULTILINE)
    assert "HEALTHCHECK" in lines
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for copied in re.findall(r"^COPY (?!--)(.+) \S+$", lines, re.MULTILINE):
        for name in copied.split():
            assert (ROOT / name).exists()
            assert f"!{name}" in ignored

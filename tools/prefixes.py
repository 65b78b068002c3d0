"""Write the registry of prefixes that ships with biograft, from the bioregistry package.

    python tools/prefixes.py                              (needs: pip install bioregistry)

A line is a prefix and its namespaces, the first of which its ids are expanded to. Left out are
another rule covers, resolvers that accept any registered prefix, and namespaces that end within a
word, and further addresses of search pages.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src/biograft/kb/prefixes.tsv"
_LEFT_OUT = re.compile(
    r"https?://(?:www\.)?(?:(?:identifiers\.org|n2t\.net|bioregistry\.io|bio2rdf\.org)/[\w.-]+[:/]$"
    r"|bioregistry\.io/|scholia\.toolforge\.org/"
    r"|(?:www\.)?(?:github|gitlab|bitbucket)\.(?:com|org)/$)"
)
_ENDS = "/#_=:?"


def _key(space: str) -> str:
    return re.sub(r"^https?://(?:www\.)?", "", space)


def main() -> None:
    """Write the table."""
    import bioregistry  # type: ignore[import-not-found,unused-ignore]

    resources = {resource.prefix: resource for resource in bioregistry.resources()}
    owners: dict[str, str] = {}
    lines = []
    for record in sorted(bioregistry.get_default_converter().records, key=lambda each: each.prefix):
        resource = resources.get(record.prefix)
        prefix = (resource.get_preferred_prefix() if resource else None) or record.prefix
        spaces: dict[str, str] = {}
        for space in (record.uri_prefix, *sorted(record.uri_prefix_synonyms)):
            key, is_page = _key(space), space != record.uri_prefix and "?" in space
            if space[-1] not in _ENDS or "/" not in key or is_page or _LEFT_OUT.match(space):
                continue
            if owners.setdefault(key, prefix) == prefix:
                spaces.setdefault(key, space)
        lines.append("\t".join([prefix, *spaces.values()]))
    source = f"Bioregistry {version('bioregistry')} (CC0, https://bioregistry.io)"
    head = f"# {source}, by tools/prefixes.py"
    TARGET.write_text("\n".join([head, *lines]) + "\n", "utf-8")
    print(f"wrote {len(lines):,} prefixes")


if __name__ == "__main__":
    main()

"""biograft: names in text, terms of a column, assertion status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PACKAGES = ("biograft",)


def open_text(work: Path, settings: dict[str, Any]) -> Callable[[str], Any]:
    """Open the index of `biograft index`."""
    from biograft.linking import Linker

    linker = Linker.open(work / "kb", work / "index", k=1, mentions="find", **settings)
    return lambda text: [(m.start, m.end, m.concept) for m in linker(text).mentions if m.concept]


def open_terms(work: Path, settings: dict[str, Any]) -> Callable[[str], str | None]:
    """Open the index of `biograft index` over the second vocabulary."""
    from biograft.linking import Linker

    linker = Linker.open(work / "kb_terms", work / "index_terms", k=1)
    return lambda term: next((each.concept for each in linker.link_mentions([term])[0]), None)


def open_status(work: Path, settings: dict[str, Any]) -> Callable[[str, Sequence[Any]], Any]:
    """Load the rules."""
    from biograft.clinical import RuleAssertions

    rules = RuleAssertions("en")
    return lambda text, spans: [list(each.flags) for each in rules.assert_status(text, spans)]

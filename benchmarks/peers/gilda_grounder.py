"""gilda with a grounder of its own terms: annotation of text, and grounding of terms.

Its models that disambiguate names of genes and proteins are a download, and stay out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker import read_json

PACKAGES = ("gilda",)


def _grounder(work: Path, names: str) -> Any:
    import gilda
    from gilda.process import normalize
    from gilda.term import Term

    seen: dict[str, str] = {}
    terms = []
    for concept, name in read_json(work, names):
        status = "synonym" if concept in seen else "name"
        entry = seen.setdefault(concept, name)
        if normalize(name).strip():
            terms.append(Term(normalize(name), name, "X", concept, entry, status, "file"))
    grounder = gilda.make_grounder(terms)
    grounder.gilda_disambiguators = {}
    return grounder


def open_text(work: Path, settings: dict[str, Any]) -> Callable[[str], Any]:
    """Return gilda's annotation with the best match of each span."""
    from gilda.ner import annotate

    grounder = _grounder(work, "names.json")
    return lambda text: [
        (each.start, each.end, each.matches[0].term.id)
        for each in annotate(text, grounder=grounder)
    ]


def open_terms(work: Path, settings: dict[str, Any]) -> Callable[[str], str | None]:
    """Return gilda's grounding."""
    grounder = _grounder(work, "names_terms.json")
    return lambda term: next((match.term.id for match in grounder.ground(term)), None)

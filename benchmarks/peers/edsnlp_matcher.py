"""EDS-NLP's matcher of terms, in lower case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker import read_json

PACKAGES = ("edsnlp", "spacy")


def open_text(work: Path, settings: dict[str, Any]) -> Callable[[str], Any]:
    """Add the names of each concept under its id."""
    import edsnlp

    terms: defaultdict[str, list[str]] = defaultdict(list)
    for concept, name in read_json(work, "names.json"):
        terms[concept].append(name)
    nlp = edsnlp.blank("eds")
    nlp.add_pipe("eds.matcher", config={"terms": dict(terms), "attr": "LOWER"})
    return lambda text: [(e.start_char, e.end_char, e.label_) for e in nlp(text).ents]

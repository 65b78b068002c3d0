"""spaCy's PhraseMatcher on lower-cased tokens; of overlapping names the longest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker import read_json

PACKAGES = ("spacy",)


def open_text(work: Path, settings: dict[str, Any]) -> Callable[[str], Any]:
    """Add every name to a matcher."""
    import spacy
    from spacy.matcher import PhraseMatcher
    from spacy.util import filter_spans

    nlp = spacy.blank("en")
    matcher = PhraseMatcher(nlp.vocab, attr="LOWER")
    for concept, name in read_json(work, "names.json"):
        matcher.add(concept, [nlp.make_doc(name)])

    def find(text: str) -> list[tuple[int, int, str]]:
        spans = filter_spans(matcher(nlp.make_doc(text), as_spans=True))
        return [(span.start_char, span.end_char, span.label_) for span in spans]

    return find

"""medspaCy: a target rule for each name, and ConText."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spacy_status import mark
from worker import read_json

PACKAGES = ("medspacy", "spacy")


def open_text(work: Path, settings: dict[str, Any]) -> Callable[[str], Any]:
    """Add a rule for each name."""
    import spacy
    from medspacy.ner import TargetRule

    nlp = spacy.blank("en")
    matcher: Any = nlp.add_pipe("medspacy_target_matcher")
    matcher.add([TargetRule(name, concept) for concept, name in read_json(work, "names.json")])
    return lambda text: [(e.start_char, e.end_char, e.label_) for e in nlp(text).ents]


def open_status(work: Path, settings: dict[str, Any]) -> Callable[[str, Sequence[Any]], Any]:
    """Return the negation and history of ConText."""
    import medspacy.context  # noqa: F401  # registers the component
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("medspacy_context")

    def flags(entity: Any) -> list[str]:
        said = {"negated": entity._.is_negated, "historical": entity._.is_historical}
        return [name for name, is_set in said.items() if is_set]

    return mark(nlp, flags)

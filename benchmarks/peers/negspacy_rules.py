"""negspacy, with its clinical terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spacy_status import mark

PACKAGES = ("negspacy", "spacy")


def open_status(work: Path, settings: dict[str, Any]) -> Callable[[str, Sequence[Any]], Any]:
    """Return its negation; it knows no other flag."""
    import negspacy.negation  # noqa: F401  # registers the component
    import spacy
    from negspacy.termsets import termset

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("negex", config={"neg_termset": termset("en_clinical").get_patterns()})
    return mark(nlp, lambda entity: ["negated"] if entity._.negex else [])

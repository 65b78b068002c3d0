"""Shared by the peers on spaCy that say the status of given spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def mark(
    nlp: Any, flags: Callable[[Any], list[str]]
) -> Callable[[str, Sequence[Sequence[int]]], list[list[str]]]:
    """Return a function that runs a pipeline on a sentence whose spans are its entities.

    Args:
        nlp: The pipeline.
        flags: Returns the flags of an entity.
    """

    def answer(text: str, spans: Sequence[Sequence[int]]) -> list[list[str]]:
        from spacy.util import filter_spans

        doc = nlp.make_doc(text)
        marked = [doc.char_span(*span, label="X", alignment_mode="expand") for span in spans]
        doc.set_ents(filter_spans([span for span in marked if span is not None]))
        for _, component in nlp.pipeline:
            doc = component(doc)
        found = {token.i: flags(entity) for entity in doc.ents for token in entity}
        return [found.get(span.start, []) if span else [] for span in marked]

    return answer

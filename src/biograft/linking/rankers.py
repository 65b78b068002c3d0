"""Where trained linkers join: they rank again what the search has gathered.

A trained linker is a folder with a ``manifest.json`` whose ``format`` is registered here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from biograft.errors import StoreError, nearest
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate
from biograft.linking.gathering import Gathered
from biograft.manifests import MANIFEST, peek
from biograft.registry import Registry


class Context(NamedTuple):
    """Where a mention stands: the whole text and the place in it; all empty if not known."""

    text: str = ""
    start: int = 0
    end: int = 0


class CandidateRanker(Protocol):
    """Whatever ranks gathered names by its own lights."""

    name: str
    uses_context: bool
    """Whether the answer depends on the context; if not, equal texts are asked once."""

    def rank_candidates(
        self, texts: Sequence[str], gathered: Gathered, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Give the candidates of each text, best first: one for a name, or one for a concept."""


class OpenModel(Protocol):
    """Opens a trained linker of one format for a store."""

    def __call__(self, folder: Path, kb: KnowledgeBase) -> CandidateRanker:
        """Open the folder."""


MODELS: Registry[OpenModel] = Registry(
    "format of trained linkers",
    {
        "biograft-ranker": (
            "biograft.linking.supervised.ranker:open_trained_ranker",
            "candidates ranked by what mentions taught",
        ),
        "biograft-context-ranker": (
            "biograft.linking.rerank.reranker:open_context_reranker",
            "first candidates ranked again by context",
        ),
    },
)


def open_model(folder: str | Path, kb: KnowledgeBase) -> CandidateRanker:
    """Open a trained linker by the format that its manifest states."""
    found = peek(Path(folder) / MANIFEST).get("format")
    if not isinstance(found, str):
        raise StoreError(
            f"{folder}: no trained linker (no {MANIFEST} there says what it is); expected the "
            "folder that `biograft finetune` made"
        )
    if found not in MODELS:
        known = nearest(found, MODELS)
        raise StoreError(f"{folder}: no trained linker but {found!r}; {known}")
    return MODELS.load(found)(Path(folder), kb)

"""Mentions whose concepts are known: what trained linkers learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from biograft.artifacts import MANIFEST, peek
from biograft.errors import MissingExtraError, StoreError, nearest
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate
from biograft.linking.fusion import Gathered
from biograft.registry import Registry

if TYPE_CHECKING:
    from biograft.training import TrainingResult


@dataclass(frozen=True, slots=True)
class LabelledMention:
    """A mention, taken by itself, and the ids of the concepts that are right for it."""

    text: str
    concepts: frozenset[str]
    document: str = ""
    """Where it stands; mentions of one document are never on both sides of a split."""


@dataclass(frozen=True, slots=True)
class TrainedLinker:
    """What a run gave, and how it does on the mentions held out."""

    run: Path
    model: Path
    """Folder of the linker."""
    training: TrainingResult
    report: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Give the result as plain values."""
        places = {"run": str(self.run), "model": str(self.model)}
        return {**places, "finished": self.training.finished, **self.figures()}

    def figures(self) -> dict[str, Any]:
        """Give what is told of the run itself."""
        return {
            "step": self.training.step,
            "n_steps": self.training.n_steps,
            "loss": self.training.loss,
            "seconds": round(self.training.seconds, 3),
            **self.report,
        }


class Context(NamedTuple):
    """Where a mention stands: the whole text and the place in it; all empty if not known."""

    text: str = ""
    start: int = 0
    end: int = 0


class CandidateRanker(Protocol):
    """Whatever ranks gathered names by its own lights."""

    @property
    def name(self) -> str:
        """What gives the scores."""

    @property
    def uses_context(self) -> bool:
        """Whether the answer depends on the context; if not, equal texts are asked once."""

    def rank_candidates(
        self, texts: Sequence[str], gathered: Gathered, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Give the candidates of each text, best first: one for a name, or one for a concept."""


@runtime_checkable
class NameFinder(Protocol):
    """A ranker that finds names of the store by itself."""

    @property
    def needs_search(self) -> bool:
        """Whether it also wants to know what a search gathered."""

    def in_languages(self, languages: tuple[str, ...]) -> CandidateRanker:
        """Give the ranker that finds names in some languages only."""


def needs_search(ranker: CandidateRanker | None) -> bool:
    """Whether names have to be gathered before anyone can rank them."""
    return ranker.needs_search if isinstance(ranker, NameFinder) else True


class OpenModel(Protocol):
    """Opens a trained linker of one format for a store."""

    def __call__(self, folder: Path, kb: KnowledgeBase) -> CandidateRanker:
        """Open the folder."""


GENERATIVE_FORMAT = "biograft-generative-linker"
"""The format under which a model that reads and writes is opened, though it says nothing."""

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
        GENERATIVE_FORMAT: (
            "biograft.linking.generative.ranker:open_generative_ranker",
            "names written by a model that reads the mention in its text",
        ),
    },
)


def open_model(
    folder: str | Path, kb: KnowledgeBase, languages: tuple[str, ...] = ()
) -> CandidateRanker:
    """Open a trained linker by the format that its manifest states.

    The folder of an encoder-decoder, pre-trained or imported, is one too. ``languages`` are those
    of the names to be found; none: all.
    """
    found = peek(Path(folder) / MANIFEST).get("format")
    if found is None and peek(Path(folder) / "config.json").get("is_encoder_decoder"):
        found = GENERATIVE_FORMAT
    if not isinstance(found, str):
        raise StoreError(
            f"{folder}: no trained linker (no {MANIFEST} there says what it is); expected the "
            "folder that `biograft finetune` made"
        )
    if found not in MODELS:
        known = nearest(found, MODELS)
        raise StoreError(f"{folder}: no trained linker but {found!r}; {known}")
    try:
        opener = MODELS.load(found)
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "this trained linker") from error
    ranker = opener(Path(folder), kb)
    if languages and isinstance(ranker, NameFinder):
        return ranker.in_languages(languages)
    return ranker

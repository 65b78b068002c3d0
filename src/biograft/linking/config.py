"""Configuration of a linker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.config import AtLeast, Choice, Config, Range
from biograft.linking.dense.config import SIMILARITIES

SEARCHES = ("lexical", "dense", "lexical+dense")
"""Kinds of search over the names of a store."""


DETECTIONS = ("names", "model", "both")
"""Ways to find mentions in text."""


MENTIONS = ("given", "find", "both")
"""Handling of mentions that documents have."""


@dataclass(frozen=True, kw_only=True)
class LinkerConfig(Config):
    """Settings of a linker."""

    k: Annotated[int, AtLeast(1)] = 5
    """Number of candidates returned for each mention."""
    depth: Annotated[int, AtLeast(1)] = 64
    """Number of names retrieved from each generator."""
    threshold: Annotated[float, Range()] | None = None
    """Answers with a lower probability (without calibration: a lower score) are NIL; 0: none is.
    None: the threshold of the calibration, or without one the default of the search."""
    misspelt: bool = True
    """Find names of the store with spelling errors in text, too."""
    abbreviations: bool = True
    """Expand abbreviations that are defined in the document."""
    appositions: bool = True
    """Look up a mention that is no name by the name it stands beside: *phlorizin (P)*."""
    composites: bool = True
    """Split composite mentions into their parts."""
    short_forms: bool = True
    """Expand clinical short forms that no text defines (*HTN*), leave headings out, and score names
    in few capitals lower where nothing in the document supports them."""
    coordinations: bool = True
    """Find coordinated names in text, *left and right atrial enlargement*."""
    assertions: bool = True
    """Say of each mention in text whether it is negated, uncertain, historical, and so on."""
    types: tuple[str, ...] = ()
    """Answer with concepts of these semantic types only, by code or label; empty means all."""
    sources: tuple[str, ...] = ()
    """Answer with concepts that have a name from these vocabularies only; empty means all."""
    explain: bool = False
    """Say for each mention why its first candidate came first."""
    languages: tuple[str, ...] = ()
    """Search names in these languages only; empty means all."""
    stop_words: tuple[str, ...] = ()
    """Names that the linker never takes for a mention when it detects mentions itself."""
    mentions: Annotated[str, Choice(*MENTIONS)] | None = None
    """Link the mentions that documents have (``given``), ``find`` mentions in their texts instead,
    or ``both``: those found count where they overlap none given. None: link the given mentions of
    documents that have some, and find those of the others; a detector finds all."""
    detection: Annotated[str, Choice(*DETECTIONS)] | None = None
    """Detection of mentions in text: by the ``names`` of the store, by a trained ``model``, or by
    ``both``: names are mentions where they overlap none of the model. None: by the model, if there
    is one."""
    mention_types: tuple[str, ...] = ()
    """Types of the mentions that a trained model finds; empty means all."""
    search: Annotated[str, Choice(*SEARCHES)] | None = None
    """Kind of search: ``lexical``, ``dense`` or ``lexical+dense``. None: lexical for names that are
    found in text, unless a weight, a similarity, a calibration or a ranker is given; all of the
    index for terms and given mentions."""
    lexical_weight: Annotated[float, Range(min=0, max=1)] | None = None
    """Weight of lexical search beside dense search, which has the rest; None: that of the index."""
    similarity: Annotated[str, Choice(*SIMILARITIES)] | None = None
    """Similarity of dense search, ``cosine`` or ``dot``; None means that of the index."""

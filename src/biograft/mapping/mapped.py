"""Shared parts of mapping formats: settings of one run, and its proposals as decisions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking import Linker
from biograft.linking.outputs.report import ConceptIds
from biograft.mapping.decisions import Decision
from biograft.mapping.earlier import CHANGES, SEEN
from biograft.mapping.terms import EXACT, TermMapping
from biograft.text import fold_lines

_FINGERPRINT = 16
"""Characters of the hash of a store that tell it from others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingRun:
    """One mapping of a table, as its outputs need it."""

    kb: KnowledgeBase
    ids: ConceptIds
    k: int = 3
    """Maximum concepts given for a term."""
    source: str = "source"
    """Name or IRI of the vocabulary of the source terms."""
    has_context: bool = False
    """Whether terms have columns of context."""
    justification: str = "LexicalMatching"
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def store(self) -> str:
        """Identity of the store: the beginning of the hash of its content."""
        return store_fingerprint(self.kb)[:_FINGERPRINT]

    @property
    def kb_name(self) -> str:
        """Name of the knowledge base: that of its folder."""
        return self.kb.folder.resolve().name


def justification_of(linker: Linker) -> str:
    """Return how a linker finds concepts, in the words of SEMAPV."""
    kinds = set(linker.search.weights) if linker.search else set()
    if linker.ranker is None and kinds == {"lexical"}:
        return "LexicalMatching"
    is_dense = linker.ranker is None and kinds == {"dense"}
    return "SemanticSimilarityThresholdMatching" if is_dense else "CompositeMatching"


def as_decision(mapping: TermMapping, run: MappingRun, store: str) -> Decision:
    """Return an earlier decision that stands, or the proposal of this run."""
    term, decision = mapping.term, mapping.decision
    if mapping.flag == SEEN and decision is not None:
        return replace(decision, term=term.text, code=term.code, frequency=term.frequency)
    comment = ""
    if mapping.flag in CHANGES and decision is not None:
        comment = f"{mapping.flag} since it was decided: {decision.concept} {decision.name}".strip()
    return Decision(
        term=term.text,
        code=term.code,
        context=term.context_text,
        concept="" if mapping.concept is None else run.ids.chosen(mapping.concept),
        name=fold_lines(mapping.name or ""),
        relation="exact" if mapping.flag == EXACT or mapping.concept is None else "related",
        time=run.time.date().isoformat(),
        comment=comment or ("" if mapping.flag in ("", EXACT) else mapping.flag),
        probability=mapping.probability,
        store=store,
        frequency=term.frequency,
    )

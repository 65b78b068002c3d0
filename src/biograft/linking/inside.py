"""Names inside terms, such as *asthma* in *J45.909 asthma*: when they answer the whole term."""

from __future__ import annotations

from biograft.kb import KnowledgeBase

PART = "name inside the term"
"""Generator in the evidence of such a name."""
STATUSES = ("present", "possible", "historical")
"""Statuses with which a name inside a term may answer it."""


def replaces(kb: KnowledgeBase, part: str | None, whole: str | None) -> bool:
    """Return True if the name inside a term says something else than the term as a whole.

    Args:
        kb: The knowledge base.
        part: Concept of the name inside.
        whole: Concept of the whole; None: it has none.
    """
    return part is not None and (whole is None or not kb.is_a(whole, part))

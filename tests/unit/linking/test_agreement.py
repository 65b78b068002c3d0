"""Agreement within a document: what is decided once for each form."""

from __future__ import annotations

from biograft.kb import KnowledgeBase, build_starter
from biograft.linking import Candidate, DocumentState, MentionState
from biograft.linking.lexicon import StoreLexicon
from biograft.linking.steps import NO_SUPPORT, Agree
from biograft.text.documents import Document, Mention


def test_mentions_of_one_form_share_their_candidates(tmp_path):
    """Each mention had its own: a text of 50 MB took 4 GB."""
    build_starter(tmp_path / "KB")
    kb = KnowledgeBase.open(tmp_path / "KB")
    candidates = (Candidate(kb.id_at(0), "rheumatoid arthritis", "RA", 1.0),)
    mentions = [
        MentionState(Mention(start, start + 2, "RA"), "name", "RA", candidates=candidates)
        for start in (0, 5, 9)
    ]
    Agree(kb, StoreLexicon(kb))([DocumentState(Document("1", "RA"), mentions=mentions)])
    first, *others = mentions
    assert (first.candidates[0].score, first.support) == (0.5, NO_SUPPORT)
    assert all(other.candidates is first.candidates for other in others)

"""Agreement within a document: what is decided once for each form."""

from __future__ import annotations

from biograft.documents import Mention
from biograft.linking import Candidate, Lookup, agree
from biograft.linking.agreement import NO_SUPPORT


def test_mentions_of_one_form_share_their_candidates():
    """Each mention had its own: a text of 50 MB took 4 GB."""
    candidates = (Candidate("D1", "rheumatoid arthritis", "RA", 1.0),)
    lookups = [Lookup(Mention(start, start + 2, "RA"), "RA") for start in (0, 5, 9)]
    (first, why), *others = agree(lookups, [candidates] * 3, lambda *_: False)
    assert (first[0].score, why) == (0.5, NO_SUPPORT)
    assert all(found is first for found, _ in others)

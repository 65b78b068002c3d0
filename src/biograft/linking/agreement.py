"""Agreement within a document: what its certain mentions say about short and ambiguous ones.

A short form in capitals, *RA*, or a name that several concepts share, means the concept that the
document names without doubt elsewhere. A short form that nothing supports is scored lower: the
names of a store that are three capitals long are mostly something else in a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from biograft.linking.candidates import Candidate
from biograft.linking.fusion import SAME_NAME
from biograft.linking.lookups import AS_WRITTEN, Lookup
from biograft.linking.short_forms import is_short

UNSUPPORTED = 0.5
"""The score of a short form that nothing in the document supports is multiplied by this."""

Candidates = tuple[Candidate, ...]
Agrees = Callable[[str, str], bool]
"""Whether the list of short forms says that a short form means a concept (its id)."""

NAMED_ELSEWHERE = "named elsewhere in the document"
PREFERRED = "preferred name of the concept"
IN_LIST = "in the list of clinical short forms"
NO_SUPPORT = "short form without support: score halved"


def agree(
    lookups: Sequence[Lookup], answers: Sequence[Candidates], agrees: Agrees
) -> list[tuple[Candidates, str]]:
    """Return the candidates of each lookup as the document decides, and why it does."""
    certain = {
        candidates[0].concept
        for lookup, candidates in zip(lookups, answers, strict=True)
        if _is_certain(lookup, candidates)
    }
    decided: dict[tuple[str, str, int], tuple[Candidates, str]] = {}  # a long text repeats itself
    found = []
    for lookup, candidates in zip(lookups, answers, strict=True):
        key = (lookup.form, lookup.how, id(candidates))
        if key not in decided:
            decided[key] = _decide(lookup, candidates, certain, agrees)
        found.append(decided[key])
    return found


def _is_certain(lookup: Lookup, candidates: Candidates) -> bool:
    if not candidates or _is_bare(lookup):
        return False
    return candidates[0].score >= float(SAME_NAME) and not candidates[0].tied


def _is_bare(lookup: Lookup) -> bool:
    """Whether a lookup is a short form that was not expanded."""
    return lookup.how == AS_WRITTEN and is_short(lookup.form)


def _decide(
    lookup: Lookup, candidates: Candidates, certain: set[str], agrees: Agrees
) -> tuple[Candidates, str]:
    if not candidates or candidates[0].score < float(SAME_NAME):
        return candidates, ""
    first, is_bare = candidates[0], _is_bare(lookup)
    if not is_bare and not first.tied:
        return candidates, ""
    same = [each for each in candidates if each.score >= float(SAME_NAME)]
    named = next((each for each in same if each.concept in certain), None)
    if named is not None:
        others = tuple(each for each in candidates if each is not named)
        return (
            replace(named, tied=()),
            *(replace(each, tied=()) for each in others),
        ), NAMED_ELSEWHERE
    if not is_bare:
        return candidates, ""
    if first.name.casefold() == first.concept_name.casefold():
        return candidates, PREFERRED
    if agrees(lookup.form, first.concept):
        return candidates, IN_LIST
    return tuple(map(_halved, candidates)), NO_SUPPORT


def _halved(candidate: Candidate) -> Candidate:
    chance = candidate.probability
    return replace(
        candidate,
        score=candidate.score * UNSUPPORTED,
        probability=None if chance is None else chance * UNSUPPORTED,
    )

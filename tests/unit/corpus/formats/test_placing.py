from pathlib import Path

import pytest

from biograft.corpus.formats.fields import Placer
from biograft.documents import Mention
from biograft.sources import ReadLog

TEXT = "mu- and delta-selective opioids, (R) -warfarin,\nHBV"


@pytest.fixture
def place():
    def of(spans, written):
        log = ReadLog(Path("a"))
        return Placer(TEXT, log, Path("a")).mention(spans, written, 7), log

    return of


@pytest.mark.parametrize(
    ("spans", "written", "found"),
    [
        (((8, 13),), "delta", ((8, 13),)),
        (((8, 13),), None, ((8, 13),)),
        (((0, 3), (14, 23)), "mu-selective", ((0, 3), (14, 23))),
        (((14, 23), (0, 3)), "mu- selective", ((0, 3), (14, 23))),
        (((33, 51),), "(R) -warfarin, HBV", ((33, 51),)),
    ],
)
def test_a_mention_in_its_place_is_kept_without_a_word(place, spans, written, found):
    mention, log = place(spans, written)
    pieces = found if len(found) > 1 else ()
    text = " ".join(TEXT[a:b] for a, b in found)
    assert mention == Mention(found[0][0], found[-1][1], text, pieces=pieces)
    assert not log.doubtful.counts


@pytest.mark.parametrize(
    ("spans", "written", "found", "doubt"),
    [
        (((9, 14),), "delta", ((8, 13),), "offsets were set right"),
        (((32, 36), (37, 46)), "(R)-warfarin", ((33, 36), (37, 46)), "offsets were set right"),
        (((48, 51),), "hbv", ((48, 51),), "the text is written otherwise"),
    ],
)
def test_a_mention_that_is_near_is_set_right_and_told(place, spans, written, found, doubt):
    mention, log = place(spans, written)
    assert mention.spans == found
    assert log.doubtful.counts == {doubt: 1}
    assert log.doubtful.examples[doubt][0].line == 7


@pytest.mark.parametrize(
    ("spans", "written"),
    [
        (((0, 5),), "aspirin"), (((40, 99),), None), (((5, 5),), ""), ((), "mu"),
        (((0, 3), (2, 5)), "xyz"), (((-2, 3),), None), (((0, 1),) * 5, "abc"),
    ],
)  # fmt: skip
def test_a_mention_that_is_not_there_is_rejected(place, spans, written):
    mention, log = place(spans, written)
    assert mention is None
    assert log.rejected.counts == {"offsets do not fit the text": 1}

from pathlib import Path

import pytest

from biograft.corpus.formats.fields import OffsetChecker
from biograft.documents import Mention
from biograft.sources import ReadLog

TEXT = "mu- and delta-selective opioids, (R) -warfarin,\nHBV"


@pytest.fixture
def check():
    def of(spans, written):
        log = ReadLog(Path("a"))
        return OffsetChecker(TEXT, log, Path("a")).mention(spans, written, 7), log

    return of


@pytest.mark.parametrize(
    ("spans", "written", "expected"),
    [
        (((8, 13),), "delta", ((8, 13),)),
        (((8, 13),), None, ((8, 13),)),
        (((0, 3), (14, 23)), "mu-selective", ((0, 3), (14, 23))),
        (((14, 23), (0, 3)), "mu- selective", ((0, 3), (14, 23))),
        (((33, 51),), "(R) -warfarin, HBV", ((33, 51),)),
    ],
)
def test_correct_offsets_are_kept(check, spans, written, expected):
    mention, log = check(spans, written)
    fragments = expected if len(expected) > 1 else ()
    text = " ".join(TEXT[a:b] for a, b in expected)
    assert mention == Mention(expected[0][0], expected[-1][1], text, fragments=fragments)
    assert not log.doubtful.counts


@pytest.mark.parametrize(
    ("spans", "written", "expected", "doubt"),
    [
        (((9, 14),), "delta", ((8, 13),), "offsets were corrected"),
        (((32, 36), (37, 46)), "(R)-warfarin", ((33, 36), (37, 46)), "offsets were corrected"),
        (((48, 51),), "hbv", ((48, 51),), "the text is written otherwise"),
    ],
)
def test_wrong_offsets_are_corrected_and_logged(check, spans, written, expected, doubt):
    mention, log = check(spans, written)
    assert mention.spans == expected
    assert log.doubtful.counts == {doubt: 1}
    assert log.doubtful.examples[doubt][0].line == 7


@pytest.mark.parametrize(
    ("spans", "written"),
    [
        (((0, 5),), "aspirin"), (((40, 99),), None), (((5, 5),), ""), ((), "mu"),
        (((0, 3), (2, 5)), "xyz"), (((-2, 3),), None), (((0, 1),) * 5, "abc"),
    ],
)  # fmt: skip
def test_an_absent_mention_is_rejected(check, spans, written):
    mention, log = check(spans, written)
    assert mention is None
    assert log.rejected.counts == {"offsets do not fit the text": 1}

from pathlib import Path

import pytest

from biograft.kb.sources import ReadLog
from biograft.text.formats.format import OffsetChecker

TEXT = "mu- and delta-selective opioids, (R) -warfarin,\nHBV"


@pytest.fixture
def check():
    def of(spans, written):
        log = ReadLog(Path("a"))
        return OffsetChecker(TEXT, log, Path("a")).mention(spans, written, 7), log

    return of


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

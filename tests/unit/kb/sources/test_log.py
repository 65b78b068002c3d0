"""The log of a reading: counts by reason, the first examples, the order of the report."""

from pathlib import Path

from biograft.kb.sources import ReadLog, RejectionExample

HERE = Path("a.obo")


def test_half_a_character_can_be_printed_and_saved():
    """Formerly a lone surrogate in a remark broke the writing of the manifest."""
    log = ReadLog(HERE)
    log.reject("odd", 1, "a\ud800")
    log.note("licence: \udc00")
    assert log.rejected.examples["odd"][0].text == "a?"
    assert log.notes == ["licence: ?"]


def test_doubtful_records_are_separate_from_rejected_ones():
    log = ReadLog(HERE)
    log.doubt("odd", 3, "text")
    log.doubt("odd", n=7, path=Path("b"))
    assert (log.rejected.counts, log.doubtful.counts) == ({}, {"odd": 8})
    assert log.doubtful.examples["odd"] == [
        RejectionExample("a.obo", 3, "text"),
        RejectionExample("b", 0, ""),
    ]

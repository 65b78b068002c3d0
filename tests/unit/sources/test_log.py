"""The log of a reading: counts by reason, the first examples, the order of the report."""

from pathlib import Path

from biograft.errors import SHOWN_TEXT
from biograft.sources import KEPT_EXAMPLES, ReadLog, RejectionExample, Rejections

HERE = Path("a.obo")


def test_rejections_are_counted_with_their_first_examples():
    log = ReadLog(HERE)
    for line in range(1, 100):
        log.reject("odd", line, f"text {line}")
    assert log.rejected.counts == {"odd": 99}
    assert log.rejected.examples["odd"] == [
        RejectionExample("a.obo", line, f"text {line}") for line in range(1, KEPT_EXAMPLES + 1)
    ]


def test_the_report_gives_the_most_frequent_reason_first():
    rejections = Rejections()
    rejections.add("rare")
    rejections.add("frequent", RejectionExample("a", 3, "x"), n=4)
    assert list(rejections.to_json().items()) == [
        ("frequent", {"n": 4, "examples": [{"file": "a", "line": 3, "text": "x"}]}),
        ("rare", {"n": 1, "examples": []}),
    ]


def test_long_texts_are_cut():
    log = ReadLog(HERE)
    log.reject("odd", 1, "x" * 1000)
    text = log.rejected.examples["odd"][0].text
    assert (len(text), text[-4:]) == (SHOWN_TEXT, "x...")


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


def test_files_and_notes_are_kept_once_in_order():
    log = ReadLog(HERE)
    for name in ("b", "a", "b"):
        log.opened(Path(name))
        log.note(name)
    assert (log.files, log.notes) == ([Path("b"), Path("a")], ["b", "a"])

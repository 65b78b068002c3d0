"""Delimited tables in blocks: the same rows and the same faults, however blocks fall."""

import gc
import gzip
import threading

import pytest

from biograft.errors import EncodingError, FormatError
from biograft.kb.sources import ReadLog
from biograft.kb.sources.delimited import DelimitedLayout, _ahead, read_rows
from biograft.kb.sources.files import read_line_blocks

ABC = ("a", "b", "c")
PLAIN = DelimitedLayout(columns=ABC, wanted=ABC, separator="\t")
BARRED = DelimitedLayout(columns=ABC, wanted=ABC, separator="|", trailing=True)
HEADED = DelimitedLayout(columns=ABC, wanted=ABC, separator="\t", header=True)


@pytest.fixture(params=[1, 8, 16 << 20], ids=["a line a block", "8 bytes", "all in one"])
def block_size(request, monkeypatch):
    monkeypatch.setattr(read_line_blocks, "__defaults__", (request.param,))
    return request.param


@pytest.fixture
def rows(write):
    """Read bytes whole: the rows as (a, b, c, line), and the log."""

    def read(data, layout=PLAIN, encoding="utf-8"):
        path = write("t", data)
        log = ReadLog(path)
        frames = [rows.frame for rows in read_rows(path, log, layout, encoding)]
        return [row for frame in frames for row in frame.select(*ABC, "line").rows()], log

    return read


def numbered(layout, n=25):
    end = layout.separator if layout.trailing else ""
    return [layout.separator.join((f"a{k}", f"b{k}", f"c{k}")) + end for k in range(n)]


@pytest.mark.parametrize("final", ["\n", ""], ids=["end", "no end"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
@pytest.mark.parametrize("layout", [PLAIN, BARRED], ids=["tabs", "bars"])
def test_rows_and_lines_are_the_same_for_every_block_size(
    rows, block_size, layout, pack, line_end, final
):
    text = line_end.join(numbered(layout)) + (line_end if final else "")
    rows_read, log = rows(pack(text.encode()), layout)
    assert rows_read == [(f"a{k}", f"b{k}", f"c{k}", k + 1) for k in range(25)]
    assert (log.n_read, log.rejected.counts) == (25, {})
    assert log.files == [log.path]


@pytest.mark.parametrize(
    ("layout", "bad"),
    [
        (PLAIN, {3: "a\tb", 4: "a\tb\tc\td"}),
        (PLAIN, {1: "", 5: "a\t\t\tb", 6: "x"}),
        (BARRED, {3: "a|b|", 4: "a|b|c|d|"}),
        (BARRED, {3: "a|b|c", 7: "a|b|c|d"}),
    ],
)
def test_ragged_lines_are_rejected_though_their_counts_cancel_out(rows, block_size, layout, bad):
    """A short line and a long one together have the right number of separators."""
    lines = numbered(layout)
    for number, text in bad.items():
        lines[number - 1] = text
    rows_read, log = rows("\n".join(lines) + "\n", layout)
    assert rows_read == [(f"a{k}", f"b{k}", f"c{k}", k + 1) for k in range(25) if k + 1 not in bad]
    faults = {number: text for number, text in bad.items() if text}
    examples = [e for group in log.rejected.examples.values() for e in group]
    assert {(e.line, e.text) for e in examples} == set(faults.items())
    assert sum(log.rejected.counts.values()) == len(faults)
    assert log.n_read == 25 - len(bad) + len(faults)


def test_blank_lines_are_skipped_and_counted_as_lines(rows, block_size):
    rows_read, log = rows("a\tb\tc\n\n  \n\r\nd\te\tf\n\n")
    assert rows_read == [("a", "b", "c", 1), ("d", "e", "f", 5)]
    assert (log.n_read, log.rejected.counts) == (2, {})


@pytest.mark.parametrize("fault", ["", "x\n"], ids=["regular", "ragged"])
def test_a_carriage_return_within_a_line_ends_none(rows, fault):
    """Formerly, beside a ragged line, it split its line and moved all line numbers after it."""
    rows_read, log = rows(f"{fault}a\rA\tb\tc\nd\te\tf\n")
    n = 1 if fault else 0
    assert rows_read == [("a\rA", "b", "c", 1 + n), ("d", "e", "f", 2 + n)]
    assert sum(log.rejected.counts.values()) == n


@pytest.mark.parametrize("before", ["", "ragged\n", "ragged\n\n"])
def test_bytes_in_another_encoding_are_reported_with_their_line(rows, block_size, before):
    """A ragged line before the wrong byte shifted the reported line number."""
    data = before.encode() + b"a\tb\tc\nd\te\xe9\tf\n"
    line = before.count("\n") + 2
    with pytest.raises(EncodingError, match=rf"t:{line}: byte 0xe9 is not utf-8"):
        rows(data)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("a\tb", "column 'c' is missing"),
        ("a,b,c", "column 'a' is missing"),
        ("a\tb\tc\td", "there are too many columns"),
    ],
)
def test_a_wrong_header_is_refused(rows, header, problem):
    with pytest.raises(FormatError, match=rf"t:1: {problem} .*; expected a, b, c"):
        rows(f"{header}\n1\t2\t3\n", HEADED)


def test_columns_in_another_order_are_refused(rows):
    """Formerly they passed the check, and every value came under the wrong name."""
    with pytest.raises(FormatError, match="t:1: the columns are in another order"):
        rows("b\ta\tc\n1\t2\t3\n", HEADED)


class Halting:
    """Gives one item, and the next only when let; says when it is closed."""

    def __init__(self):
        self.under_way, self.go, self.closed = (threading.Event() for _ in range(3))

    def items(self):
        try:
            yield 1
            self.under_way.set()
            self.go.wait(10)
            yield 2
            raise OSError("never told")
        finally:
            self.closed.set()


@pytest.mark.parametrize("stop", [None, KeyboardInterrupt, ValueError])
def test_a_consumer_that_stops_early_does_not_wait_for_the_next_block(stop):
    """Formerly it waited, and an interrupt meanwhile was *ignored in generator*."""
    source = Halting()
    ahead = _ahead(source.items())
    assert next(ahead) == 1
    assert source.under_way.wait(10)
    if stop:
        with pytest.raises(stop):
            ahead.throw(stop)
    else:
        del ahead
        gc.collect()
    assert not source.closed.is_set()  # the block under way goes on in its thread
    source.go.set()
    assert source.closed.wait(10)

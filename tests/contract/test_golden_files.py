"""The golden files themselves: comparison, scrubbing, and rows that are known to be wrong."""

from __future__ import annotations

import math

import pytest
from golden_files import GOLDEN, GoldenFiles, differences, known_wrong, matches, scrub


@pytest.mark.parametrize(
    ("golden", "value", "found"),
    [
        ({"a": 0.12341}, {"a": 0.12345}, []),
        ({"a": 1000.0}, {"a": 1000.05}, []),
        ({"a": math.nan}, {"a": math.nan}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 0.1234}, {"a": 0.1236}, [".a: 0.1234 -> 0.1236"]),
        ({"a": 1}, {"a": 2}, [".a: 1 -> 2"]),
        ({"a": 1}, {"a": True}, [".a: 1 -> true"]),
        ({"a": None}, {}, [".a: null -> gone"]),
        ({}, {"a": "x"}, ['.a: new "x"']),
        ([1, 2], [1], [": 2 -> 1 items"]),
        ([{"a": "x"}], [{"a": "y"}], ['[0].a: "x" -> "y"']),
    ],
)
def test_differences_are_found_and_said(golden, value, found):
    assert list(differences(golden, value)) == found


def test_what_cannot_be_the_same_twice_is_scrubbed(tmp_path):
    value = {
        "path": tmp_path / "KB",
        "at": ("2026-01-02T03:04:05.678901+00:00", f"in {tmp_path}"),
        "sha256": "0" * 64,
        "seconds": 1.5,
    }
    assert scrub(value, {str(tmp_path): "<tmp>"}, volatile=["seconds"]) == {
        "path": "<tmp>/KB",
        "at": ["<time>", "in <tmp>"],
        "sha256": "<hash>",
        "seconds": "<any>",
    }


def test_a_different_answer_fails_and_changes_only_when_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("golden_files.GOLDEN", tmp_path)
    first = GoldenFiles(update=True)
    first.check("x", "one", {"score": 0.5})
    first.write()
    GoldenFiles().check("x", "one", {"score": 0.50001})
    with pytest.raises(AssertionError, match=r"\.score: 0\.5 -> 0\.6"):
        GoldenFiles().check("x", "one", {"score": 0.6})
    with pytest.raises(AssertionError, match="new row"):
        GoldenFiles().check("x", "two", 1)
    second = GoldenFiles(update=True)
    second.check("x", "two", 1)
    second.write(prune=True)
    assert second.changed == ["x: two: new row", "x: one: no test asks for it: deleted"]
    GoldenFiles().check("x", "two", 1)


def test_every_known_wrong_row_exists_and_names_its_reason():
    files = GoldenFiles()
    for known in known_wrong():
        assert known.keys() == {"file", "row", "why", "subject"}, known
        assert (GOLDEN / f"{known['file']}.json").exists(), known
        assert any(matches(known, row) for row in files.rows(known["file"])), known

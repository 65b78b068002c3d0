"""Manifests: read as written; missing, damaged, foreign and newer ones are reported in one line."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime

import pytest
from manifests import changed, contents

import biograft
from biograft.artifacts import ArtifactKind, describe_files, new_folder, peek
from biograft.errors import OutputError, StoreError

BOX = ArtifactKind(
    format="a-box",
    version=2,
    called="wooden box",
    remedy="saw another",
    absent="saw one",
    keys=("lid",),
)
LETTER = ArtifactKind(
    format="a-letter", version=1, called="letter", remedy="write it again", file=""
)


def test_what_is_written_is_read(tmp_path):
    written = BOX.write(tmp_path, {"lid": "ö", "nails": [1]})
    assert BOX.read(tmp_path) == written
    found = peek(tmp_path / "manifest.json")
    assert {key: found[key] for key in written} == written
    stated = {"format": "a-box", "version": 2, "made_by": f"biograft {biograft.__version__}"}
    assert written.items() >= {**stated, "lid": "ö"}.items()
    assert datetime.fromisoformat(written["made_at"]).tzinfo
    assert "ö" in (tmp_path / "manifest.json").read_text(encoding="utf-8")
    with pytest.raises(OutputError, match="exists already"):
        BOX.write(tmp_path, {"lid": None})
    BOX.write(tmp_path, {"lid": None}, overwrite=True)
    assert BOX.read(tmp_path)["lid"] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"FOLDER/manifest.json: damaged \(Expecting value: .*\); saw another"),
        ("\xff", r"FOLDER/manifest.json: damaged \(.*decode.*\); saw another"),
        ("[" * 100_000, r"FOLDER/manifest.json: damaged \(.*recursion.*\); saw another"),
        ("[]", "FOLDER/manifest.json: states no format, so it is no wooden box; saw one"),
        ("null", "FOLDER/manifest.json: states no format, so it is no wooden box; saw one"),
        ({}, "FOLDER/manifest.json: states no format, so it is no wooden box; saw one"),
        ({"format": "a-letter"}, "FOLDER: no wooden box but 'a-letter'; saw one"),
        ({"format": ["x" * 999]}, r"FOLDER: no wooden box but \['x{1,99}\.\.\.; saw one"),
        (
            {"format": "a-box"},
            "FOLDER: wooden box of version None, this biograft reads version 2; saw another",
        ),
        (
            {"format": "a-box", "version": 1},
            "FOLDER: wooden box of version 1, this biograft reads version 2; saw another",
        ),
        (
            {"format": "a-box", "version": 3},
            "FOLDER: wooden box of version 3, this biograft reads "
            "version 2; update biograft, or saw another",
        ),
        (
            {"format": "a-box", "version": 2},
            r"FOLDER/manifest.json: damaged \(lid is missing\); "
            "saw another",
        ),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, content, message):
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(StoreError) as caught:
        BOX.read(tmp_path)
    expected = message.replace("FOLDER", re.escape(str(tmp_path)))
    assert re.fullmatch(expected, str(caught.value))


@pytest.mark.parametrize(
    ("content", "there"),
    [
        ('{"format": "a-box", "version": 99}', True),
        ('{"format": "a-letter"}', False),
        ('["a-box"]', False),
        ("{", False),
        ("[" * 100_000, False),
        (None, False),
    ],
)
def test_whether_one_is_there_of_any_version(tmp_path, content, there):
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    assert BOX.is_at(tmp_path) is there


def test_files_are_compared_by_size_and_by_hash_on_request(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "b").write_bytes(b"12")
    (tmp_path / "inner" / "a").write_bytes(b"345")
    files = describe_files(tmp_path)
    assert [(name, entry["bytes"]) for name, entry in files.items()] == [("b", 2), ("inner/a", 3)]
    BOX.check_files(tmp_path, {"files": files}, hashes=True)
    (tmp_path / "b").write_bytes(b"13")
    BOX.check_files(tmp_path, {"files": files})
    with pytest.raises(StoreError, match=r"b: damaged \(its content is not what was written\)"):
        BOX.check_files(tmp_path, {"files": files}, hashes=True)
    (tmp_path / "inner" / "a").write_bytes(b"3")
    with pytest.raises(StoreError, match=r"inner/a: damaged \(expected 3 bytes, found 1 bytes\)"):
        BOX.check_files(tmp_path, {"files": files})
    (tmp_path / "b").unlink()
    with pytest.raises(StoreError, match=r"b: damaged \(expected 2 bytes, found no file\); saw an"):
        BOX.check_files(tmp_path, {"files": files})


@pytest.mark.parametrize("files", [None, 3, ["b"], {"b": {}}, {"b": None}, {"b": "2"}])
def test_damaged_tables_of_files_are_refused(tmp_path, files):
    (tmp_path / "b").write_bytes(b"12")
    with pytest.raises(StoreError, match=r"damaged|without hashes"):
        BOX.check_files(tmp_path, {"files": files})


def test_no_changed_bit_of_a_manifest_goes_unseen(tmp_path):
    content = BOX.write(tmp_path, {"weights": {"lexical": 0.35}, "n": 7, "files": {}})
    path = tmp_path / "manifest.json"
    written = path.read_bytes()
    for position in range(len(written)):
        changed = bytearray(written)
        changed[position] ^= 1 << position % 7
        path.write_bytes(changed)
        try:
            found = BOX.read(tmp_path)
        except StoreError:
            continue
        assert {key: found[key] for key in content} == content, position


def test_damage_is_said_in_one_line_whatever_a_library_says(tmp_path):
    """What arrow says of a flipped bit in a Parquet file ends with a line break."""
    error = BOX.damaged(tmp_path, ValueError("no thrift:\n\tunknown type\n"))
    assert "damaged (no thrift: unknown type); " in str(error)


def write_box(folder, nails=b"nails"):
    """Write a box in which another one lies."""
    with new_folder(folder, overwrite=True) as work:
        (work / "nails").write_bytes(nails)
        BOX.write(work / "inner", {"lid": None})
        BOX.write(work, {"lid": None, "files": describe_files(work)})


def at(year, monkeypatch):
    """Let it be another time."""

    class Then(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(year, 1, 1, tzinfo=tz)

    monkeypatch.setattr("biograft.artifacts.datetime", Then)


def test_what_is_the_same_keeps_its_date(tmp_path, monkeypatch):
    """A finished run that was resumed had other bytes."""
    at(2001, monkeypatch)
    write_box(tmp_path / "box")
    LETTER.write(tmp_path / "letter", {"text": "x", "files": {}})
    before = contents(tmp_path)
    at(2002, monkeypatch)
    write_box(tmp_path / "box")
    LETTER.write(tmp_path / "letter", {"text": "x", "files": {}}, overwrite=True)
    assert changed(before, tmp_path) == []
    LETTER.write(tmp_path / "letter", {"text": "x", "files": {"a": 1}}, overwrite=True)
    assert peek(tmp_path / "letter")["files"] == {"a": 1}


@pytest.mark.parametrize("name", ["nails", "manifest.json", "inner/manifest.json", "other"])
def test_what_is_damaged_or_more_is_replaced(tmp_path, name):
    write_box(tmp_path / "box")
    before = contents(tmp_path / "box")
    (tmp_path / "box" / name).write_bytes(before.get(name, b"x")[:-1] + b" ")
    write_box(tmp_path / "box")
    assert set(contents(tmp_path / "box")) == set(before)
    assert contents(tmp_path / "box")["nails"] == b"nails"
    BOX.read(tmp_path / "box" / "inner")
    BOX.check_files(tmp_path / "box", BOX.read(tmp_path / "box"), hashes=True)


def test_a_pipe_is_no_manifest(tmp_path):
    """It was waited for without a word."""
    os.mkfifo(tmp_path / "x.json")
    assert peek(tmp_path / "x.json") == {}
    kind = ArtifactKind(format="x", version=1, called="x", remedy="make it again", file="")
    with pytest.raises(StoreError, match="it is a pipe or a device"):
        kind.read(tmp_path / "x.json")

"""The streaming JSON parser, and JSON lines with invalid ones."""

from __future__ import annotations

import json
import random

import pytest

from biograft.errors import FormatError
from biograft.kb.sources import ReadLog, json_files as json_stream
from biograft.kb.sources.json_files import JsonStream


@pytest.fixture(params=[1, 2, 3, 7, 64])
def small_chunks(monkeypatch, request):
    """Read few bytes at a time, so that every cut through a value happens."""
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", request.param)


def walk(stream, shape):
    """Rebuild a document, walking instead of decoding where the shape says so."""
    if isinstance(shape, dict):
        return {key: walk(stream, shape.get(key)) for key in stream.members()}
    if isinstance(shape, list):
        return [walk(stream, shape[0]) for _ in stream.elements()]
    return stream.value()


VALUES = [0, -12, 3.25e-7, 1234567890123, "", 'a"\\\n\t/é病\U0001f600', True, False, None, [], {}]


def anything(chance, depth):
    kind = chance.randrange(len(VALUES) + 4)
    if kind < len(VALUES) or not depth:
        return VALUES[kind % len(VALUES)]
    inner = [anything(chance, depth - 1) for _ in range(chance.randrange(4))]
    return inner if kind % 2 else {f'k{i}"': value for i, value in enumerate(inner)}


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("ascii_only", [True, False])
def test_whatever_the_chunks_the_document_is_the_same(write, ascii_only):
    chance = random.Random(0)
    for _ in range(30):
        document = {"a": [anything(chance, 3) for _ in range(3)], "b": anything(chance, 3)}
        text = json.dumps(document, ensure_ascii=ascii_only, indent=chance.choice([None, 1]))
        with JsonStream(write("x.json", text)) as stream:
            assert walk(stream, {"a": [None]}) == document
            stream.finish()


@pytest.mark.usefixtures("small_chunks")
def test_lines_and_skipped_values(write):
    path = write("x.json", '\ufeff{"skip": [[1,\n2], {"a": []}],\n "x": [\n1,\n\n 2]}\n')
    with JsonStream(path) as stream:
        lines = []
        for key in stream.members():
            if key == "skip":
                stream.skip()
            else:
                lines = [(line, stream.value()) for line in stream.elements()]
        stream.finish()
        assert (lines, stream.line, stream.fraction) == ([(4, 1), (6, 2)], 7, 1.0)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("end", range(1, 34))
def test_every_cut_is_a_clear_error(write, end):
    text = '{"a": [1, "b\\u00e9", {"c": null}]}'
    assert len(text) == 34
    message = r"x\.json:1: .*check that the file is JSON and complete"
    with (
        JsonStream(write("x.json", text[:end])) as stream,
        pytest.raises(FormatError, match=message),
    ):
        walk(stream, {"a": [None]})


TWICE = '{"id": "A", "name": "x", "names": [{"text": "y", "text": "z"}]}'


def test_keys_that_are_given_twice_are_counted_in_a_stream(write, monkeypatch):
    """Guards: the same, whatever part of the file is in memory when a value is decoded."""
    for chunk in (1, 7, 1 << 20):
        monkeypatch.setattr(json_stream, "CHUNK_BYTES", chunk)
        log = ReadLog(write("a.json", f"[{TWICE},\n{{}},\n{TWICE}]"))
        with JsonStream(log.path, log=log) as stream:
            assert sum(1 for _ in stream.elements() if stream.value() is not None) == 3
        ((reason, n),) = log.doubtful.counts.items()
        assert n == 2
        assert [each.line for each in log.doubtful.examples[reason]] == [1, 3]

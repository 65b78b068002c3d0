"""Linking at its edges, on the starter store and its sample: size, scripts, no wrong offset."""

from __future__ import annotations

import json
import time
from importlib.resources import files
from pathlib import Path

import pytest

from biograft.evaluation import GoldConfig, calibrate_linker, evaluate_linking, read_gold
from biograft.kb import KnowledgeBase, build_starter
from biograft.linking import Linker, link_chunks

SAMPLE = [
    json.loads(line)
    for line in (files("biograft") / "starter" / "sample.jsonl").read_text("utf-8").splitlines()
]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starter") / "KB"
    build_starter(folder)
    return KnowledgeBase.open(folder)


@pytest.fixture(scope="module")
def linker(kb):
    return Linker.open(kb)


def test_every_mention_slices_to_itself(linker):
    texts = [document["text"] for document in SAMPLE[::4]]
    odd = ["😀 " + text.replace(" ", "\u00a0") + " e\u0301\u200b" for text in texts]
    for linked in linker.pipe([*texts, *odd]):
        before = 0
        for mention in linked.mentions:
            assert linked.document.text[mention.start : mention.end] == mention.text
            assert mention.start >= before
            before = mention.start


STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_memory():
    """Return the most memory of this process, in bytes; 0 where the system does not tell."""
    if not STATUS.exists():
        return 0
    return 1024 * int(STATUS.read_text().partition("VmHWM:")[2].split()[0])


def begin_peak():
    """Measure from now on; return the memory now."""
    if CLEAR.exists():
        CLEAR.write_text("5")
    return peak_memory()


@pytest.mark.slow
def test_megabytes_in_one_document(linker):
    text = "\n".join(document["text"] for document in SAMPLE)
    text = (text + "\n") * (1_000_000 // len(text.encode()) + 1)
    assert len(text.encode()) >= 1_000_000
    linker(text[:300_000])  # loads what is loaded once
    start, before = time.perf_counter(), begin_peak()
    linked = linker(text)
    written = sum(map(len, link_chunks([linked], "jsonl", linker.kb)))
    assert time.perf_counter() - start < 100
    assert peak_memory() - before < 110 * len(text)  # 50 MB took 4 GB
    assert written > len(text)
    for mention in linked.mentions[:: len(linked.mentions) // 1000]:
        assert text[mention.start : mention.end] == mention.text
    assert linked.mentions[-1].start > 0.99 * len(text)


def test_probabilities_are_fitted_to_a_part_and_hold_on_the_other(kb, linker):
    queries = read_gold("starter", "sample", GoldConfig(keep_nil=True)).queries
    fitted, held_out = queries[::2], queries[1::2]
    calibration = calibrate_linker(linker, fitted, kb, aim="f1")
    assert calibration.search == linker.score_source
    assert 0 <= calibration.threshold <= 1
    calibrated = Linker(kb, linker.search, calibration=calibration)
    result = evaluate_linking(calibrated, kb, held_out)
    assert result.metrics["ece"] < 0.15
    assert result.metrics["acc@1"] == evaluate_linking(linker, kb, held_out).metrics["acc@1"]

"""Linking at its edges, on the starter store and its sample: size, scripts, no wrong offset."""

from __future__ import annotations

import json
import time
from importlib.resources import files

import pytest

from biograft.evaluation import GoldConfig, evaluate_linking, read_gold
from biograft.evaluation.calibration import calibrate_linker
from biograft.kb import KnowledgeBase, build_starter
from biograft.linking import Linker

SAMPLE = [
    json.loads(line)
    for line in (files("biograft.starter") / "sample.jsonl").read_text("utf-8").splitlines()
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
    texts = [document["text"] for document in SAMPLE]
    odd = ["😀 " + text.replace(" ", "\u00a0") + " e\u0301\u200b" for text in texts]
    for linked in linker.pipe([*texts, *odd]):
        before = 0
        for mention in linked.mentions:
            assert linked.document.text[mention.start : mention.end] == mention.text
            assert mention.start >= before
            before = mention.start


def test_many_names_of_the_sample_are_found_in_its_text(linker):
    found = right = n_gold = 0
    for value, linked in zip(SAMPLE, linker.pipe([d["text"] for d in SAMPLE]), strict=True):
        answered = {(m.start, m.end): m.concept for m in linked.mentions}
        for gold in value["mentions"]:
            if gold["concepts"]:
                n_gold += 1
                concept = answered.get((gold["start"], gold["end"]))
                found += concept is not None
                right += concept in gold["concepts"]
    assert found > n_gold / 2
    assert right > 0.9 * found


@pytest.mark.slow
def test_megabytes_in_one_document(linker):
    text = "\n".join(document["text"] for document in SAMPLE)
    text = (text + "\n") * (3_000_000 // len(text.encode()) + 1)
    assert len(text.encode()) >= 3_000_000
    start = time.perf_counter()
    linked = linker(text)
    assert time.perf_counter() - start < 100
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


def test_an_answer_is_the_same_each_time(kb, linker):
    texts = [document["text"] for document in SAMPLE[:20]]
    again = Linker.open(kb)
    assert [d.to_json() for d in linker.pipe(texts)] == [
        d.to_json() for d in again.pipe(reversed(texts), batch_size=3)
    ][::-1]

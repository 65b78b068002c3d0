"""The encoder that comes with biograft, and when an index has it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_static_without_torch import run

from biograft.linking import Linker, build_index, default_encoder, load_encoder
from biograft.linking.dense.encoders import SHIPPED

NAMES = {
    "heart attack": "myocardial infarction",
    "kidney stones": "nephrolithiasis",
    "cancer of the liver": "hepatic neoplasm",
    "high blood pressure": "hypertension",
    "itching": "pruritus",
}


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("static-english")


def test_it_knows_other_words_for_the_same(encoder):
    mentions, names = encoder.encode([*NAMES]), encoder.encode([*NAMES.values()])
    assert (mentions @ names.T).argmax(axis=1).tolist() == [*range(len(NAMES))]
    assert not encoder.encode(["心肌梗死"]).any()


def test_it_is_small(encoder):
    size = sum(path.stat().st_size for path in SHIPPED["static-english"].iterdir())
    assert size < 10_000_000
    assert encoder.weights.n_outside_table <= 2_000_000


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 21])
def test_a_vector_does_not_depend_on_the_texts_beside_it(encoder, size):
    """Products of few rows rounded differently, so scores and ties of a service varied."""
    texts = [*NAMES, *NAMES.values(), *encoder.tokenizer.vocabulary[-40:]]
    alone = [encoder.encode(texts[i : i + size]) for i in range(0, len(texts), size)]
    assert (np.concatenate(alone) == encoder.encode(texts)).all()


def test_a_store_has_it_unless_it_has_no_english_names_or_too_many(store_of, monkeypatch):
    english = store_of([{"id": "1", "name": "Pruritus"}])
    chinese = store_of([{"id": "1", "names": {"zh": ["瘙痒", "瘙痒症"]}}], "ZH")
    assert chinese.info()["n_names_by_language"] == {"zh": 2}
    assert default_encoder(english).name == "static-english"
    assert default_encoder(english, ["zh"]) is None
    assert default_encoder(chinese) is None
    monkeypatch.setattr("biograft.linking.dense.encoders.MAX_DEFAULT_NAMES", 0)
    assert default_encoder(english) is None


def test_the_index_of_a_core_install_searches_by_meaning(store_of, tmp_path):
    kb = store_of([{"id": str(n), "name": name} for n, name in enumerate(NAMES.values())])
    code, out, err = run("index", kb.folder, "-o", tmp_path / "I", "--json", "-q")
    assert code == 0, err
    described = json.loads(out)
    assert described["parts"] == ["lexical", "dense"]
    assert described["encoder"]["name"] == "static-english"
    mentions = tmp_path / "m.txt"
    mentions.write_text("\n".join(NAMES), encoding="utf-8")
    options = ("--kb", kb.folder, "--index", tmp_path / "I", "--terms", "--json", "-k", "1")
    options = (*options, "--threshold", "0")
    code, out, err = run("link", mentions, *options)
    assert code == 0, err
    linked = [json.loads(line)["mentions"][0]["concept"] for line in out.splitlines()]
    assert linked == [str(n) for n in range(len(NAMES))]
    code, out, err = run("index", kb.folder, "-o", tmp_path / "L", "--encoder", "none", "--json")
    assert (code, json.loads(out)["parts"]) == (0, ["lexical"])


def test_chinese_mentions_keep_the_scores_of_lexical_search(kb, encoder, tmp_path):
    build_index(kb, tmp_path / "I", encoder)
    texts = ["2型糖尿", "二甲双瓜"]
    both = Linker.open(kb, tmp_path / "I").link_mentions(texts)
    lexical = Linker.open(kb).link_mentions(texts)
    for one, other in zip(both, lexical, strict=True):
        assert [c.concept for c in one] == [c.concept for c in other]
        np.testing.assert_allclose([c.score for c in one], [c.score for c in other], atol=1e-6)

"""Similarity scores and judgements against plain loops: lexical, and by encoders."""

import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
from tiny_masked_lm import tiny_masked_lm_folder

from biograft.errors import ConfigError, StoreError
from biograft.models.knowledge import KnowledgeBertForMaskedLM, TableEntity
from biograft.models.pretrained import load_masked_lm
from biograft_lab.probing.similarity import (
    EncoderSimilarity,
    SimilarityQuery,
    collect_names,
    judge,
    lexical_similarity,
    report as report_module,
)

QUERIES = [
    SimilarityQuery("acute fever", "acute febris", ("cute fever", "fever"), ("A", "A")),
    SimilarityQuery("发热头痛", "头痛发热", ("发热", "xyz"), ("B", "B")),
    SimilarityQuery("fever", "acute fever", ("发热", "fever fever"), ("C", "C")),
]


def cosine(a, b):
    norm = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else 0.0


def test_each_text_is_encoded_once(monkeypatch):
    monkeypatch.setattr(report_module, "_CHUNK", 2)
    names = collect_names(QUERIES)
    assert len(names.texts) == len(set(names.texts)) == 9
    vectors = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    vectors[4] = 0
    scores = names.cosines(vectors)
    for row, query in enumerate(QUERIES):
        query_vector = vectors[names.texts.index(query.query)]
        for column, text in enumerate((query.positive, *query.negatives)):
            expected = cosine(query_vector, vectors[names.texts.index(text)])
            assert scores[row, column] == pytest.approx(expected, abs=1e-6)


def test_only_the_best_alone_is_right():
    scores = np.array([[0.5, 0.4, 0.3], [0.5, 0.5, 0.1], [0.5 + 1e-8, 0.5, 0.1], [0.1, 0.2, 0.0]])
    assert judge(scores).tolist() == [True, False, False, False]


def test_lexical_similarity_is_the_cosine_of_weighted_ngrams():
    names = collect_names(QUERIES)
    counts = {
        text: Counter(text[k : k + n] for n in (1, 2, 3) for k in range(len(text) - n + 1))
        for text in names.texts
    }
    grams = sorted({gram for bag in counts.values() for gram in bag})
    n_texts = len(counts) + 1
    idf = {g: math.log(n_texts / (1 + sum(g in b for b in counts.values()))) + 1 for g in grams}
    scores = lexical_similarity(names, None)
    for row, query in enumerate(QUERIES):
        query_vector = [counts[query.query][g] * idf[g] for g in grams]
        for column, text in enumerate((query.positive, *query.negatives)):
            expected = cosine(query_vector, [counts[text][g] * idf[g] for g in grams])
            assert scores[row, column] == pytest.approx(expected, abs=1e-9)
    assert scores[1, 2] == 0


def test_lexical_similarity_ignores_case_and_hyphens():
    one = SimilarityQuery("Crohn-disease", "crohn DISEASE", ("crohns",), ("A", "A"))
    assert lexical_similarity(collect_names([one]), None)[0, 0] == pytest.approx(1)


TEXTS = ["acute fever", "fever", "acute unknownword fever of long standing", "发热 头痛", "a"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from tiny_models import tiny_encoder_folder

    return tiny_encoder_folder(tmp_path_factory.mktemp("enc") / "tiny", TEXTS[:2] + TEXTS[3:])


def by_hand(encoder, text):
    """The mean of the last layer's states without the first and the last token."""
    import torch

    batch = encoder.tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        states = encoder.model.eval()(**batch).last_hidden_state[0]
    return states[1:-1].mean(dim=0).numpy()


def test_the_mean_leaves_special_tokens_and_padding_out(folder):
    measure = EncoderSimilarity.from_pretrained(str(folder))
    vectors = measure.encode(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(vector, by_hand(measure.encoder, text), atol=1e-5)


def test_an_unknown_token_counts_like_any(folder):
    """[UNK] counts, though tokenizers mark it as special."""
    measure = EncoderSimilarity.from_pretrained(str(folder))
    ids, inner = measure._tokens(["fever ☃ fever"])
    assert measure.encoder.tokenizer.unk_token_id in ids[0]
    assert inner == [[0, 1, 1, 1, 0]]
    vector = measure.encode(["fever ☃ fever", "a much longer text fever fever fever"])[0]
    np.testing.assert_allclose(vector, by_hand(measure.encoder, "fever ☃ fever"), atol=1e-5)


def test_an_encoder_scores_by_cosines(folder):
    measure = EncoderSimilarity.from_pretrained(str(folder))
    query = SimilarityQuery("fever", "acute fever", ("a", "发热 头痛"), ("A", "A"))
    scores = measure(collect_names([query]), None)
    query_vector = by_hand(measure.encoder, "fever")
    for column, text in enumerate((query.positive, *query.negatives)):
        assert scores[0, column] == pytest.approx(
            cosine(query_vector, by_hand(measure.encoder, text)), abs=1e-5
        )


def test_unknown_encoders_are_refused(tmp_path):
    with pytest.raises(StoreError, match="holds no encoder"):
        EncoderSimilarity.from_pretrained(str(tmp_path))


def test_entity_inputs_are_given_on_request_only(tmp_path):
    bert = tiny_masked_lm_folder(tmp_path / "bert", ["heart attack is mi"])
    entities = [TableEntity("C0", "mi", ("mi", "heart attack"))]
    model = KnowledgeBertForMaskedLM.from_bert(
        bert,
        np.ones((1, 4), np.float32),
        entities,
        knowledge_layers={"entity_fusion": {"after": 1, "neutral_start": False}},
    )
    model.save_pretrained(tmp_path / "aware")
    load_masked_lm(bert).tokenizer.save_pretrained(tmp_path / "aware")
    open_encoder = partial(EncoderSimilarity.from_pretrained, str(tmp_path / "aware"))
    plain, aware = (
        open_encoder(with_entities=given).encode(["mi", "is"]) for given in (False, True)
    )
    np.testing.assert_allclose(plain[1], aware[1], atol=1e-6)
    assert np.abs(plain[0] - aware[0]).max() > 1e-3
    leak = SimilarityQuery("mi", "heart attack", ("is", "attack"), ("A", "A"))
    fair = SimilarityQuery("is", "heart attack", ("mi", "attack"), ("A", "A"))
    with pytest.raises(ConfigError, match="1 of 2 queries as one entity, such as 'mi' and 'heart"):
        open_encoder(with_entities=True)(collect_names([leak, fair]), None)
    assert open_encoder(with_entities=True)(collect_names([fair]), None).shape == (1, 3)
    assert open_encoder()(collect_names([leak]), None).shape == (1, 3)

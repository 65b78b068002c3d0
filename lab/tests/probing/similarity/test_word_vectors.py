"""Word vectors: tokens, co-occurrences and training."""

import numpy as np
import pytest
import torch

from biograft.errors import ConfigError, InputError
from biograft_lab.probing.similarity import (
    SimilarityQuery,
    WordVectorConfig,
    WordVectors,
    collect_names,
    read_training_text,
    train_glove,
    train_sgns,
)
from biograft_lab.probing.similarity.word_vectors import (
    ChineseWordTokenizer,
    count_neighbours,
    glove_loss,
    tokenize,
)

LINES = ["the acute fever, the Fever", "头痛 the pain of the head", "", "头痛头痛 fever rare"] * 3


@pytest.fixture
def text(write):
    return read_training_text(write("t.txt", "\n".join(LINES) + "\n"))


def topics(n=200):
    """Two topics whose words never meet, each with words and characters."""
    rng = np.random.default_rng(0)
    kinds = (["fever", "heat", "热", "烧"], ["bone", "fracture", "骨", "折"])
    return [" ".join(rng.choice(kinds[k % 2], 8).tolist()) for k in range(n)]


def test_tokens_are_characters_of_chinese_and_words():
    assert tokenize("2型糖尿病 (Type-2, Crohn's)") == [*"2型糖尿病", "type", "2", "crohns"]


def test_tokens_are_indexed_by_frequency_without_rare_ones(text):
    tokens = [token for line in LINES for token in tokenize(line)]
    counts = {token: tokens.count(token) for token in tokens}
    frequent = [token for token in counts if counts[token] >= 5]
    assert sorted(text.tokens) == sorted(frequent)
    assert "rare" not in text.tokens
    assert text.counts.tolist() == [counts[token] for token in text.tokens]
    assert text.counts.tolist() == sorted(text.counts.tolist(), reverse=True)
    lines = [[text.tokens[k] for k in line] for line in text.lines()]
    expected = [[t for t in tokenize(line) if t in frequent] for line in LINES]
    assert lines == [line for line in expected if line]
    assert len(text.ends) == len(LINES)


def entries(counts):
    return zip(counts.row.tolist(), counts.col.tolist(), counts.data.tolist(), strict=True)


def test_cooccurrences_equal_plain_loops(text):
    expected = {}
    for line in text.lines():
        for a in range(len(line)):
            for b in range(len(line)):
                if 0 < abs(a - b) <= 10:
                    pair = (int(line[a]), int(line[b]))
                    expected[pair] = expected.get(pair, 0) + 1 / abs(a - b)
    found = {(i, j): pytest.approx(x) for i, j, x in entries(count_neighbours(text))}
    assert found == expected


def test_the_window_ends_after_ten_tokens_and_at_the_line(write):
    line = " ".join(f"w{k}" for k in range(14))
    text = read_training_text(write("t.txt", f"{line}\n" * 5))
    distances = {
        (abs(int(text.tokens[i][1:]) - int(text.tokens[j][1:])), round(x, 9))
        for i, j, x in entries(count_neighbours(text))
    }
    assert distances == {(d, round(5 / d, 9)) for d in range(1, 11)}


def test_the_loss_of_glove_is_that_of_the_formula():
    rng = np.random.default_rng(1)
    words, contexts = rng.normal(size=(2, 3, 5))
    pairs, counts = np.array([[2, 0, 1], [0, 0, 2]]), np.array([0.1, 7.0, 250.0])
    expected = 0.0
    for (i, j), x in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        error = words[i, :-1] @ contexts[j, :-1] + words[i, -1] + contexts[j, -1] - np.log(x)
        expected += 0.5 * min(1.0, (x / 100) ** 0.75) * error**2
    given = map(torch.from_numpy, (words, contexts, pairs, counts))
    assert float(glove_loss(*given)) == pytest.approx(expected)


@pytest.mark.parametrize("train", [train_glove, train_sgns])
def test_words_of_one_topic_become_similar(write, train):
    text = read_training_text(write("t.txt", "\n".join(topics())))
    config = WordVectorConfig(dim=16, epochs=40, seed=3)
    vectors = train(text, config)
    assert sorted(vectors.tokens) == sorted(text.tokens)
    assert vectors.vectors.shape == (8, 16)
    query = SimilarityQuery("fever 热", "heat 烧", ("bone 骨", "fracture", "unknown"), ("A", "A"))
    scores = vectors(collect_names([query]), None)
    assert scores[0, 0] > scores[0, 1:].max() + 0.1
    assert scores[0, 3] == 0
    again = train(text, config)
    assert (again.vectors == vectors.vectors).all()
    other = train(text, WordVectorConfig(dim=16, epochs=40, seed=4))
    assert (other.vectors != vectors.vectors).any()


def test_a_name_is_the_mean_of_its_known_tokens():
    vectors = WordVectors(["热", "fever"], np.array([[1, 0], [3, 4]], np.float32))
    encoded = vectors.encode(["Fever 热 热", "unknown fever", "unknown"])
    np.testing.assert_allclose(encoded, [[5 / 3, 4 / 3], [3, 4], [0, 0]], rtol=1e-6)


def test_chinese_words_have_vectors_of_their_own(write):
    """Only characters had vectors in Chinese."""
    pytest.importorskip("rjieba")
    split = ChineseWordTokenizer(["糖尿病肾病", "ＨＰＶ感染", "头", "a b"])
    line = "患者确诊糖尿病肾病，伴HPV感染 Type-2 头痛。"
    assert split(line) == ["患者", "确诊", "糖尿病肾病", "伴", "hpv感染", "type-2", "头痛"]
    assert "糖尿病肾病" not in ChineseWordTokenizer()(line)
    text = read_training_text(write("t.txt", f"{line}\n" * 6), None, split)
    assert {"糖尿病肾病", "头痛", "伴"} <= set(text.tokens)
    assert "糖" not in text.tokens
    for train in (train_sgns, train_glove):
        vectors = train(text, WordVectorConfig(dim=4, epochs=1))
        rows = {token: vectors.vectors[k] for k, token in enumerate(vectors.tokens)}
        encoded = vectors.encode(["糖尿病肾病", "患者头痛", "者伴", "虎"])
        np.testing.assert_allclose(encoded[0], rows["糖尿病肾病"], rtol=1e-6)
        np.testing.assert_allclose(encoded[1], (rows["患者"] + rows["头痛"]) / 2, rtol=1e-5)
        np.testing.assert_allclose(encoded[2], rows["伴"], rtol=1e-6)  # its only known character
        assert not encoded[3].any()


def test_a_name_without_a_known_word_is_the_mean_of_its_characters():
    pytest.importorskip("rjieba")
    given = np.array([[1, 0], [3, 4]], np.float32)
    vectors = WordVectors(["糖", "病"], given, ChineseWordTokenizer(["糖尿病"]))
    np.testing.assert_allclose(vectors.encode(["糖尿病"]), [[2, 2]])


def test_invalid_input_is_refused(write):
    with pytest.raises(InputError, match="no word or character 5 times"):
        read_training_text(write("t.txt", "a b c\n"))
    with pytest.raises(ConfigError, match="dim: expected"):
        WordVectorConfig(dim=0)

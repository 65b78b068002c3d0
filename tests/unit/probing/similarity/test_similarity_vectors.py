"""Text as tokens, and the vectors trained on it."""

import numpy as np
import pytest

from biograft.errors import ConfigError, InputError
from biograft.probing.similarity import (
    SimilarityQuery,
    TrainingConfig,
    WordVectors,
    gather,
    read_training_text,
    train_glove,
    train_sgns,
    word_vectors as glove_module,
)
from biograft.probing.similarity.word_vectors import (
    count_neighbours,
    new_parameters,
    tokenize,
    update,
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


def test_text_is_numbered_by_frequency_and_rare_tokens_go(text):
    tokens = [token for line in LINES for token in tokenize(line)]
    counts = {token: tokens.count(token) for token in tokens}
    kept = [token for token in counts if counts[token] >= 5]
    assert sorted(text.tokens) == sorted(kept)
    assert "rare" not in text.tokens
    assert text.counts.tolist() == [counts[token] for token in text.tokens]
    assert text.counts.tolist() == sorted(text.counts.tolist(), reverse=True)
    lines = [[text.tokens[k] for k in line] for line in text.lines()]
    expected = [[t for t in tokenize(line) if t in kept] for line in LINES]
    assert lines == [line for line in expected if line]
    assert len(text.ends) == len(LINES)


def test_counts_of_neighbours_are_those_of_plain_loops(text, monkeypatch):
    expected = {}
    for line in text.lines():
        for a in range(len(line)):
            for b in range(len(line)):
                if 0 < abs(a - b) <= 10:
                    pair = (int(line[a]), int(line[b]))
                    expected[pair] = expected.get(pair, 0) + 1 / abs(a - b)
    for block in (1_000_000, 5):
        monkeypatch.setattr(glove_module, "_BLOCK", block)
        counts = count_neighbours(text)
        found = zip(*(column.tolist() for column in counts), strict=True)
        assert {(i, j): pytest.approx(x) for i, j, x in found} == expected
        assert len(counts.rows) == len(expected)


def test_the_window_ends_after_ten_tokens_and_at_the_line(write):
    line = " ".join(f"w{k}" for k in range(14))
    text = read_training_text(write("t.txt", f"{line}\n" * 5))
    counts = count_neighbours(text)
    far = {(abs(int(text.tokens[i][1:]) - int(text.tokens[j][1:])), round(x, 9))
           for i, j, x in zip(*counts, strict=True)}  # fmt: skip
    assert far == {(d, round(5 / d, 9)) for d in range(1, 11)}


def loss(x, w, c):
    """One entry's loss by the formula; the biases stand last."""
    error = w[:-1] @ c[:-1] + w[-1] + c[-1] - np.log(x)
    return 0.5 * min(1.0, (x / 100) ** 0.75) * error**2


@pytest.mark.parametrize("x", [0.1, 7.0, 100.0, 250.0])
def test_a_step_of_glove_follows_the_slope_of_its_loss(x):
    vectors, squares = new_parameters(3, 4, np.random.default_rng(1))
    vectors *= 4
    squares += np.random.default_rng(2).random(squares.shape)
    before, sums = vectors.copy(), squares.copy()
    w, c = before[0, 2], before[1, 0]
    entry = [np.array([k], t) for k, t in ((2, np.int32), (0, np.int32), (x, np.float64))]
    told = update(*entry, vectors, squares, np.array([0]))
    assert told == pytest.approx(loss(x, w, c))
    for side, row in ((0, 2), (1, 0)):
        for k in range(5):
            moved = np.zeros(5)
            moved[k] = 1e-6
            ends = [loss(x, w + s * moved, c) if side == 0 else loss(x, w, c + s * moved)
                    for s in (1, -1)]  # fmt: skip
            slope = (ends[0] - ends[1]) / 2e-6
            step = vectors[side, row, k] - before[side, row, k]
            assert step == pytest.approx(-0.05 * slope / np.sqrt(sums[side, row, k]), abs=1e-7)
            assert squares[side, row, k] - sums[side, row, k] == pytest.approx(slope**2, abs=1e-6)
    untouched = np.ones_like(vectors, bool)
    untouched[0, 2] = untouched[1, 0] = False
    assert (vectors[untouched] == before[untouched]).all()


def test_glove_lowers_its_loss(text):
    counts = count_neighbours(text)
    parameters = new_parameters(len(text.tokens), 8, np.random.default_rng(0))
    order = np.arange(len(counts.rows))
    losses = [update(*counts, *parameters, order) for _ in range(200)]
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("train", [train_glove, train_sgns])
def test_words_of_one_topic_become_alike(write, train):
    text = read_training_text(write("t.txt", "\n".join(topics())))
    config = TrainingConfig(dim=16, epochs=40, seed=3)
    vectors = train(text, config)
    assert sorted(vectors.tokens) == sorted(text.tokens)
    assert vectors.vectors.shape == (8, 16)
    query = SimilarityQuery("fever 热", "heat 烧", ("bone 骨", "fracture", "unknown"), ("A", "A"))
    scores = vectors(gather([query]), None)
    assert scores[0, 0] > scores[0, 1:].max() + 0.1
    assert scores[0, 3] == 0
    again = train(text, config)
    assert (again.vectors == vectors.vectors).all()
    other = train(text, TrainingConfig(dim=16, epochs=40, seed=4))
    assert (other.vectors != vectors.vectors).any()


def test_a_name_is_the_mean_of_what_is_known():
    vectors = WordVectors(["热", "fever"], np.array([[1, 0], [3, 4]], np.float32))
    found = vectors.encode(["Fever 热 热", "unknown fever", "unknown"])
    np.testing.assert_allclose(found, [[5 / 3, 4 / 3], [3, 4], [0, 0]], rtol=1e-6)


def test_what_cannot_be_trained_is_refused(write):
    with pytest.raises(InputError, match="no word or character 5 times"):
        read_training_text(write("t.txt", "a b c\n"))
    with pytest.raises(ConfigError, match="dim: expected 1 or more, found 0"):
        TrainingConfig(dim=0)

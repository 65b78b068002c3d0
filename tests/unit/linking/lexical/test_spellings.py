"""Chinese terms with a character of the same sound or of similar shape, in lexical search."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.linking import LexicalIndex
from biograft.linking.lexical.ngrams import join_texts
from biograft.linking.lexical.spellings import other_spellings

NAMES = "心肌梗死 脑梗死 末梢神经炎 急性阑尾炎 肺炎 左肾结石 右肾结石 胃溃疡".split()


@pytest.fixture
def index(store_of):
    return LexicalIndex.build(store_of([{"id": name, "name": name} for name in NAMES]))


def spelt(index, *texts):
    return other_spellings(join_texts(texts), index._vocabulary)


def test_a_similar_character_is_replaced_by_that_of_a_name(index):
    assert spelt(index, "心机梗死", "胃溃汤", "急性兰尾炎", "未梢神经炎") == [
        (0, "心肌梗死"),
        (1, "胃溃疡"),
        (2, "急性阑尾炎"),
        (3, "末梢神经炎"),
    ]


@pytest.mark.parametrize("text", [*NAMES, "CT", "", "头痛", "肺炎伴发热", "左肺炎", "双肾结石"])
def test_what_names_or_ordinary_text_have_is_not_changed(index, text):
    assert spelt(index, text) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [("心机梗死", "心肌梗死"), ("未梢神经炎", "末梢神经炎"), ("急性兰尾炎", "急性阑尾炎")],
)
def test_the_name_comes_first_with_a_lower_score(index, text, name):
    hits = index.search([text, name], 3)
    found = [index.kb.name(int(row)).text for row in hits.rows[:, 0]]
    assert found == [name, name]
    assert 0.4 < hits.scores[0, 0] < 0.98 < hits.scores[1, 0]
    again = index.score([text], hits.rows[:1])
    np.testing.assert_allclose(again[0, 0], hits.scores[0, 0], rtol=1e-5)


def test_a_store_without_chinese_names_changes_nothing(store_of):
    index = LexicalIndex.build(store_of([{"id": "A", "name": "appendicitis"}]))
    assert spelt(index, "心机梗死", "appendicitis") == []


def test_compiled_and_plain_loops_agree(index):
    from biograft.linking.lexical import spellings

    texts = join_texts(["心机梗死", "胃溃汤", "未梢神经炎", "x"])
    similar, ordinary = spellings._similar(), spellings.ordinary_pairs()
    arguments = (texts, index._vocabulary.keys, *similar, ordinary)
    plain = spellings._replaced.uncompiled(*arguments)
    assert plain.tolist() == spellings._replaced.dispatcher(*arguments).tolist()

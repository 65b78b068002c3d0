"""A BERT from scratch: its tokens, its weights, its folder."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoTokenizer

from biograft.errors import ConfigError
from biograft.nn.pretrained import load_masked_lm
from biograft.nn.scratch_configs import NewBert

TEXTS = ["患者有急性心肌梗死病史，服用 Aspirin 100mg。", "血压正常，Aspirin 有效。患者出院。"] * 3
SMALL = NewBert(width=16, layers=1, heads=2, feed_forward=32, n_tokens=400, max_length=32)


@pytest.fixture(scope="module")
def made():
    return SMALL.create(TEXTS, 0)


def test_a_chinese_character_is_a_token_and_other_words_are_pieces(made):
    tokens = made.tokenizer.tokenize("患者服用 aspirin。")
    assert tokens[:4] == ["患", "者", "服", "用"]
    assert "".join(tokens[4:]).replace("##", "") == "aspirin。"
    assert made.tokenizer.convert_tokens_to_ids(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]) == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip
    assert made.tokenizer.tokenize("龘") == ["[UNK]"]


def test_two_texts_are_two_segments(made):
    encoded = made.tokenizer("患者", "血压")
    assert encoded["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]
    assert made.tokenizer.convert_ids_to_tokens(encoded["input_ids"])[::3] == [
        "[CLS]", "[SEP]", "[SEP]",
    ]  # fmt: skip


def test_equal_texts_and_seeds_give_equal_models(made):
    again, other = SMALL.create(iter(TEXTS), 0), SMALL.create(TEXTS, 1)
    assert again.tokenizer.get_vocab() == made.tokenizer.get_vocab()
    for name, weights in made.model.state_dict().items():
        assert torch.equal(weights, again.model.state_dict()[name])
    differ = [
        not torch.equal(a, b)
        for a, b in zip(made.model.parameters(), other.model.parameters(), strict=True)
    ]
    assert any(differ)


def test_the_folder_is_a_bert_as_any_other(made, tmp_path):
    made.model.save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    loaded = load_masked_lm(tmp_path)
    assert not loaded.new_head
    given = torch.tensor([made.tokenizer("患者有效")["input_ids"]])
    made.model.eval()
    assert torch.allclose(loaded.model.eval()(given).logits, made.model(given).logits)
    assert AutoTokenizer.from_pretrained(tmp_path).tokenize("患者") == ["患", "者"]


def test_case_may_be_kept():
    kept = NewBert(width=16, layers=1, heads=2, n_tokens=400, lower=False).create(TEXTS, 0)
    assert "A" in "".join(kept.tokenizer.tokenize("Aspirin"))


def test_nothing_to_learn_tokens_from():
    with pytest.raises(ConfigError, match="there is no text to learn a tokenizer from"):
        SMALL.create([], 0)

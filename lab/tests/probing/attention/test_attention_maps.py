"""Attention maps against plain loops over transformers' results."""

import numpy as np
import pytest
import torch
from tiny_models import tiny_tokenizer
from transformers import AutoModel, AutoTokenizer, DistilBertConfig, DistilBertModel

from biograft.errors import BiograftError
from biograft.models.pretrained import quiet_transformers
from biograft_lab.probing.attention import AttentionConfig, AttentionReader, UnfitError
from biograft_lab.probing.attention.maps import choose_layer

TEXT = "患者有高血压 and acute heart attack 史"


def published(folder, text):
    """Return the tokens, and the attention of each layer, from transformers."""
    with quiet_transformers():
        model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    batch = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        return batch["input_ids"][0].tolist(), model(**batch, output_attentions=True).attentions


@pytest.mark.parametrize("layer", [1, 2, 3])
def test_a_map_is_that_of_transformers(encoder_of, layer):
    ids, layers = published(encoder_of(), TEXT)
    reader = AttentionReader.from_pretrained(encoder_of(), device="cpu")
    assert (reader.n_layers, reader.n_heads) == (3, 4)
    attention = reader.read(TEXT, layer)
    assert attention.ids.tolist() == ids
    for i in range(len(ids)):
        for j in range(len(ids)):
            summed = sum(float(layers[layer - 1][0, head, i, j]) for head in range(4))
            assert attention.weights[i, j] == pytest.approx(summed, abs=1e-6)
    for head in (1, 4):
        one = reader.read(TEXT, layer, head).weights
        np.testing.assert_allclose(one, layers[layer - 1][0, head - 1].numpy(), atol=1e-7)
    np.testing.assert_allclose(attention.weights.sum(axis=1), 4, atol=1e-5)


def test_what_stands_around_and_inside_by_plain_loops(encoder_of):
    _, layers = published(encoder_of(), TEXT)
    attention = AttentionReader.from_pretrained(encoder_of(), device="cpu").read(TEXT, 2)
    start = TEXT.index("heart")
    first, last = attention.tokens_of(start, start + len("heart attack"))
    assert [attention.token_text(k) for k in range(first, last + 1)] == ["heart", "attack"]
    weights = layers[1][0].sum(0).tolist()
    n = len(weights)
    others = [t for t in range(1, n - 1) if t not in (first, last)]  # neither [CLS] nor [SEP]
    assert attention.context(first, last).tolist() == others
    towards = [weights[t][first] + weights[t][last] for t in others]
    np.testing.assert_allclose(attention.around(first, last, "to"), towards, atol=1e-6)
    away = [weights[first][t] + weights[last][t] for t in others]
    np.testing.assert_allclose(attention.around(first, last, "from"), away, atol=1e-6)
    within = [[weights[i][j] for j in (first, last)] for i in (first, last)]
    np.testing.assert_allclose(attention.inside(first, last), within, atol=1e-6)


def test_a_knowledge_layer_changes_only_the_layers_behind_it(encoder_of, knowing_encoder):
    plain = AttentionReader.from_pretrained(encoder_of(), device="cpu")
    knowing = AttentionReader.from_pretrained(knowing_encoder, device="cpu")
    assert (knowing.n_layers, knowing.n_heads) == (3, 4)
    np.testing.assert_allclose(
        knowing.read(TEXT, 1).weights, plain.read(TEXT, 1).weights, atol=1e-5
    )
    assert np.abs(knowing.read(TEXT, 2).weights - plain.read(TEXT, 2).weights).max() > 0.01


@pytest.mark.parametrize("layer", [1, 2, 3])
def test_attention_of_a_model_with_knowledge_by_hand(knowing_encoder, layer):
    """softmax(q k / sqrt(width)) of the states that go into the layer."""
    reader = AttentionReader.from_pretrained(knowing_encoder, device="cpu")
    with quiet_transformers():
        model = AutoModel.from_pretrained(knowing_encoder).eval()
    ids = torch.from_numpy(reader.read(TEXT, layer).ids)[None]
    entering = []
    stack = model.bert.encoder.layer[layer - 1]
    stack.register_forward_pre_hook(lambda _, given: entering.append(given[0]))
    with torch.no_grad():
        model(input_ids=ids)
        states, attention = entering[0][0], stack.attention.self
        expected = 0
        for head in range(4):
            rows = slice(4 * head, 4 * head + 4)
            query = states @ attention.query.weight[rows].T + attention.query.bias[rows]
            key = states @ attention.key.weight[rows].T + attention.key.bias[rows]
            expected = expected + torch.softmax(query @ key.T / 2, dim=-1)
    np.testing.assert_allclose(reader.read(TEXT, layer).weights, expected.numpy(), atol=1e-5)


def test_another_architecture(tmp_path):
    tokenizer = tiny_tokenizer([TEXT])
    config = DistilBertConfig(vocab_size=len(tokenizer), dim=8, hidden_dim=8, n_layers=2, n_heads=2)
    with quiet_transformers():
        DistilBertModel(config).save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
    reader = AttentionReader.from_pretrained(tmp_path, device="cpu")
    assert (reader.n_layers, reader.n_heads) == (2, 2)
    np.testing.assert_allclose(reader.read(TEXT, 1).weights.sum(axis=1), 2, atol=1e-5)


def test_offsets_refer_to_the_unaltered_text(encoder_of):
    reader = AttentionReader.from_pretrained(encoder_of(), device="cpu")
    text = "Ｈéart  FEVER 😀 高血压"
    attention = reader.read(text, 1)
    for name in ("FEVER", "高血压", "😀"):
        start = text.index(name)
        first, last = attention.tokens_of(start, start + len(name))
        covered = text[attention.offsets[first, 0] : attention.offsets[last, 1]]
        assert covered == name


def test_a_text_as_long_as_the_encoder_reads(encoder_of):
    reader = AttentionReader.from_pretrained(encoder_of(positions=12), device="cpu")
    assert len(reader.read("头" * 10, 1).ids) == 12
    with pytest.raises(UnfitError, match=r"too long for the encoder: 13 tokens, and .* reads 12"):
        reader.read("头" * 11, 1)


def test_layers_and_heads_that_there_are(encoder_of):
    assert [choose_layer(0, 11, n, "x") for n in (1, 2, 10, 11, 12, 24)] == [1, 1, 9, 11, 11, 11]
    assert choose_layer(3, 11, 12, "x") == 3
    reader = AttentionReader.from_pretrained(encoder_of(), device="cpu")
    assert reader.layer(0, 11) == 2
    with pytest.raises(BiograftError, match=r"layer: expected 1 to 3, .* found 4"):
        reader.layer(4, 11)
    with pytest.raises(BiograftError, match=r"head: expected 1 to 4, .* found 5"):
        reader.check_head(5)
    for wrong in ({"layer": -1}, {"head": -1}, {"direction": "both"}):
        with pytest.raises(BiograftError, match="expected"):
            AttentionConfig(**wrong)


def test_no_token_stands_for_what_the_tokenizer_drops(encoder_of):
    attention = AttentionReader.from_pretrained(encoder_of(), device="cpu").read(
        "fever \u200b x", 1
    )
    with pytest.raises(UnfitError, match="no token stands for the entity"):
        attention.tokens_of(6, 7)

"""Masked language models: scores at some positions only, and refusals."""

import pytest
import torch
from tiny_masked_lm import tiny_masked_lm_folder
from transformers import AutoModelForMaskedLM, AutoTokenizer, RobertaConfig, RobertaForMaskedLM

from biograft.errors import StoreError
from biograft.models import MaskedLanguageModel

TEXTS = ("aspirin treats pain", "fever of flu")


@pytest.fixture
def folder(tmp_path):
    return tiny_masked_lm_folder(tmp_path / "lm", TEXTS)


def test_scores_at_positions_equal_those_of_the_whole_model(folder):
    lm = MaskedLanguageModel.from_pretrained(folder, device="cpu")
    ids = torch.tensor([lm.token_ids("aspirin treats [MASK]"), lm.token_ids("fever of pain")])
    positions = torch.tensor([[3, 1], [2, 4]])
    with torch.no_grad():
        scores = lm.scores(ids, positions)
        whole = AutoModelForMaskedLM.from_pretrained(folder)(ids).logits
        again = lm.model(ids).logits
    assert scores.shape == (2, 2, lm.n_tokens)
    for text in range(2):
        for k in range(2):
            torch.testing.assert_close(scores[text, k], whole[text, positions[text, k]])
    torch.testing.assert_close(again, whole)  # the model is left as it was


def test_positions_of_roberta_begin_after_the_padding(folder):
    config = RobertaConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=34,
        pad_token_id=1,
    )
    model = RobertaForMaskedLM(config)
    lm = MaskedLanguageModel(model, AutoTokenizer.from_pretrained(folder), "roberta")
    assert lm.max_length == 32
    ids = torch.randint(5, 60, (2, 32))
    with torch.no_grad():
        scores = lm.scores(ids, torch.tensor([[31], [0]]))
        whole = model(ids, attention_mask=torch.ones_like(ids)).logits
    torch.testing.assert_close(scores[:, 0], torch.stack([whole[0, 31], whole[1, 0]]))


def test_missing_weights_are_refused(folder):
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    weights = load_file(path)
    del weights["bert.encoder.layer.1.output.dense.weight"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(StoreError, match=r"lack 1 of the model's tensors \(bert\.encoder"):
        MaskedLanguageModel.from_pretrained(folder)
    weights = load_file(path)
    del weights["cls.predictions.transform.dense.bias"]
    weights["bert.encoder.layer.1.output.dense.weight"] = torch.zeros(16, 32)
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(StoreError, match="without a language modelling head"):
        MaskedLanguageModel.from_pretrained(folder)
    weights["cls.predictions.transform.dense.bias"] = torch.full((16,), torch.nan)
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(StoreError, match="NaN or infinity"):
        MaskedLanguageModel.from_pretrained(folder)


def test_models_with_knowledge_layers_are_supported(folder):
    from biograft.models import KnowledgeBertForMaskedLM

    ours = KnowledgeBertForMaskedLM.from_bert(
        folder,
        torch.randn(9, 4),
        knowledge_layers={"entity_memory": {"after": 1, "n_nearest": 3}},
    )
    own = folder.parent / "ours"
    ours.save_pretrained(own)
    AutoTokenizer.from_pretrained(folder).save_pretrained(own)
    lm = MaskedLanguageModel.from_pretrained(own, device="cpu")
    assert isinstance(lm.model, KnowledgeBertForMaskedLM)
    assert lm.max_length == 40
    ids, positions = torch.tensor([lm.token_ids("aspirin [MASK] [MASK]")]), torch.tensor([[3, 2]])
    with torch.no_grad():
        torch.testing.assert_close(lm.scores(ids, positions)[0], ours.eval()(ids).logits[0, [3, 2]])

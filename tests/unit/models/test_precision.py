import pytest
import torch
from transformers import BartConfig, BartModel, BertConfig, BertForMaskedLM, PreTrainedModel

from biograft.models import (
    attention_for_training,
    autocast_in,
    choose_precision,
    processor_has_bf16,
)

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _forget():
    processor_has_bf16.cache_clear()
    yield
    processor_has_bf16.cache_clear()


@pytest.mark.parametrize(
    ("capabilities", "chosen"),
    [
        ({"avx512_bf16": True}, "bf16"),
        ({"amx_bf16": True, "avx512_bf16": False}, "bf16"),
        ({"bf16": True}, "bf16"),
        ({"avx512_f": True, "avx512_bf16": False, "amx_bf16": False}, "fp32"),
        ({}, "fp32"),
    ],
)
def test_auto_is_bf16_where_the_processor_has_it(monkeypatch, capabilities, chosen):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert choose_precision("auto", CPU) == chosen


BERT = {
    "vocab_size": 9,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
}
TOKENS, MASK = torch.arange(9)[None], torch.tensor([[1] * 6 + [0] * 3])


def ways_of(model):
    """How each part of a model attends."""
    parts = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    return {part.config._attn_implementation for part in parts}


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (lambda: BertForMaskedLM(BertConfig(**BERT)), {}),
        (
            lambda: BartModel(
                BartConfig(
                    vocab_size=9,
                    d_model=8,
                    encoder_layers=1,
                    decoder_layers=1,
                    encoder_attention_heads=2,
                    decoder_attention_heads=2,
                    encoder_ffn_dim=8,
                    decoder_ffn_dim=8,
                )
            ),
            {"decoder_input_ids": TOKENS},
        ),
    ],
)
@pytest.mark.parametrize("mask", [MASK, torch.ones_like(MASK)])
def test_for_gradients_attention_is_plain_and_answers_are_the_same(make, inputs, mask):
    model = torch.nn.ModuleDict({"inner": make().eval()})

    def answer():
        with torch.no_grad(), autocast_in("bf16", CPU):
            return model["inner"](TOKENS, attention_mask=mask, **inputs)[0].float()

    before = answer()
    with attention_for_training(model, "bf16", CPU):
        assert ways_of(model) == {"eager"}
        within = answer()
    assert ways_of(model) == {"sdpa"}
    assert torch.allclose(before[:, :6], within[:, :6], atol=3e-2)
    assert torch.equal(before, answer())


def test_attention_goes_back_after_an_error_and_stays_in_full_precision():
    model = BertForMaskedLM(BertConfig(**BERT))
    with attention_for_training(model, "fp32", CPU):
        assert ways_of(model) == {"sdpa"}
    with pytest.raises(KeyError), attention_for_training(model, "bf16", CPU):
        raise KeyError
    assert ways_of(model) == {"sdpa"}
    model.set_attn_implementation("eager")  # chosen by someone else
    with attention_for_training(model, "bf16", CPU):
        pass
    assert ways_of(model) == {"eager"}

import pytest
import torch
from transformers import BertConfig, BertModel

from biograft.errors import ConfigError
from biograft.nn import precision
from biograft.nn.precision import (
    choose_attention,
    choose_precision,
    computing_in,
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


@pytest.mark.parametrize(
    ("flags", "chosen"), [("avx2 avx512_bf16 f16c", "bf16"), ("avx2", "fp32"), (None, "fp32")]
)
def test_where_torch_cannot_tell_the_system_is_asked(monkeypatch, tmp_path, flags, chosen):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(precision, "_PROCESSOR", tmp_path / "cpuinfo")
    if flags is not None:
        (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags : {flags}\n")
    assert choose_precision("auto", CPU) == chosen


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_what_is_asked_for_is_used(name):
    with computing_in(name, CPU):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert product.dtype == (torch.bfloat16 if name == "bf16" else torch.float32)


def test_an_unknown_precision_is_refused():
    with pytest.raises(ConfigError, match="precision: expected one of auto, fp32, bf16, found 'x'"):
        choose_precision("x", CPU)
    assert precision.PRECISIONS[0] == "auto"


@pytest.mark.parametrize(("chosen", "way"), [("bf16", "eager"), ("fp32", "sdpa")])
def test_attention_is_plain_where_its_gradients_are_quicker(chosen, way):
    config = BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    encoder = torch.nn.ModuleDict({"encoder": BertModel(config).eval()})
    tokens, mask = torch.arange(9)[None], torch.tensor([[1] * 6 + [0] * 3])
    before = encoder["encoder"](tokens, attention_mask=mask).last_hidden_state
    choose_attention(encoder, chosen, CPU)
    assert encoder["encoder"].config._attn_implementation == way
    after = encoder["encoder"](tokens, attention_mask=mask).last_hidden_state
    assert torch.allclose(before[:, :6], after[:, :6], atol=1e-6)

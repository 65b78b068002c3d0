"""Any backbone of transformers is an encoder; vectors are compared with sentence-transformers'."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tiny_models import tiny_encoder_folder, tiny_tokenizer
from transformers import (
    DebertaV2Config,
    DebertaV2Model,
    ModernBertConfig,
    ModernBertModel,
    Qwen3Config,
    Qwen3Model,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from biograft.errors import ConfigError, StoreError
from biograft.models import TextEncoder

sentence_transformers = pytest.importorskip("sentence_transformers")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

TEXTS = ["heart attack", "myocardial  infarction", "flu", "a long name of a disorder of the heart"]
QUERY, DOCUMENT = "query: find ", "name: "
_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_SHORT = {
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
} | dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"))
BACKBONES = {
    "ModernBERT": (ModernBertConfig, ModernBertModel, {}),
    "DeBERTa": (DebertaV2Config, DebertaV2Model, {}),
    "XLM-R": (XLMRobertaConfig, XLMRobertaModel, {}),
    "Qwen3": (Qwen3Config, Qwen3Model, {"num_key_value_heads": 2, "head_dim": 8}),
}
POOLINGS = ("cls", "mean", "mean_sqrt_len_tokens", "weightedmean", "max", "lasttoken")


def backbone_folder(path, name, texts=(*TEXTS, QUERY, DOCUMENT)):
    """Write a random model of a kind as a plain transformers folder."""
    config, kind, more = BACKBONES[name]
    tokenizer = tiny_tokenizer(texts)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = kind(config(vocab_size=len(tokenizer), **_SIZES, **_SHORT, **more))
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def save_by_sentence_transformers(folder, out, pooling, *, include_prompt=True):
    """Save a folder as sentence-transformers does, with prompts of both sides."""
    from sentence_transformers.models import Pooling, Transformer

    body = Transformer(str(folder), max_seq_length=64)
    pool = Pooling(32, pooling_mode=pooling, include_prompt=include_prompt)
    prompts = {"query": QUERY, "document": DOCUMENT}
    saved = sentence_transformers.SentenceTransformer(
        modules=[body, pool], prompts=prompts, device="cpu"
    )
    saved.save(str(out))
    return saved


@pytest.mark.parametrize(
    ("name", "pooling"),
    [("Qwen3", pooling) for pooling in POOLINGS]
    + [("ModernBERT", "mean"), ("DeBERTa", "cls"), ("XLM-R", "weightedmean")],
)
def test_a_folder_of_sentence_transformers_gives_its_vectors(tmp_path, name, pooling):
    folder = backbone_folder(tmp_path / "plain", name)
    theirs = save_by_sentence_transformers(folder, tmp_path / "saved", pooling)
    ours = TextEncoder.from_pretrained(tmp_path / "saved")
    assert (ours.pooling, ours.settings.query_prompt) == (pooling, QUERY)
    for prompt_name, encode in (
        ("query", theirs.encode_query),
        ("document", theirs.encode_document),
    ):
        vectors = ours.encode(TEXTS, prompt_name=prompt_name, precision="fp32", normalize=False)
        np.testing.assert_allclose(vectors, encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "pooling"), [("ModernBERT", "max"), ("XLM-R", "mean"), ("Qwen3", "lasttoken")]
)
def test_sentence_transformers_reads_what_we_save(tmp_path, name, pooling):
    folder = backbone_folder(tmp_path / "plain", name)
    ours = TextEncoder.from_pretrained(folder, pooling=pooling, query_prompt=QUERY)
    ours.save_pretrained(tmp_path / "saved")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    for prompt_name in ("query", "document"):
        vectors = ours.encode(TEXTS, prompt_name=prompt_name, precision="fp32")
        np.testing.assert_allclose(
            vectors, theirs.encode(TEXTS, prompt_name=prompt_name), atol=1e-5
        )
    again = TextEncoder.from_pretrained(tmp_path / "saved")
    assert (again.settings, again.fingerprint()) == (ours.settings, ours.fingerprint())


@pytest.mark.parametrize("pooling", ["cls", "mean", "weightedmean", "lasttoken"])
def test_a_prompt_may_be_left_out_of_the_pooling(tmp_path, pooling):
    folder = backbone_folder(tmp_path / "plain", "XLM-R")
    theirs = save_by_sentence_transformers(
        folder, tmp_path / "saved", pooling, include_prompt=False
    )
    ours = TextEncoder.from_pretrained(tmp_path / "saved")
    vectors = ours.encode(TEXTS, prompt_name="query", precision="fp32", normalize=False)
    np.testing.assert_allclose(vectors, theirs.encode_query(TEXTS), atol=1e-5)


def test_both_sides_in_one_batch_are_those_of_each(tmp_path):
    folder = backbone_folder(tmp_path / "plain", "Qwen3")
    encoder = TextEncoder.from_pretrained(
        folder, pooling="lasttoken", query_prompt=QUERY, document_prompt=DOCUMENT
    )
    encoder.model.eval()
    with torch.no_grad():
        both = encoder.embed(encoder.tokenize(TEXTS, n_queries=2)).numpy()
    options = {"precision": "fp32", "normalize": False}
    queries = encoder.encode(TEXTS[:2], prompt_name="query", **options)
    documents = encoder.encode(TEXTS[2:], **options)
    np.testing.assert_allclose(both, np.concatenate([queries, documents]), atol=1e-5)


def test_vectors_do_not_depend_on_the_batch(tmp_path):
    folder = backbone_folder(tmp_path / "plain", "Qwen3")
    encoder = TextEncoder.from_pretrained(folder, pooling="lasttoken")
    alone = np.concatenate([encoder.encode([text], precision="fp32") for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS, precision="fp32"), alone, atol=1e-6)


def test_joined_poolings_and_unknown_sides_are_refused(tmp_path):
    folder = backbone_folder(tmp_path / "plain", "XLM-R")
    save_by_sentence_transformers(folder, tmp_path / "saved", "mean")
    with pytest.raises(ConfigError, match="prompt_name: expected one of query, document"):
        TextEncoder.from_pretrained(tmp_path / "saved").encode(TEXTS, prompt_name="passage")
    path = tmp_path / "saved" / "1_Pooling" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pooling_mode": ["cls", "mean"]}))
    with pytest.raises(StoreError, match="pooling is cls, mean; expected one of cls, max"):
        TextEncoder.from_pretrained(tmp_path / "saved")


def two_towers(tmp_path, query_encoder=None, **options):
    """A ModernBERT for documents and an XLM-R for queries, of one width."""
    document = backbone_folder(tmp_path / "document", "ModernBERT")
    query = backbone_folder(tmp_path / "query", "XLM-R")
    options = {"pooling": "mean", "query_prompt": QUERY, **options}
    both = TextEncoder.from_pretrained(document, query_encoder=query_encoder or query, **options)
    return both, [TextEncoder.from_pretrained(each, **options) for each in (query, document)]


def test_two_towers_give_the_vectors_of_each(tmp_path):
    both, (query, document) = two_towers(tmp_path)
    options = {"precision": "fp32", "normalize": False}
    queries = query.encode(TEXTS[:2], prompt_name="query", **options)
    documents = document.encode(TEXTS[2:], **options)
    found = both.encode(TEXTS[:2], prompt_name="query", **options)
    np.testing.assert_array_equal(found, queries)
    np.testing.assert_array_equal(both.encode(TEXTS[2:], **options), documents)
    for part in (both.model, both.query.model):
        part.eval()
    batch = both.tokenize(TEXTS, n_queries=2)
    with torch.no_grad():
        mixed = both.embed({key: value[[3, 0, 2, 1]] for key, value in batch.items()})
    expected = np.stack([documents[1], queries[0], documents[0], queries[1]])
    np.testing.assert_allclose(mixed.numpy(), expected, atol=1e-5)
    names = {name for name, _ in both.network.named_parameters()}
    assert len(names) == sum(len(list(e.model.parameters())) for e in (query, document))
    narrow = tiny_encoder_folder(tmp_path / "narrow", TEXTS, hidden=16)
    with pytest.raises(ConfigError, match=r"query_encoder: expected vectors of 32 .*, found 16"):
        two_towers(tmp_path / "other", query_encoder=narrow)


def test_two_towers_are_a_router_of_sentence_transformers_both_ways(tmp_path):
    both, _ = two_towers(tmp_path)
    both.save_pretrained(tmp_path / "saved")
    again = TextEncoder.from_pretrained(tmp_path / "saved")
    assert again.fingerprint() == both.fingerprint() != both.query.fingerprint()
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    theirs.save(str(tmp_path / "theirs"))
    back = TextEncoder.from_pretrained(tmp_path / "theirs")
    for prompt_name, encode in (
        ("query", theirs.encode_query),
        ("document", theirs.encode_document),
    ):
        expected = both.encode(TEXTS, prompt_name=prompt_name, precision="fp32")
        np.testing.assert_allclose(encode(TEXTS), expected, atol=1e-5)
        for encoder in (again, back):
            vectors = encoder.encode(TEXTS, prompt_name=prompt_name, precision="fp32")
            np.testing.assert_allclose(vectors, expected, atol=1e-5)
    path = tmp_path / "theirs" / "router_config.json"
    path.write_text(json.dumps({"types": {}, "structure": {"image": []}}))
    with pytest.raises(StoreError, match="expected one encoder for each of query, document"):
        TextEncoder.from_pretrained(tmp_path / "theirs")

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from manifests import reseal
from safetensors.torch import load_file, save_file
from tiny_models import tiny_encoder_folder
from transformers import AutoModel, AutoTokenizer

from biograft.errors import (
    EncoderWarning,
    NotFoundError,
    OutputError,
    StoreError,
)
from biograft.models import EncoderSettings, TextEncoder

TEXTS = [
    "heart attack",
    "Myocardial  Infarction",
    "",
    "a very long name of some disorder of the heart and of the great vessels",
    "flu",
    "heart attack",
    "心脏病",
]


@pytest.fixture
def folder(tmp_path):
    return tiny_encoder_folder(tmp_path / "tiny", TEXTS)


@pytest.fixture
def encoder(folder):
    return TextEncoder.from_pretrained(folder)


def one_by_one(folder, texts, pooling="mean", max_length=64):
    """Encode in the plainest way there is: one text at a time, no padding."""
    model = AutoModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    vectors = []
    for text in texts:
        batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=max_length)
        with torch.no_grad():
            states = model(**batch).last_hidden_state[0]
        vectors.append(states[0] if pooling == "cls" else states.mean(dim=0))
    return torch.stack(vectors).numpy()


def edit(path, **changes):
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**content, **changes}))
    reseal(path)


class TestEncode:
    @pytest.mark.parametrize("pooling", ["mean", "cls"])
    @pytest.mark.parametrize("batch_size", [2, 64])
    def test_equals_one_text_at_a_time(self, folder, pooling, batch_size):
        encoder = TextEncoder.from_pretrained(folder, pooling=pooling)
        vectors = encoder.encode(TEXTS, batch_size=batch_size, precision="fp32", normalize=False)
        np.testing.assert_allclose(vectors, one_by_one(folder, TEXTS, pooling), atol=1e-5)
        assert vectors.dtype == np.float32

    def test_unit_length_on_wish(self, encoder):
        raw = encoder.encode(TEXTS, precision="fp32", normalize=False)
        unit = encoder.encode(TEXTS, precision="fp32")
        np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(unit, raw / np.linalg.norm(raw, axis=1)[:, None], atol=1e-6)

    def test_a_model_in_training_stays_in_training(self, encoder):
        encoder.model.train()
        first, second = encoder.encode(TEXTS), encoder.encode(TEXTS)
        np.testing.assert_array_equal(first, second)  # no dropout
        assert encoder.model.training

    def test_weights_gone_to_nan_are_named(self, encoder):
        with torch.no_grad():
            word = encoder.tokenizer.convert_tokens_to_ids("flu")
            encoder.model.embeddings.word_embeddings.weight[word] = float("nan")
        with pytest.raises(StoreError, match="NaN or infinity for 1 of 7 texts, first 'flu'"):
            encoder.encode(TEXTS)


def test_an_encoder_decoder_is_read_by_its_reading_half(folder, tmp_path):
    from transformers import BartConfig, BartModel

    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=64,
        pad_token_id=0,
    )
    model = BartModel(config).eval()
    model.save_pretrained(tmp_path / "bart")
    tokenizer.save_pretrained(tmp_path / "bart")
    encoder = TextEncoder.from_pretrained(tmp_path / "bart")
    batch = tokenizer("heart attack", return_tensors="pt")
    states = model.get_encoder()(batch["input_ids"]).last_hidden_state
    vector = encoder.encode(["heart attack"], normalize=False, precision="fp32")[0]
    np.testing.assert_allclose(vector, states[0].mean(dim=0).detach().numpy(), atol=1e-5)


class TestSettings:
    def test_case_is_kept_where_the_tokenizer_keeps_it(self, folder):
        content = json.loads((folder / "tokenizer.json").read_text())
        content["normalizer"]["lowercase"] = False
        (folder / "tokenizer.json").write_text(json.dumps(content))
        cased = TextEncoder.from_pretrained(folder)
        assert (cased.lower, cased.prepare("Flu")) == (False, "Flu")
        lowered = TextEncoder.from_pretrained(folder, lower=True)
        assert lowered.tokenize(["FLU"])["input_ids"].equal(cased.tokenize(["flu"])["input_ids"])

    @pytest.mark.parametrize(
        "pooling",
        [
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
            {"pooling_mode": "cls", "embedding_dimension": 32},
        ],
    )
    def test_files_of_sentence_transformers_are_read(self, folder, pooling):
        modules = [
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "1_Pooling").mkdir()
        edit(folder / "1_Pooling" / "config.json", **pooling)
        edit(folder / "sentence_bert_config.json", max_seq_length=20, do_lower_case=True)
        settings = TextEncoder.from_pretrained(folder).settings
        assert settings == EncoderSettings(pooling="cls", max_length=20, lower=True)
        assert TextEncoder.from_pretrained(folder, pooling="mean").pooling == "mean"

    def test_a_layer_that_we_do_not_have_is_refused(self, folder):
        modules = [{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]
        (folder / "modules.json").write_text(json.dumps(modules))
        with pytest.raises(StoreError, match=r"a layer 'Dense'; biograft reads Transformer, Pool"):
            TextEncoder.from_pretrained(folder)


class TestOrigins:
    """Guards: SapBERT from the hub was pooled by the mean of up to 512 tokens, without a word."""

    @pytest.fixture
    def load(self, folder):
        """Load a copy of the folder under a name; warnings are errors."""

        def load_as(name, **options):
            folder.rename(folder.parent / name)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return TextEncoder.from_pretrained(folder.parent / name, **options)

        return load_as

    @pytest.mark.parametrize(
        ("name", "pooling", "family"),
        [
            ("SapBERT-from-PubMedBERT-fulltext", "cls", "SapBERT"),
            ("SapBERT-UMLS-2020AB-all-lang-from-XLMR", "cls", "SapBERT"),
            ("biosyn-sapbert-ncbi-disease", "cls", "BioSyn"),
            (
                "SapBERT-from-PubMedBERT-fulltext-mean-token",
                "mean",
                "SapBERT, mean-token variant",
            ),
        ],
    )
    def test_families_are_known_by_name(self, load, name, pooling, family):
        encoder = load(name)
        assert encoder.settings == EncoderSettings(pooling=pooling, max_length=25, lower=True)
        known = f"known of {family}"
        assert encoder.origins == dict.fromkeys(("pooling", "max_length", "lower"), known)

    def test_what_is_given_counts_most_then_files(self, folder, load):
        modules = [{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "1_Pooling").mkdir()
        edit(folder / "1_Pooling" / "config.json", pooling_mode="mean")
        encoder = load("SapBERT", max_length=9)
        assert (encoder.pooling, encoder.max_length) == ("mean", 9)
        assert encoder.origins == {
            "pooling": "files",
            "max_length": "given",
            "lower": "known of SapBERT",
        }

    @pytest.mark.parametrize("name", ["PubMedBERT", "NA-SapBERT", "sapbertish"])
    def test_a_guessed_pooling_is_warned_of(self, folder, name):
        folder.rename(folder.parent / name)
        message = "using mean pooling and at most 64 tokens; choose with --pooling and --max-length"
        with pytest.warns(EncoderWarning, match=message):
            encoder = TextEncoder.from_pretrained(folder.parent / name)
        assert encoder.origins["pooling"] == "default"

    def test_a_pooling_that_is_stated_is_not(self, load):
        saved = load("plain", pooling="cls")
        saved.save_pretrained(saved.folder.parent / "saved")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = TextEncoder.from_pretrained(saved.folder.parent / "saved")
        assert again.origins == dict.fromkeys(("pooling", "max_length", "lower"), "files")


class TestSave:
    @pytest.mark.parametrize("pooling", ["mean", "cls"])
    @pytest.mark.filterwarnings("ignore::DeprecationWarning:sentence_transformers")
    def test_sentence_transformers_loads_it(self, folder, tmp_path, pooling):
        sentence_transformers = pytest.importorskip("sentence_transformers")
        encoder = TextEncoder.from_pretrained(folder, pooling=pooling, max_length=6)
        encoder.save_pretrained(tmp_path / "saved")
        other = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
        expected = encoder.encode(TEXTS, precision="fp32")
        np.testing.assert_allclose(other.encode(TEXTS), expected, atol=1e-5)

    def test_nothing_is_replaced_unasked(self, encoder, folder):
        with pytest.raises(OutputError, match="exists already"):
            encoder.save_pretrained(folder)
        encoder.save_pretrained(folder, overwrite=True)
        assert TextEncoder.from_pretrained(folder).fingerprint() == encoder.fingerprint()


class TestFingerprint:
    @pytest.mark.parametrize("option", [{"pooling": "cls"}, {"max_length": 30}, {"lower": False}])
    def test_settings_change_it(self, encoder, folder, option):
        other = TextEncoder.from_pretrained(folder, **option)
        assert other.fingerprint() != encoder.fingerprint()

    def test_weights_and_heads_and_tokenizer_change_it(self, encoder):
        seen = {encoder.fingerprint()}
        with torch.no_grad():
            encoder.model.encoder.layer[0].output.dense.weight[0, 0] += 1
        seen.add(encoder.fingerprint())
        encoder.model.config.num_attention_heads = 2
        seen.add(encoder.fingerprint())
        encoder.tokenizer.add_tokens(["newword"])
        seen.add(encoder.fingerprint())
        assert len(seen) == 4


class TestBadFolders:
    def test_unknown_hub_name(self, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        for name in ("no-such-owner/no-such-encoder", "no such name"):
            with pytest.raises(NotFoundError, match=f"{name}: no such folder"):
                TextEncoder.from_pretrained(name)

    @pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
    @pytest.mark.parametrize("cut", [0, 10])
    def test_files_cut_off(self, folder, name, cut):
        (folder / name).write_bytes((folder / name).read_bytes()[:cut])
        with pytest.raises(StoreError, match=r"holds no encoder that can be loaded \("):
            TextEncoder.from_pretrained(folder)

    def test_missing_weights_are_not_initialised(self, folder):
        weights = load_file(folder / "model.safetensors")
        lost = "encoder.layer.1.output.dense.weight"
        del weights[lost]
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(StoreError, match=f"lack 1 of the model's tensors \\({lost}"):
            TextEncoder.from_pretrained(folder)

    def test_weights_of_nan(self, folder):
        weights = load_file(folder / "model.safetensors")
        weights["embeddings.LayerNorm.bias"][3] = float("nan")
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(StoreError, match=r"NaN or infinity \(embeddings.LayerNorm.bias\)"):
            TextEncoder.from_pretrained(folder)

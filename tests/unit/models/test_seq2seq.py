"""Sequence-to-sequence models: tokens, limits, saving, and refusals."""

from __future__ import annotations

import json

import pytest
import torch
from tiny_models import tiny_encoder_folder
from tiny_seq2seq import SMALL
from transformers import (
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

from biograft.errors import ConfigError
from biograft.models import NewDecoder, NewSeq2Seq, Seq2SeqModel

TEXTS = ["START heart attack END is the same as myocardial infarction", "heart failure is chronic"]


@pytest.fixture(scope="module")
def seq2seq():
    return NewSeq2Seq(max_length=48, dropout=0.0, **SMALL).create(TEXTS * 3, 0)


@pytest.fixture(scope="module")
def folder(seq2seq, tmp_path_factory):
    folder = tmp_path_factory.mktemp("seq2seq") / "bart"
    seq2seq.save_pretrained(folder)
    return folder


class TestTokens:
    def test_prompts_and_names_have_no_special_tokens(self, seq2seq):
        assert (
            seq2seq.tokens(["heart attack"])[0] == seq2seq.source_tokens(["heart attack"])[0][1:-1]
        )
        assert seq2seq.tokens([""])[0] == []
        prompt, name = seq2seq.tokens(["heart is"])[0], seq2seq.tokens(["attack"])[0]
        assert prompt + name == seq2seq.tokens(["heart is attack"])[0]

    def test_batches_equal_single_texts(self, seq2seq, monkeypatch):
        monkeypatch.setattr("biograft.models.seq2seq._CHUNK", 2)
        names = ["heart", "", "attack of the heart", "σ-factor 心脏", "chronic"]
        expected = [seq2seq.tokens([name])[0] for name in names]
        assert seq2seq.tokens(names) == expected
        assert seq2seq.tokens([]) == []
        assert [seq2seq.tokenizer.decode(tokens).strip() for tokens in expected] == names


class TestCutting:
    def cut(self, seq2seq, text):
        (tokens,) = seq2seq.source_tokens([text])
        assert len(tokens) == seq2seq.max_source
        assert (tokens[0], tokens[-1]) == (0, 2)
        return seq2seq.tokenizer.decode(tokens[1:-1])

    @pytest.mark.parametrize(("n_left", "n_right"), [(60, 60), (0, 90), (90, 0), (5, 90)])
    def test_texts_are_truncated_around_the_marked_mention(self, seq2seq, n_left, n_right):
        marked = "START heart attack END"
        text = " ".join(["chronic"] * n_left + [marked] + ["failure"] * n_right)
        cut = self.cut(seq2seq, text)
        assert f" {marked}" in f" {cut}"
        before, _, after = cut.partition(marked)
        if n_left == n_right:
            n_before, n_after = (len(seq2seq.tokens([part.strip()])[0]) for part in (before, after))
            assert abs(n_before - n_after) <= 2
        assert bool(before.strip()) == bool(n_left)
        assert bool(after.strip()) == bool(n_right)

    def test_both_marks_of_a_mention_that_is_too_long_stay(self, seq2seq):
        cut = self.cut(seq2seq, f"chronic START{' heart' * 90} END failure")
        assert cut.strip().startswith("START heart")
        assert cut.strip().endswith("heart END")


class TestFolders:
    def test_save_and_load(self, seq2seq, folder):
        again = Seq2SeqModel.from_pretrained(folder, device="cpu")
        assert again.fingerprint() == seq2seq.fingerprint()
        assert (again.max_source, again.max_target) == (48, 48)
        model = AutoModelForSeq2SeqLM.from_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokens = tokenizer(" heart attack", return_tensors="pt")["input_ids"]
        assert tokens[0].tolist() == seq2seq.source_tokens(["heart attack"])[0]
        with torch.no_grad():
            ours, theirs = (m.eval()(input_ids=tokens).logits for m in (seq2seq.model, model))
        torch.testing.assert_close(ours, theirs)
        config = json.loads((folder / "generation_config.json").read_text())
        assert config.get("forced_eos_token_id") is None
        with pytest.raises(Exception, match="exists"):
            seq2seq.save_pretrained(folder)

    def test_fingerprint_covers_settings(self, seq2seq, folder):
        found = {
            seq2seq.fingerprint(),
            Seq2SeqModel.from_pretrained(folder, max_source=32).fingerprint(),
        }
        other = Seq2SeqModel.from_pretrained(folder)
        with torch.no_grad():
            next(other.model.parameters())[0, 0] += 1
        assert len(found | {other.fingerprint()}) == 3

    def test_limits_and_dropout_may_be_set(self, folder):
        seq2seq = Seq2SeqModel.from_pretrained(folder, max_source=20, max_target=10, dropout=0.3)
        assert (seq2seq.max_source, seq2seq.max_target) == (20, 10)
        assert len(seq2seq.source_tokens(["heart " * 50])[0]) == 20
        assert seq2seq.model.model.encoder.layers[0].dropout == 0.3
        assert seq2seq.model.model.encoder.layers[0].self_attn.dropout == 0.3
        assert seq2seq.model.config.dropout == 0.3
        with pytest.raises(ConfigError, match=r"max_source: expected 8 to 48 for .*, found 49"):
            Seq2SeqModel.from_pretrained(folder, max_source=49)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """The folder of an encoder whose tokenizer pads, as that of MiniLM does."""
    folder = tiny_encoder_folder(tmp_path_factory.mktemp("encoder") / "bert", TEXTS)
    path = folder / "tokenizer.json"
    padding = {
        "strategy": {"Fixed": 16},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    path.write_text(json.dumps({**json.loads(path.read_text()), "padding": padding}))
    return folder


def logits_of(model):
    given = {"input_ids": torch.tensor([[2, 7, 8, 3]]), "decoder_input_ids": torch.tensor([[2, 9]])}
    with torch.no_grad():
        return model.eval()(**given).logits


class TestADecoderOnAnEncoder:
    def start(self, encoder, seed=0, **settings):
        decoder = NewDecoder(layers=1, max_length=24, seed=seed)
        return Seq2SeqModel.from_pretrained(encoder, decoder=decoder, **settings)

    def test_encoder_and_embeddings_are_those_of_the_folder(self, encoder):
        seq2seq, given = self.start(encoder), AutoModel.from_pretrained(encoder)
        made = dict(seq2seq.model.encoder.named_parameters())
        assert all(torch.equal(made[key], weight) for key, weight in given.named_parameters())
        embeddings = seq2seq.model.encoder.embeddings.word_embeddings.weight
        assert seq2seq.model.decoder.get_input_embeddings().weight is embeddings
        assert seq2seq.model.decoder.get_output_embeddings().weight is embeddings
        assert len(seq2seq.model.decoder.bert.encoder.layer) == 1
        assert seq2seq.vocabulary_size == len(embeddings)

    def test_what_is_saved_is_what_is_loaded_here_and_by_transformers(self, encoder, tmp_path):
        seq2seq = self.start(encoder)
        seq2seq.save_pretrained(tmp_path / "saved")
        again = Seq2SeqModel.from_pretrained(tmp_path / "saved")
        assert again.fingerprint() == seq2seq.fingerprint()
        assert torch.equal(logits_of(again.model), logits_of(seq2seq.model))
        embeddings = again.model.encoder.get_input_embeddings().weight
        assert again.model.decoder.get_input_embeddings().weight is embeddings
        assert again.model.decoder.get_output_embeddings().weight is embeddings
        limits = (seq2seq.start, seq2seq.end, seq2seq.max_source, seq2seq.max_target)
        assert (again.start, again.end, again.max_source, again.max_target) == limits
        plain = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "saved")
        assert torch.equal(logits_of(plain), logits_of(seq2seq.model))

    def test_weights_follow_from_the_seed_and_dropout_is_that_given(self, encoder):
        state = torch.random.get_rng_state()
        made = self.start(encoder, dropout=0.3)
        assert torch.equal(torch.random.get_rng_state(), state)
        assert made.fingerprint() == self.start(encoder).fingerprint()
        assert made.fingerprint() != self.start(encoder, seed=1).fingerprint()
        rates = {m.p for m in made.model.modules() if isinstance(m, torch.nn.Dropout)}
        assert rates == {0.3}

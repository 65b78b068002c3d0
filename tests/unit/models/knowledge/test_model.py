"""The model in transformers: built from BERT, saved, loaded, resized."""

import json

import pytest
import torch
from transformers import (
    AutoModelForMaskedLM,
)

from biograft.errors import BiograftError, StoreError
from biograft.models import (
    KnowledgeBertForMaskedLM,
    KnowledgeBertModel,
    TableEntity,
    TextEncoder,
    entity_table,
    load_masked_lm,
    quiet_transformers,
)

TEXTS = ["heart attack is bad for you"]
ENTITIES = tuple(TableEntity(f"C{n}", f"thing {n}") for n in range(7))


@pytest.fixture
def build(tiny_encoder):
    """Build a model from a tiny BERT without token head: ``build(freeze_entities=True)``."""
    folder = tiny_encoder(TEXTS, layers=3)

    def make(layers=None, **settings):
        layers = layers or {"entity_memory": {"after": 2, "n_nearest": 3}}
        table = entity_table([entity.id for entity in ENTITIES], dim=5)
        return KnowledgeBertForMaskedLM.from_bert(
            folder, table.vectors, ENTITIES, knowledge_layers=layers, **settings
        )

    make.folder = folder
    return make


@pytest.fixture
def saved(build, tmp_path):
    model, folder = build(), tmp_path / "saved"
    with quiet_transformers():
        model.save_pretrained(folder)
        load_masked_lm(build.folder).tokenizer.save_pretrained(folder)
    return folder


def assert_equal_weights(left, right):
    left, right = left.state_dict(), right.state_dict()
    assert left.keys() == right.keys()
    for key, weight in left.items():
        assert torch.equal(weight, right[key]), key


def test_the_weights_of_bert_are_kept(build):
    plain = load_masked_lm(build.folder)
    assert plain.new_head
    model = build()
    assert_equal_weights(model.model.bert, plain.model.bert)
    assert_equal_weights(model.cls, plain.model.cls)
    assert model.cls.predictions.decoder.weight is model.get_input_embeddings().weight
    assert model.cls.predictions.decoder.bias is model.cls.predictions.bias
    table = entity_table([entity.id for entity in ENTITIES], dim=5).vectors
    assert torch.equal(model.model.entity_table.weight, torch.from_numpy(table))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ({"entity_memory": {"after": 4}}, r"entity_memory\.after: expected 0 to 3"),
        ({"entity_memory": {"n_neighbours": 1}}, "unknown key 'n_neighbours'"),
        ({"entity_memory": {"compat": True, "n_probed": 2}}, "n_probed: expected 0 with compat"),
        ({"neighbour_attention": {}}, "missing key 'after'"),
        ({"entity_memry": {"after": 1}}, "did you mean 'entity_memory'"),
    ],
)
def test_wrong_settings_are_refused(build, layers, message):
    with pytest.raises(BiograftError, match=message):
        build(layers)


def test_a_model_without_knowledge_layers_is_refused(saved):
    """A folder of an earlier version named its layers otherwise and would load as a plain BERT."""
    config = json.loads((saved / "config.json").read_text())
    del config["knowledge_layers"]
    (saved / "config.json").write_text(json.dumps(config | {"knowledge_after": {"x": 1}}))
    with pytest.raises(BiograftError, match="knowledge_layers: expected at least one layer"):
        KnowledgeBertModel.from_pretrained(saved)


@pytest.mark.parametrize("auto", [AutoModelForMaskedLM, KnowledgeBertForMaskedLM])
def test_a_saved_model_is_loaded_unchanged(build, saved, auto):
    model, loaded = build(), auto.from_pretrained(saved)
    assert_equal_weights(model, loaded)
    assert loaded.entities == ENTITIES
    assert loaded.cls.predictions.decoder.weight is loaded.get_input_embeddings().weight
    ids = torch.randint(5, 20, (2, 6))
    assert torch.equal(model.eval()(ids).logits, loaded.eval()(ids).logits)


def test_it_is_a_text_encoder(saved, tmp_path):
    encoder = TextEncoder.from_pretrained(saved)
    vectors = encoder.encode(["heart attack", "bad"])
    encoder.save_pretrained(tmp_path / "again")
    again = TextEncoder.from_pretrained(tmp_path / "again")
    assert (again.encode(["heart attack", "bad"]) == vectors).all()
    assert again.model.entities == ENTITIES
    assert load_masked_lm(tmp_path / "again").new_head
    assert not load_masked_lm(saved).new_head


def test_activation_checkpointing_changes_no_gradient(build):
    gradients = []
    for checkpointing in (False, True):
        model = build(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).train()
        if checkpointing:
            getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)()
        ids = torch.tensor([[2, 7, 8, 9, 3]])
        model(ids, mentions=torch.tensor([[0, 1, 2]])).logits.square().sum().backward()
        gradients.append(model.model.bert.encoder.layer[0].output.dense.weight.grad)
    torch.testing.assert_close(*gradients)


def test_a_damaged_folder_is_refused(saved):
    config = json.loads((saved / "config.json").read_text())
    deep = {"knowledge_layers": {"entity_memory": {"after": 9}}}
    (saved / "config.json").write_text(json.dumps(config | deep))
    with pytest.raises(StoreError, match=r"saved: holds no encoder .*entity_memory\.after"):
        TextEncoder.from_pretrained(saved)
    (saved / "config.json").write_text(json.dumps(config | {"n_entities": 8}))
    with pytest.raises(StoreError, match="saved: holds no encoder that can be loaded"):
        load_masked_lm(saved)
    (saved / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(StoreError, match="saved: holds no encoder that can be loaded"):
        load_masked_lm(saved)


@pytest.mark.parametrize("other", [{"after": 1}, {"n_nearest": 2}, {"compat": True}])
def test_equal_weights_with_other_settings_have_another_fingerprint(saved, other):
    """Guard against fingerprints of weights alone: an index would be used with another encoder."""
    before = TextEncoder.from_pretrained(saved).fingerprint()
    config = json.loads((saved / "config.json").read_text())
    config["knowledge_layers"]["entity_memory"] |= other
    (saved / "config.json").write_text(json.dumps(config))
    assert TextEncoder.from_pretrained(saved).fingerprint() != before

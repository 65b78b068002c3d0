"""Entity inputs: entities found in texts, their coverage, and the layers that take them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from tiny_masked_lm import tiny_masked_lm_folder
from tiny_models import tiny_tokenizer

from biograft.errors import ConfigError
from biograft.models import (
    EntityFinder,
    EntityMention,
    KnowledgeBertForMaskedLM,
    TableEntity,
    TextEncoder,
    load_masked_lm,
    quiet_transformers,
)
from biograft.text import NamesIndex
from biograft.training.tasks import TaskRecipe

TEXTS = ["heart attack and heart failure are bad for hearts , mi 12 is short"]
ENTITIES = (
    TableEntity("C0", "heart attack", ("heart attack", "mi", "x")),
    TableEntity("C1", "heart", ("heart", "12", "mi")),
    TableEntity("C2", "heart failure", ("heart failure are",)),
    TableEntity("C3", "unseen", ("heart zebra",)),
)
LAYERS = {
    "entity_memory": {"n_nearest": 2},
    "entity_fusion": {"n_heads": 5},
    "neighbour_attention": {"n_neighbours": 2},
}
GRAPH = {
    "neighbours": np.array([[1, 2], [0, -1], [1, 3], [-1, -1]]),
    "types": np.array([0, 1, 0, -1]),
}


@pytest.fixture
def bert(tmp_path):
    return tiny_masked_lm_folder(tmp_path / "bert", TEXTS)


@pytest.fixture
def build(bert):
    def make(after=None, *, neutral_start=True):
        table = np.random.default_rng(0).standard_normal((4, 5), np.float32)
        after = {"neighbour_attention": 1} if after is None else after
        graph = GRAPH if "neighbour_attention" in after else None
        layers = {name: {"after": n, **LAYERS[name]} for name, n in after.items()}
        for name in set(layers) - {"entity_memory"}:
            layers[name]["neutral_start"] = neutral_start
        return KnowledgeBertForMaskedLM.from_bert(
            bert, table, ENTITIES, graph=graph, knowledge_layers=layers
        ).eval()

    return make


@pytest.fixture
def write(bert, tmp_path):
    def save(model, name="saved"):
        with quiet_transformers():
            model.save_pretrained(tmp_path / name)
            load_masked_lm(bert).tokenizer.save_pretrained(tmp_path / name)
        return tmp_path / name

    return save


def numbers(folder, text):
    return load_masked_lm(folder).tokenizer(text, return_tensors="pt")["input_ids"]


def entity_inputs(ids):
    return (
        {"mentions": torch.tensor([[0, 1, 2]]), "entities": torch.tensor([0])} if len(ids) else {}
    )


@pytest.mark.parametrize("layer", ["neighbour_attention", "entity_fusion"])
def test_an_untrained_layer_changes_nothing_with_a_neutral_start(build, bert, layer):
    ids = numbers(bert, "heart attack is bad")
    plain = load_masked_lm(bert).model.eval()(ids).logits
    neutral, random = (build({layer: 1}, neutral_start=start) for start in (True, False))
    assert torch.equal(neutral(ids, **entity_inputs(ids)).logits, neutral(ids).logits)
    torch.testing.assert_close(neutral(ids, **entity_inputs(ids)).logits, plain)
    assert not torch.equal(random(ids, **entity_inputs(ids)).logits, random(ids).logits)
    neutral(ids, **entity_inputs(ids)).logits.square().sum().backward()
    infused = [p for n, p in neutral.named_parameters() if layer in n and "infuse.weight" in n]
    assert infused
    assert all(weight.grad.any() for weight in infused)


@pytest.mark.parametrize("layer", ["neighbour_attention", "entity_fusion"])
def test_a_layer_behind_all_layers_is_as_if_it_were_not_there(build, write, bert, layer):
    """The ablation without hybrid attention still averaged the neighbours of mentions."""
    model = build({layer: 2}, neutral_start=False)
    ids = numbers(bert, "heart attack is bad")
    plain = load_masked_lm(bert).model.eval()
    found = model(ids, **entity_inputs(ids))
    assert torch.equal(found.last_hidden_state, plain.bert(ids).last_hidden_state)
    assert torch.equal(found.logits, plain(ids).logits)
    assert (found.neighbours, found.neighbour_weights) == (None, None)
    read = model.model.mention_reader(found.last_hidden_state, entity_inputs(ids)["mentions"])
    assert read.shape == (1, 5)  # objectives still read mentions
    encoder = TextEncoder.from_pretrained(write(model), device="cpu")
    texts = ["heart attack is bad", "mi"]
    assert len(encoder.add_entity_inputs(encoder.tokenize(texts))["entities"]) == 2
    one, two = (each.encode(texts) for each in (encoder, TextEncoder.from_pretrained(bert)))
    np.testing.assert_array_equal(one, two)


@torch.no_grad()
def test_a_memory_detects_mentions_unless_they_are_gold(build, bert):
    model = build({"entity_memory": 1, "neighbour_attention": 1}, neutral_start=False)
    detector = model.model.knowledge.entity_memory.detector
    detector.weight.zero_()
    detector.bias.copy_(torch.tensor([0.0, 1.0, 0.0]))  # every token begins a mention
    ids = numbers(bert, "heart attack is bad")
    nothing = {"mentions": torch.zeros(0, 3, dtype=torch.long), "entities": torch.zeros(0).long()}
    plain = model(ids)
    assert len(plain.candidates) > 1
    torch.testing.assert_close(model(ids, **nothing).last_hidden_state, plain.last_hidden_state)
    named = model(ids, **entity_inputs(ids))
    assert named.candidates.tolist() == plain.candidates.tolist()
    assert named.neighbours.tolist() == [[1, 2]]
    assert len(model(ids, **entity_inputs(ids), gold=True).candidates) == 1
    assert len(model(ids, mentions=entity_inputs(ids)["mentions"]).candidates) == 1


def test_an_encoder_finds_the_entities_of_a_text(build, write, bert):
    encoder = TextEncoder.from_pretrained(write(build(neutral_start=False)), device="cpu")
    batch = encoder.tokenize(["heart attack is bad", "it is bad"])
    found = encoder.add_entity_inputs(batch)
    assert found["mentions"].tolist() == [[0, 1, 2]]
    assert found["entities"].tolist() == [0]
    model = build(neutral_start=False)
    states = model(batch["input_ids"][:1], **entity_inputs([1])).last_hidden_state[0]
    expected = states.mean(dim=0)
    torch.testing.assert_close(encoder.embed(batch)[0], expected)
    alone, among = (
        encoder.encode(["heart attack is bad"]),
        encoder.encode(["heart attack is bad", "mi"]),
    )
    np.testing.assert_allclose(alone[0], among[0], atol=1e-5)
    assert TextEncoder.from_pretrained(bert).finder is None


def find(text, bert):
    tokenizer = load_masked_lm(bert).tokenizer
    tokens = tokenizer(text)["input_ids"]
    found = EntityFinder(ENTITIES, tokenizer).find(tokens)
    return found, tokenizer.convert_ids_to_tokens(tokens)


def test_the_longest_name_from_the_left_is_found(bert):
    found, tokens = find("mi and heart attack , heart failure are bad for heart", bert)
    assert [(tokens[f.first], tokens[f.last], f.row) for f in found] == [
        ("mi", "mi", 0),
        ("heart", "attack", 0),
        ("heart", "are", 2),
        ("heart", "heart", 1),
    ]


def test_numbers_single_characters_and_parts_of_words_are_not_found(bert):
    assert find("12 x is short", bert)[0] == ()
    tokenizer = load_masked_lm(bert).tokenizer
    numbers_of = tokenizer.get_vocab()
    # a plural or a comma would end the word
    letters = (t for t in numbers_of if t.startswith("##") and t[2:].isalpha() and t != "##s")
    subword = numbers_of[min(letters)]
    finder = EntityFinder(ENTITIES, tokenizer)
    heart = numbers_of["heart"]
    assert finder.find([heart]) == (EntityMention(0, 0, 1),)
    assert finder.find([heart, subword]) == ()


def limited(folder, **limits):
    """Load an encoder as a task does that limits its knowledge."""
    values = {"task": "inference", "encoder": {"name": str(folder), **limits}}
    return TaskRecipe.from_values("limited", values).encoder.load()


def test_a_coverage_is_deterministic_and_within_larger_ones(build, write):
    folder, text = write(build()), "heart attack and " * 8

    def found(coverage, others=()):
        encoder = limited(folder, entity_coverage=coverage)
        inputs = encoder.add_entity_inputs(encoder.tokenize([text, *others]))
        own = inputs["mentions"][:, 0] == 0
        return {tuple(mention) for mention in inputs["mentions"][own].tolist()}

    none, small, large, whole = (found(coverage) for coverage in (0.0, 0.3, 0.6, 1.0))
    assert not none
    assert small < large < whole
    for others in ([], ["mi"], ["bad " * 30], ["bad " * 35, "mi"]):
        assert found(0.3, others) == small  # whatever else is in the batch


CHINESE = (
    TableEntity("D0", "", ("糖尿病肾病", "diabetic nephropathy")),
    TableEntity("D1", "", ("糖尿病",)),
    TableEntity("D2", "", ("CT", "維生素B12")),
    TableEntity("D3", "", ("Crohn's disease", "type-2 diabetes")),
)
WRITTEN = {
    "患糖尿病腎病三年": [("糖尿病腎病", 0)],
    "患糖 尿病，三年": [("糖 尿病", 1)],
    "做ＣＴ，补维生素Ｂ１２。": [("ＣＴ", 2), ("维生素Ｂ１２", 2)],
    "头颅CT示糖尿病": [("CT", 2), ("糖尿病", 1)],
    "Crohn’s Disease and Type 2  diabetes, no nephropathy": [
        ("Crohn’s Disease", 3),
        ("Type 2  diabetes", 3),
    ],
    "Diabetic-Nephropathy, crohns disease": [
        ("Diabetic-Nephropathy", 0),
        ("crohns disease", 3),
    ],
}


PARTS = [
    "糖尿",
    "病",
    "腎",
    "肾",
    "病，",
    "ct",
    "ｃｔ",
    " ",
    "-",
    "type",
    "2",
    "diabetes",
    "s",
    "crohn",
    "’s",
    "disease",
    "x",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_any_text_has_the_same_mentions_in_tasks_and_in_annotation(text):
    names = [name for each in CHINESE for name in each.names if name != "CT"]
    entities = [TableEntity(name, "", (name,)) for name in [*names, "ct"]]
    encoded = TOKENIZER(text, return_offsets_mapping=True)
    offsets = encoded["offset_mapping"]
    found = [
        (offsets[m.first][0], offsets[m.last][1], m.row)
        for m in EntityFinder(entities, TOKENIZER).find(encoded["input_ids"])
    ]
    matches = NamesIndex.build([*names, "ct"]).find_disjoint(text)
    assert found == [(match.start, match.end, match.name_rows[0]) for match in matches]


TOKENIZER = tiny_tokenizer([*PARTS, *WRITTEN])


def test_unknown_special_and_added_tokens_are_in_no_name():
    tokenizer = tiny_tokenizer(["heart attack"])
    tokenizer.add_tokens("@heart$")
    finder = EntityFinder([TableEntity("C0", "", ("heart", "unk", "sep"))], tokenizer)
    tokens = tokenizer("@heart$ heart qqq [SEP] [UNK]")["input_ids"]
    assert [(m.first, m.row) for m in finder.find(tokens)] == [(2, 0)]


def test_the_coverage_is_no_property_of_the_encoder(build, write, tmp_path, bert):
    folder = write(build(neutral_start=False))
    encoder = TextEncoder.from_pretrained(folder, device="cpu")
    vectors = encoder.encode(["heart attack"])
    without = limited(folder, entity_coverage=0.0)
    assert not np.array_equal(without.encode(["heart attack"]), vectors)
    assert without.fingerprint() == encoder.fingerprint()
    without.save_pretrained(tmp_path / "saved-again")
    again = TextEncoder.from_pretrained(tmp_path / "saved-again", device="cpu")
    np.testing.assert_allclose(again.encode(["heart attack"]), vectors, atol=1e-6)
    with pytest.raises(ConfigError, match="no knowledge layer that takes entity inputs"):
        limited(bert, entity_coverage=0.5)
    with pytest.raises(ConfigError, match="entity_coverage: expected a number from 0 to 1"):
        limited(folder, entity_coverage=2.0)


def test_fewer_neighbours_are_saved_with_the_model(build, write, tmp_path, bert):
    folder = write(build(neutral_start=False))
    encoder = TextEncoder.from_pretrained(folder, device="cpu")
    fewer = limited(folder, n_neighbours=1)
    vectors = fewer.encode(["heart attack"])
    assert not np.array_equal(encoder.encode(["heart attack"]), vectors)
    assert fewer.fingerprint() != encoder.fingerprint()
    fewer.save_pretrained(tmp_path / "limited")
    again = TextEncoder.from_pretrained(tmp_path / "limited", device="cpu")
    np.testing.assert_allclose(again.encode(["heart attack"]), vectors, atol=1e-6)
    with pytest.raises(ConfigError, match="n_neighbours: expected 1 to 1, those known, found 2"):
        limited(tmp_path / "limited", n_neighbours=2)
    with pytest.raises(ConfigError, match="n_neighbours: the encoder has no neighbour_attention"):
        limited(bert, n_neighbours=1)

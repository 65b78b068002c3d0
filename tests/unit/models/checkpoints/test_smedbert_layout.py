"""Import of SMedBERT: its BERT is imported, the rest is reported; each fault is one line."""

import json

import pytest
import torch

from biograft.errors import InputError
from biograft.models import TextEncoder, load_masked_lm
from biograft.models.checkpoints import import_checkpoint

N, WIDTH, INNER, PLACES, ENTITIES, DIM, RELATIONS, LAYERS = 40, 16, 24, 32, 9, 6, 3, 3
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "心", "肌", "梗", "死"]


def linear(name, n_in, n_out):
    return {f"{name}.weight": (n_out, n_in), f"{name}.bias": (n_out,)}


def norm(name):
    return {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}


def layer(number):
    name, shapes = f"bert.encoder.layer.{number}", {}
    for part in ("query", "key", "value"):
        shapes |= linear(f"{name}.attention.self.{part}", WIDTH, WIDTH)
    shapes |= linear(f"{name}.attention.output.dense", WIDTH, WIDTH)
    shapes |= norm(f"{name}.attention.output.LayerNorm")
    shapes |= linear(f"{name}.intermediate.dense", WIDTH, INNER)
    return shapes | linear(f"{name}.output.dense", INNER, WIDTH) | norm(f"{name}.output.LayerNorm")


def mixers(generation):
    two = "bert.encoder.two_hop_mixer"
    shapes = {
        **linear(f"{two}.bert2entity", WIDTH, DIM),
        f"{two}.span_extractor._global_attention._module.weight": (1, WIDTH),
        **linear(f"{two}.eh_mixer", 2 * WIDTH, WIDTH),
    }
    if generation == "second":
        return shapes | linear(f"{two}.entity22entity4", 2 * DIM, 4 * DIM)
    one = "bert.encoder.one_hop_mixer"
    shapes |= linear(f"{two}.entity2entity4", DIM, 4 * DIM)
    return shapes | linear(f"{one}.bert2entity", WIDTH, DIM)


def write(folder, generation="first", *, head=True):
    shapes = {
        "bert.embeddings.word_embeddings.weight": (N, WIDTH),
        "bert.embeddings.position_embeddings.weight": (PLACES, WIDTH),
        "bert.embeddings.token_type_embeddings.weight": (2, WIDTH),
        **norm("bert.embeddings.LayerNorm"),
        **linear("bert.pooler.dense", WIDTH, WIDTH),
        **mixers(generation),
        "entity_embedding.weight": (ENTITIES, DIM),
        "entity_type_embedding.weight": (4, DIM),
    }
    for number in range(LAYERS):
        shapes |= layer(number)
    if head:
        shapes |= {
            "cls.predictions.bias": (N,),
            **linear("cls.predictions.transform.dense", WIDTH, WIDTH),
            **norm("cls.predictions.transform.LayerNorm"),
            "cls.predictions.decoder.weight": (N, WIDTH),
            **linear("cls.seq_relationship", WIDTH, 2),
            "transfer_matrix.weight": (RELATIONS + 1, (DIM + 1) ** 2),
        }
    generator = torch.Generator().manual_seed(0)
    weights = {key: torch.randn(shape, generator=generator) * 0.3 for key, shape in shapes.items()}
    if head:
        weights["cls.predictions.decoder.weight"] = weights[
            "bert.embeddings.word_embeddings.weight"
        ]
    folder.mkdir()
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "bert_config.json").write_text(json.dumps({"num_attention_heads": 4}))
    words = [*PIECES, *(f"w{row}" for row in range(N - len(PIECES)))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return weights


@pytest.mark.parametrize("generation", ["first", "second"])
def test_the_bert_of_both_generations_comes_in(tmp_path, generation):
    theirs = write(tmp_path / "published", generation)
    report = import_checkpoint(tmp_path / "published", tmp_path / "ours")
    assert report.layout == "smedbert"
    assert report.facts == {
        "n_layers": LAYERS,
        "generation": generation,
        "n_entities": ENTITIES - 1,
        "entity_dim": DIM,
        "n_relations": RELATIONS,
        "token_head": True,
    }
    loaded = load_masked_lm(tmp_path / "ours")
    ours = loaded.model.state_dict()
    assert not loaded.new_head
    for key, value in theirs.items():
        if key in ours:
            assert torch.equal(value, ours[key]), key
        else:
            assert key in report.left_out
    assert not {
        key for key in report.left_out if key.startswith(("bert.emb", "bert.encoder.layer"))
    }
    assert "bert.encoder.two_hop_mixer.bert2entity.weight" in report.left_out
    assert any("knowledge layer" in note for note in report.notes)


def test_a_fine_tuned_one_is_taken_as_an_encoder(tmp_path):
    write(tmp_path / "published", "second", head=False)
    report = import_checkpoint(tmp_path / "published", tmp_path / "ours")
    assert not report.facts["token_head"]
    assert TextEncoder.from_pretrained(tmp_path / "ours").encode(["心肌梗死"]).shape == (1, WIDTH)


def test_damage_is_named(tmp_path):
    weights = write(tmp_path / "published")
    del weights["bert.encoder.layer.1.output.dense.weight"]
    torch.save(weights, tmp_path / "published/pytorch_model.bin")
    with pytest.raises(InputError, match=r"lacks 1 weights of SMedBERT, first bert\.enc"):
        import_checkpoint(tmp_path / "published", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()

"""Import of published KeBioLM checkpoints; each fault is one line."""

import json
import pickle
import shutil

import pytest
import torch
from kebiolm_files import SIZES, published_weights
from mischief import Mischief
from safetensors.torch import save_file

from biograft.errors import BiograftError, InputError
from biograft.models import TextEncoder, load_masked_lm
from biograft.models.checkpoints import import_checkpoint


def origin_of(folder):
    return json.loads((folder / "biograft_import.json").read_text())


@pytest.mark.parametrize(("text_layers", "fusion_layers"), [(2, 1), (1, 2), (3, 0)])
def test_both_encoders_become_one_stack(published, tmp_path, text_layers, fusion_layers):
    folder = published(text_layers=text_layers, fusion_layers=fusion_layers)
    report = import_checkpoint(folder, tmp_path / "ours")
    assert report.facts == {
        "n_layers": 3,
        "knowledge_after": text_layers,
        "n_entities": SIZES["n_entities"],
        "entity_dim": SIZES["dim"],
        "named": True,
        "n_unused_rows": 0,
        "token_head": True,
    }
    assert report.left_out == report.notes == ()
    theirs = torch.load(folder / "pytorch_model.bin")
    ours = load_masked_lm(tmp_path / "ours").model
    found = ours.state_dict()
    for number in range(3):
        part, k = (
            ("context", number) if number < text_layers else ("recontext", number - text_layers)
        )
        for name in ("attention.self.query.weight", "output.LayerNorm.bias"):
            assert torch.equal(
                theirs[f"bert.{part}_encoder.layer.{k}.{name}"],
                found[f"model.bert.encoder.layer.{number}.{name}"],
            )
    for theirs_name, name in {
        "bert.embeddings.LayerNorm.gamma": "model.bert.embeddings.LayerNorm.weight",
        "bert.entity_linker.entity_embeddings.weight": "model.entity_table.weight",
        "bert.mention_detector.bias": "model.knowledge.entity_memory.detector.bias",
        "bert.layer_norm.weight": "model.knowledge.entity_memory.norm.weight",
        "cls.predictions.bias": "cls.predictions.decoder.bias",
    }.items():
        assert torch.equal(theirs[theirs_name], found[name]), name
    assert [entity.id for entity in ours.entities][:2] == ["C0000000", "C0000001"]
    layer = ours.config.knowledge_layers["entity_memory"]
    assert (layer["n_nearest"], layer["max_mentions"]) == (5, 15)
    assert layer["fusion_norm"]
    assert not layer["compat"]


def test_the_import_is_an_encoder(published, tmp_path):
    import_checkpoint(published(), tmp_path / "ours")
    vectors = TextEncoder.from_pretrained(tmp_path / "ours").encode(["Heart attack"])
    assert vectors.shape == (1, SIZES["width"])
    origin = origin_of(tmp_path / "ours")
    assert origin["source"]["file"] == "pytorch_model.bin"
    assert origin["layout"] == "kebiolm"


def test_safetensors_are_preferred_and_a_prefix_is_removed(published, tmp_path):
    folder = published()
    weights = {f"module.{k}": v.clone() for k, v in published_weights(2, 1, seed=9).items()}
    save_file(weights, folder / "model.safetensors")
    import_checkpoint(folder, tmp_path / "ours")
    found = load_masked_lm(tmp_path / "ours").model.model.entity_table.weight
    assert torch.equal(found, weights["module.bert.entity_linker.entity_embeddings.weight"])


def test_a_fine_tuned_one_is_imported_without_its_classifier(published, tmp_path):
    report = import_checkpoint(published(head=False), tmp_path / "ours")
    assert report.left_out == ("classifier.bias", "classifier.weight")
    assert not report.facts["token_head"]
    assert TextEncoder.from_pretrained(tmp_path / "ours").model.config.n_entities == 9
    assert load_masked_lm(tmp_path / "ours").new_head


def test_errors_of_the_published_code_can_be_kept(published, tmp_path):
    import_checkpoint(published(), tmp_path / "ours", as_published=True)
    layers = load_masked_lm(tmp_path / "ours").model.config.knowledge_layers
    assert layers["entity_memory"]["compat"]


def test_ids_of_entities_may_have_gaps(published, tmp_path):
    folder = published()
    rows = [(0, "[PAD_ENT]"), (1, "[UNK_ENT]"), (8, "C8"), (3, "C3")]
    lines = [json.dumps({"entity_name": name, "id": row}) + "\n" for row, name in rows]
    (folder / "entity.jsonl").write_text("".join(lines))
    report = import_checkpoint(folder, tmp_path / "ours")
    assert report.facts["n_unused_rows"] == 5
    assert report.notes == ("entity.jsonl: 5 rows of the entity table have no entity",)
    ids = [entity.id for entity in load_masked_lm(tmp_path / "ours").model.entities]
    assert [ids[row] for row, _ in rows] == [name for _, name in rows]
    assert ids[2] == "[unused2]"
    assert len(set(ids)) == 9


def test_a_tokenizer_may_lie_elsewhere(published, tmp_path):
    folder, other = published(), tmp_path / "tokenizer"
    other.mkdir()
    shutil.move(folder / "vocab.txt", other / "vocab.txt")
    with pytest.raises(InputError, match=r"holds no tokenizer.*--tokenizer"):
        import_checkpoint(folder, tmp_path / "ours")
    import_checkpoint(folder, tmp_path / "ours", tokenizer=other)
    assert TextEncoder.from_pretrained(tmp_path / "ours").encode(["heart"]).shape == (1, 16)
    assert origin_of(tmp_path / "ours")["tokenizer"] == str(other)
    # one of other weights is refused, whatever lies beside these
    shutil.copy(other / "vocab.txt", folder / "vocab.txt")
    (other / "vocab.txt").write_text((other / "vocab.txt").read_text() + "more\n")
    with pytest.raises(InputError, match="tokenizer: has 41 tokens, the weights have 40"):
        import_checkpoint(folder, tmp_path / "again", tokenizer=other)


def spoil(folder, key, value):
    weights = torch.load(folder / "pytorch_model.bin")
    if value is None:
        del weights[key]
    else:
        weights[key] = value
    torch.save(weights, folder / "pytorch_model.bin")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "vocab.txt").unlink(), "holds no tokenizer, which belongs to the weights"),
        (lambda f: (f / "pytorch_model.bin").unlink(), "holds no weights; expected model.safe"),
        (lambda f: (f / "config.json").unlink(), "holds no configuration; expected conf"),
        (lambda f: (f / "config.json").write_text("[]"), "config.json: expected a JSON object"),
        (lambda f: (f / "pytorch_model.bin").write_bytes(b"x"), "weights that can be read"),
        (lambda f: torch.save([1], f / "pytorch_model.bin"), "expected a table of weights by name"),
        (
            lambda f: torch.save({"bert.a": torch.ones(1)}, f / "pytorch_model.bin"),
            r"no layout .* \(kebiolm, smedbert, genbioel; its first weight is bert.a\)",
        ),
        (
            lambda f: spoil(f, "bert.mention_detector.bias", None),
            "lacks 1 weights of KeBioLM, first model.knowledge.entity_memory.detector.bias",
        ),
        (
            lambda f: spoil(f, "bert.layer_norm.bias", torch.ones(3)),
            r"expected \(16,\) for model.knowledge.entity_memory.norm.bias, found \(3,\)",
        ),
        (
            lambda f: spoil(f, "bert.embeddings.token_type_embeddings.weight", None),
            "lacks the weight bert.embeddings.token_type_embeddings.weight",
        ),
        (
            lambda f: (f / "entity.jsonl").write_text('{"entity_name": "a", "id": 0}\n'),
            "expected ids up to 8, the last row of the table, found them up to 0",
        ),
        (
            lambda f: (f / "entity.jsonl").write_text('{"entity_name": "a", "id": 8}\n' * 2),
            "entity.jsonl:2: expected ids from 0 on and names, each once",
        ),
        (lambda f: (f / "entity.jsonl").write_text("a\n"), "entity.jsonl:1: expected an object"),
        (
            lambda f: (f / "vocab.txt").write_text((f / "vocab.txt").read_text() + "more\n"),
            "has 41 tokens, the weights have 40",
        ),
    ],
)
def test_faults_are_one_line(published, tmp_path, damage, message):
    folder = published()
    damage(folder)
    with pytest.raises(InputError, match=message) as caught:
        import_checkpoint(folder, tmp_path / "ours")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ours").exists()


def test_nothing_in_a_pickle_is_run(published, tmp_path, capsys):
    folder = published()
    with (folder / "pytorch_model.bin").open("wb") as file:
        pickle.dump({"bert.a": Mischief()}, file, protocol=2)  # as torch writes
    with pytest.raises(InputError, match="holds no weights that can be read"):
        import_checkpoint(folder, tmp_path / "ours")
    assert capsys.readouterr().out == ""


def test_what_exists_is_kept(published, tmp_path):
    folder = published()
    import_checkpoint(folder, tmp_path / "ours")
    with pytest.raises(BiograftError, match="exists already"):
        import_checkpoint(folder, tmp_path / "ours")
    import_checkpoint(folder, tmp_path / "ours", overwrite=True)
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["n_entities"] == 9

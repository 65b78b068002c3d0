from huggingface_hub import ModelCard as HubCard

from biograft.models import EncoderSettings, ModelCard, render_card
from biograft.models.model_card import write_card

SETTINGS = EncoderSettings(pooling="cls", max_length=32, lower=True)


def card(base, **more):
    values = {"method": "Trained", "data": {}, "metrics": {}, **more}
    return ModelCard(base_model=str(base), **values)


def front(one):
    """Read the front matter as the hub does."""
    return HubCard(render_card(one, SETTINGS)).data


def test_the_licence_is_that_of_the_base_model(tmp_path):
    folder = tmp_path / "secret" / "base"
    folder.mkdir(parents=True)
    assert (card(folder).licence, front(card(folder)).license) == ("", None)
    (folder / "README.md").write_text("---\ntags: [x]\nlicense: mit\n---\nlicense: apache-2.0\n")
    assert front(card(folder)).license == "mit"
    assert "(licence: mit)" in render_card(card(folder), SETTINGS)


def test_the_base_model_is_a_name_of_the_hub_or_left_out(tmp_path):
    folder = tmp_path / "secret" / "base"
    folder.mkdir(parents=True)
    assert front(card(folder)).base_model is None
    assert "secret" not in render_card(card(folder), SETTINGS)
    assert front(card(tmp_path / "gone")).base_model is None
    assert front(card("org/model")).base_model == "org/model"
    assert front(card("bert-base-chinese")).base_model == "bert-base-chinese"
    cached = tmp_path / "models--org--small" / "snapshots" / "0a1b"
    cached.mkdir(parents=True)
    assert front(card(cached)).base_model == "org/small"
    (folder / "README.md").write_text("---\nbase_model: org/large\n---\n")
    assert front(card(folder)).base_model == "org/large"


def test_a_card_of_a_base_model_that_cannot_be_read_states_nothing(tmp_path):
    (tmp_path / "README.md").write_bytes(b"---\nlicense: \xff\n---\n")
    assert card(tmp_path).licence == ""
    (tmp_path / "README.md").write_text("no front matter")
    assert card(tmp_path).licence == ""


def test_the_results_are_a_model_index():
    scores = {"dev": {"f1": 0.5}, "test": {"f1": 0.25, "recall": 1.0}}
    data = front(card("org/model", scores=scores, data_sets={"dev": "NCBI", "test": "NCBI"}))
    found = [
        (e.dataset_split, e.dataset_name, e.metric_type, e.metric_value) for e in data.eval_results
    ]
    assert sorted(found) == [
        ("dev", "NCBI", "f1", 0.5),
        ("test", "NCBI", "f1", 0.25),
        ("test", "NCBI", "recall", 1.0),
    ]
    assert (data.datasets, data.metrics) == (["NCBI"], ["f1", "recall"])


def test_an_encoder_measured_on_dev_says_so():
    data = front(card("org/model", metrics={"acc@1": 0.75}, languages=["en", "zh"]))
    [result] = data.eval_results
    assert (result.metric_type, result.metric_value) == ("acc@1", 0.75)
    assert data.language == ["en", "zh"]
    assert data.pipeline_tag == "sentence-similarity"


def test_sources_are_named_with_their_licences():
    sources = (
        {
            "path": "/home/me/hp.obo",
            "notes": ["licence: CC-BY", "other"],
            "files": [{"sha256": "ab" * 32}],
        },
    )
    one = card("org/model", sources=sources, data={"n_singletons": 3})
    text = render_card(one, SETTINGS)
    assert "- `hp.obo`, abababababab, licence: CC-BY\n" in text
    assert "/home/me" not in text
    assert "| singletons | 3 |" in text
    assert "the first of the states" in text
    assert "lowercased" in text
    assert front(one).datasets == ["hp.obo"]


def test_a_card_is_written_once(tmp_path):
    write_card(tmp_path, card("org/model"), SETTINGS)
    before = (tmp_path / "README.md").stat().st_mtime_ns
    write_card(tmp_path, card("org/model"), SETTINGS)
    assert (tmp_path / "README.md").stat().st_mtime_ns == before

"""The spaCy component: entities, spans and extensions; saving, processes, alignment, Chinese."""

from __future__ import annotations

import importlib

import pytest

spacy = pytest.importorskip(
    "spacy", reason="spacy is not installed (pip install 'biograft[spacy]')"
)
from spacy.tokens import Doc, Span

from biograft.errors import BiograftError, ConfigError

importlib.import_module(
    "biograft.linking.spacy"
)  # what the entry point does in an installed package
NOTE = "Denies chest pain. Ovarian and breast cancer. On metformin 500 mg daily, no fevr."


@pytest.fixture(scope="module")
def kb(starter):
    return str(starter)


@pytest.fixture(scope="module")
def nlp(kb):
    nlp = spacy.blank("en")
    nlp.add_pipe("biograft", config={"kb": kb})
    return nlp


def ents(doc):
    return [(ent.text, ent.kb_id_, ent.label_, ent._.status) for ent in doc.ents]


def test_two_processes_find_the_same(nlp):
    texts = ["No flu.", "Asthma and fever.", "Nothing.", NOTE]
    found = [ents(doc) for doc in nlp.pipe(texts, n_process=2, batch_size=2)]
    assert found == [ents(nlp(text)) for text in texts]


def test_a_pipeline_is_saved_with_the_path_of_its_store(nlp, kb, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    assert ents(spacy.load(tmp_path / "pipeline")(NOTE)) == ents(nlp(NOTE))
    saved = nlp.to_bytes()
    again = spacy.blank("en")
    again.add_pipe("biograft", config={"kb": kb})
    again.from_bytes(saved)
    file = tmp_path / "pipeline" / "biograft" / "biograft.json"
    content = file.read_text()
    file.write_text(content.replace('"store": "', '"store": "0'))
    with pytest.warns(UserWarning, match="is not the knowledge base"):
        spacy.load(tmp_path / "pipeline")
    file.write_text("[]")
    with pytest.raises(BiograftError, match=r"biograft\.json is damaged"):
        spacy.load(tmp_path / "pipeline")


def test_entities_of_others_are_linked_where_they_stand(kb):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns(
        [{"label": "SICK", "pattern": "sugar diabetes"}, {"label": "DATE", "pattern": "today"}]
    )
    nlp.add_pipe("biograft", config={"kb": kb, "reads": "ents"})
    assert ents(nlp("No sugar diabetes, and asthma qqq today.")) == [
        ("sugar diabetes", "D003920", "SICK", "absent"),
        ("today", "", "DATE", "absent"),
    ]
    assert ents(nlp("Asthma.")) == []


def test_entities_have_axes_with_and_without_a_store(kb, nlp):
    text = "No fever. The asthma has resolved."
    plain = spacy.blank("en")
    ruler = plain.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "SICK", "pattern": each} for each in ("fever", "asthma")])
    plain.add_pipe("biograft_assertions")
    for doc in (nlp(text), plain(text)):
        assert [ent._.status for ent in doc.ents] == ["absent", "present"]
        assert [ent._.axes["course"] for ent in doc.ents] == ["", "resolved"]
    assert [ent._.concepts for ent in plain(text).ents] == [[], []]
    plain.add_pipe("biograft", config={"kb": kb, "reads": "ents"})
    assert [ent.kb_id_ != "" for ent in plain(text).ents] == [True, True]


@pytest.mark.parametrize(("overwrite", "label"), [(False, "RULE"), (True, "disease")])
def test_entities_of_others_stay_unless_they_are_to_be_replaced(kb, overwrite, label):
    nlp = spacy.blank("en")
    nlp.add_pipe("biograft", config={"kb": kb, "overwrite_ents": overwrite})
    doc = nlp.make_doc("Severe asthma")
    doc.ents = [Span(doc, 0, 2, label="RULE")]
    assert [ent.label_ for ent in nlp(doc).ents] == [label]
    assert [span.text for span in doc.spans["biograft"]] == ["asthma"]


@pytest.mark.parametrize(
    ("mode", "found"), [("expand", ["asthma/fever"]), ("strict", []), ("contract", [])]
)
def test_a_mention_that_ends_within_a_token(kb, mode, found):
    nlp = spacy.blank("en")
    nlp.add_pipe("biograft", config={"kb": kb, "alignment_mode": mode, "label": "X"})
    doc = nlp(Doc(nlp.vocab, words=["Had", "asthma/fever", "."], spaces=[True, False, False]))
    assert [(ent.text, ent.label_) for ent in doc.ents] == [(text, "X") for text in found]


def test_wrong_options_are_refused(kb):
    nlp = spacy.blank("en")
    with pytest.raises(ConfigError, match="kb: missing"):
        nlp.add_pipe("biograft")
    with pytest.raises(ConfigError, match="reads: expected one of text, ents"):
        nlp.add_pipe("biograft", config={"kb": kb, "reads": "entities"})
    with pytest.raises(ConfigError, match="tresholt"):
        nlp.add_pipe("biograft", config={"kb": kb, "settings": {"tresholt": 1}})

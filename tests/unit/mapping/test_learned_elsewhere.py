"""What an index learned from annotated text, beside misspelt names, in spaCy and over HTTP."""

from __future__ import annotations

import pytest
from generative_store import store_in

from biograft.artifacts import new_folder
from biograft.linking import Linker, build_index
from biograft.linking.learned import LearnedForm, StatusPhrase, save_learned
from biograft.mapping import learn_forms
from biograft.text.documents import Document, Mention

CONCEPTS = [
    {"id": "D1", "name": "Atrial Fibrillation"},
    {"id": "D2", "name": "Influenza"},
    {"id": "D3", "name": "Common Cold", "names": ["cold"]},
]
FORMS = [LearnedForm("odd beat", "D1", "", 9, 9, 9), LearnedForm("cold", "", "", 9, 9, 9)]
PHRASES = [
    StatusPhrase("swears off", "negated", "en", n_right=9, n_seen=9, n_documents=9),
    StatusPhrase("暂缺", "negated", "zh", n_right=9, n_seen=9, n_documents=9),
]
TEXT = "He swears off odd beat. Cold wind, influenza."
FOUND = [("odd beat", "D1", "absent"), ("influenza", "D2", "present")]


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """Folders of a store, and of its index with what it learned."""
    folder = tmp_path_factory.mktemp("taught")
    kb = store_in(folder, CONCEPTS, "KB")
    build_index(kb, folder / "INDEX")
    with new_folder(folder / "INDEX" / "learned") as work:
        save_learned(work, "notes", FORMS, PHRASES)
    return kb.folder, folder / "INDEX"


def found(linker, text):
    return [(each.text, each.concept, each.status) for each in linker(text).mentions]


def test_learned_forms_stand_beside_misspelt_names(taught):
    kb, index = taught
    linker = Linker.open(kb, index, misspelt=True)
    assert found(linker, TEXT) == FOUND
    assert found(linker, "Odd beat and infuenza.") == [
        ("Odd beat", "D1", "present"),
        ("infuenza", "D2", "present"),
    ]
    assert found(linker.with_settings(misspelt=False), "Odd beat and infuenza.") == [
        ("Odd beat", "D1", "present")
    ]


def test_a_misspelling_that_people_marked_is_learned(tmp_path):
    """It is no word that `--misspelt` finds; and one that it finds may be no mention."""
    kb = store_in(tmp_path, CONCEPTS, "KB")
    build_index(kb, tmp_path / "INDEX")
    texts = [f"Day {n}: flewynza; Infuenza Ltd came." for n in range(24)]
    documents = [
        Document(str(n), text, (Mention(at, at + 8, "flewynza", ("D2",)),))
        for n, text in enumerate(texts)
        for at in [text.index("flewynza")]
    ]
    linker = Linker.open(kb, tmp_path / "INDEX", misspelt=True)
    assert [each[0] for each in found(linker, texts[0])] == ["Infuenza"]
    report = learn_forms(kb, tmp_path / "INDEX", documents, config=linker.config)
    assert (report.n_forms, report.n_no_mention, report.f1_after) == (1, 1, 100)
    linker = Linker.open(kb, tmp_path / "INDEX", misspelt=True)
    assert found(linker, "Flewynza; Infuenza.") == [("Flewynza", "D2", "present")]


def test_spacy_finds_what_was_learned(taught):
    spacy = pytest.importorskip("spacy", reason="spacy is not installed")
    pytest.importorskip("biograft.linking.spacy")
    kb, index = map(str, taught)
    nlp = spacy.blank("en")
    nlp.add_pipe("biograft", config={"kb": kb, "index": index})
    for doc in (nlp(TEXT), *nlp.pipe([TEXT])):
        assert [(ent.text, ent.kb_id_, ent._.status) for ent in doc.ents] == FOUND


def test_the_service_finds_what_was_learned(taught):
    pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
    pytest.importorskip("httpx")
    from fastapi.testclient import TestClient

    from biograft.serve import create_app

    kb, index = taught
    with TestClient(create_app(kb, index), base_url="http://localhost") as client:
        mentions = client.post("/v1/link", json={"text": TEXT}).json()["mentions"]
        assert [(m["text"], m["concept"], m["status"]) for m in mentions] == FOUND
        for text, span in (("Swears off gout.", [11, 15]), ("暂缺头痛", [2, 4])):
            asked = {"text": text, "spans": [span]}
            (said,) = client.post("/v1/assertions", json=asked).json()["assertions"]
            assert said["status"] == "absent"
            assert said["triggers"][0]["rule"].startswith("learned, marked so 9 of 9 times")

"""PubTator, BioC and brat: findings read back as annotations."""

from __future__ import annotations

import pytest

from biograft.linking import Linker, write_linked
from biograft.linking.outputs.annotations import to_document
from biograft.text import read_documents
from biograft.text.documents import Document, Mention

TEXT = "A title. No heart attack,\nbut a cold and type 2 diabetes (T2D)."
FORMATS = [("pubtator", "pubtator"), ("bioc", "bioc-json"), ("brat", "brat")]


@pytest.mark.parametrize(("to", "form"), FORMATS)
def test_findings_read_back(kb, tmp_path, to, form):
    documents = list(Linker.open(kb).pipe([Document("a", TEXT), Document("b", "no name")]))
    losses = write_linked(documents, tmp_path / "out", to, kb)
    assert losses["attributes of mentions"] == (1 if to == "pubtator" else 0)
    first, second = read_documents(tmp_path / "out", form)
    assert (first.id, second.id) == ("a", "b")
    assert [(m.start, m.end, m.concepts, m.type) for m in first.mentions] == [
        (m.start, m.end, (m.concept,), m.types[0]) for m in documents[0].mentions
    ]
    assert second.mentions == ()
    said = (("status", "absent"), ("polarity", "negated"))
    assert [m.attributes for m in first.mentions[:2]] == [() if to == "pubtator" else said, ()]


@pytest.mark.parametrize(
    ("to", "form", "names"),
    [
        ("pubtator", "pubtator", ["a_b", "text 2", "/data/notes/1.txt", "notes/1.txt", "../1"]),
        ("bioc", "bioc-json", ["a|b", "text 2", "/data/notes/1.txt", "notes/1.txt", "../1"]),
        ("brat", "brat", ["1", "1-2", "a|b", "notes/1", "text 2"]),
    ],
)
def test_any_id_of_a_document_can_be_written(kb, tmp_path, to, form, names):
    ids = ["a|b", "", "/data/notes/1.txt", "notes/1.txt", "../1"]
    linked = Linker.open(kb).pipe([Document(name, "cold") for name in ids])
    write_linked(linked, tmp_path / "out", to, kb)
    assert [document.id for document in read_documents(tmp_path / "out", form)] == names


def test_parts_of_a_composite_are_one_mention(kb):
    text = "breast and ovarian cancer"
    linked = Linker.open(kb)(Document("1", text, (Mention(0, 25, text, type="X", id="T9"),)))
    (mention,) = to_document(linked).mentions
    assert mention.concepts == ("D2", "D3")
    assert mention.parts == ("breast cancer", "ovarian cancer")
    assert (mention.type, mention.id) == ("disease", "T9")


def test_a_mention_without_a_concept_keeps_its_type(kb):
    linked = Linker.open(kb, threshold=0.9)(Document("1", "zzz", (Mention(0, 3, "zzz", type="X"),)))
    (mention,) = to_document(linked).mentions
    assert (mention.concepts, mention.type, mention.attributes) == ((), "X", ())


def test_gaps_of_a_mention_are_kept(kb):
    gaps = Mention(0, 16, "breast cancer", fragments=((0, 6), (10, 16)))
    linked = Linker.open(kb)(Document("1", "breast or cancer", (gaps,)))
    assert to_document(linked).mentions[0].fragments == gaps.fragments

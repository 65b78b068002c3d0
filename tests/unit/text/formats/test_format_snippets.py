"""Snippets of each document format, valid and malformed, as their corpora have them."""

import gzip
import json
from itertools import chain

import pytest

from biograft.errors import FormatError
from biograft.kb.sources import ReadLog
from biograft.text import read_documents
from biograft.text.documents import Document, Mention, Passage, Relation

BIOC = """<?xml version='1.0'?><!DOCTYPE collection SYSTEM 'BioC.dtd'>
<collection><source>x</source><date/><key/>
<document><id>1</id>
<passage><infon key="type">title</infon><offset>0</offset><text>Skin and liver pain.</text>
<annotation id='0'><infon key="type">Disease</infon><infon key="MESH">D1|D2</infon>
<infon key="CompositeRole">CompositeMention</infon>
<location offset='0' length='4'/><location offset='15' length='4'/>
<text>Skin pain</text></annotation>
</passage>
<passage><infon key="type">abstract</infon><offset>21</offset><text>Tea &amp; salt.</text>
<annotation id='1'><infon key="MESH">-1</infon><location offset='21' length='3'/><text>Tea</text>
</annotation></passage>
<relation id='R0'><infon key="relation">CID</infon><infon key="Chemical">D3</infon>
<infon key="Disease">D1</infon></relation>
<relation id='R1'><infon key="type">eases</infon><node refid='1' role='drug'/>
<node refid='0' role='sign'/></relation>
</document>
<document><id>2</id><passage><offset>zero</offset><text>a</text></passage></document>
<document><id>3</id></document>
</collection>
"""
DOCUMENT = Document(
    "1",
    "Skin and liver pain. Tea & salt.",
    (
        Mention(
            *(0, 19, "Skin pain", ("D1", "D2"), "Disease", ((0, 4), (15, 19))),
            id="0",
            attributes=(("CompositeRole", "CompositeMention"),),
        ),
        Mention(21, 24, "Tea", id="1"),
    ),
    relations=(
        Relation("CID", (("Chemical", "D3"), ("Disease", "D1")), "R0", "concepts"),
        Relation("eases", (("drug", "1"), ("sign", "0")), "R1"),
    ),
    passages=(Passage(0, 20, "title"), Passage(21, 32, "abstract")),
)
DDI = """<?xml version="1.0"?>
<document id="d1">
  <sentence id="d1.s0" text="Iron binds.&#13;&#10;"/>
  <sentence id="d1.s1" text="Heme and free iron harm.">
    <entity id="e0" charOffset="0-3;14-17" type="drug" text="Heme iron"/>
    <entity id="e1" charOffset="9-17" type="group" text="free iron"/>
    <entity id="e2" charOffset="nine" type="group" text="free iron"/>
    <pair id="p0" e1="e0" e2="e1" ddi="true" type="effect"/>
    <pair id="p1" e1="e0" e2="e2" ddi="true"/>
  </sentence>
</document>
"""
DDI_DOCUMENT = Document(
    "d1",
    "Iron binds.\r\nHeme and free iron harm.",
    (
        Mention(13, 31, "Heme iron", type="drug", fragments=((13, 17), (27, 31)), id="e0"),
        Mention(22, 31, "free iron", type="group", id="e1"),
    ),
    relations=(Relation("effect", (("e1", "e0"), ("e2", "e1")), "p0"),),
    passages=(Passage(0, 13, "sentence"), Passage(13, 37, "sentence")),
)


def rejected(log):
    return {reason: [e.line for e in es] for reason, es in log.rejected.examples.items()}


class TestBioc:
    def test_xml_with_gaps_relations_and_a_broken_document(self, read_as):
        documents, log = read_as("", BIOC)
        assert documents == [DOCUMENT, Document("3", "")]
        assert rejected(log) == {"an offset is no whole number": [18]}
        assert log.filtered == {}

    def test_passages_that_overlap_and_sentences_of_passages_without_text(self, read_as):
        sentences = [{"offset": 0, "text": "A b."}, {"offset": 5, "text": "C."}]
        passages = [{"offset": 0, "sentences": sentences}, {"offset": 3, "text": "D"}]
        value = {"documents": [{"id": "1", "passages": passages}, [], {"passages": [{}]}]}
        (document,), log = read_as("bioc-json", json.dumps(value))
        assert document.text == "A b. C. D"
        assert [p.kind for p in document.passages][:2] == ["sentence", "sentence"]
        assert log.doubtful.counts == {"a passage begins within the one before it": 1}
        assert set(rejected(log)) == {"not a JSON object", "offset is missing or no whole number"}

    def test_damaged_xml_is_reported_with_its_line(self, read_as):
        with pytest.raises(FormatError, match=r"a:1[0-9]: the XML is damaged"):
            read_as("", BIOC.replace("</passage>", "", 1))


class TestDdi:
    def test_a_folder_with_a_damaged_file(self, write, tmp_path):
        write("c/a.xml", DDI)
        write("c/b.xml", "<document>\n<x></document>")
        write("c/d.xml", '<!DOCTYPE x [<!ENTITY a "a">]><document id="e"/>')
        write("c/e.xml", '<document id="f"/>'.encode("utf-16"))
        log = ReadLog(tmp_path / "c")
        assert list(read_documents(tmp_path / "c", log=log)) == [DDI_DOCUMENT]
        assert rejected(log) == {
            "offsets not of the form 0-4": [7],
            "a pair of unknown entities": [9],
            "the XML is damaged": [2],
            "the XML declares entities, which are not read": [1],
            "is UTF-16": [1],
        }


class TestBrat:
    def test_a_folder_with_all_kinds_of_lines(self, write, tmp_path):
        write("b/x.txt", "Heart and lung\nfailure hurts")
        lines = [
            "T1\tDisease 0 5;15 22\tHeart failure",
            "T2\tDisease 10 22\tlung failure",
            "T3\tVerb 23 28\thurts",
            "N1\tReference T1 MESH:D1\tHeart Failure",
            "N2\tReference T1 id:D2\tx",
            "R1\tWith Arg1:T1 Arg2:T2",
            "*\tEquiv T1 T2",
            "E1\tHarm:T3 Cause:T1",
            "E2\tHarm:T3 Cause:E1",
            "A1\tNegation T1",
            "A2\tCertainty T1 low",
            "A3\tNegation E1",
            "#1\tNote T1\tx",
            "T4\tDisease 90 95\tvirus",
            "T5\tDisease 0\tx",
            "R2\tWith Arg1:T9",
            "Q",
            "N3\tx",
        ]
        write("b/x.ann", "\n".join(lines))
        write("b/y.txt", "")
        log = ReadLog(tmp_path / "b")
        assert list(read_documents(tmp_path / "b", log=log)) == [
            Document(
                "x",
                "Heart and lung\nfailure hurts",
                (
                    Mention(
                        0,
                        22,
                        "Heart failure",
                        ("MESH:D1", "D2"),
                        "Disease",
                        ((0, 5), (15, 22)),
                        id="T1",
                        attributes=(("Negation", ""), ("Certainty", "low")),
                    ),
                    Mention(10, 22, "lung\nfailure", type="Disease", id="T2"),
                    Mention(23, 28, "hurts", type="Verb", id="T3"),
                ),
                relations=(
                    Relation("With", (("Arg1", "T1"), ("Arg2", "T2")), "R1"),
                    Relation("Equiv", (("", "T1"), ("", "T2"))),
                    Relation("Harm", (("Trigger", "T3"), ("Cause", "T1")), "E1"),
                ),
            ),
            Document("y", ""),
        ]
        assert log.filtered == {"attribute": 1, "note": 1, "event about events": 1}
        assert log.doubtful.counts == {"no annotations beside the text": 1}
        assert rejected(log) == {
            "offsets do not fit the text": [14],
            "is no line of a brat file": [15, 17, 18],
            "refers to what is not there": [16],
        }


class TestTags:
    def test_documents_by_docstart_lines(self, read_as):
        text = (
            "-DOCSTART- 7\n\na\tO\nb-\tB-X\nc\tI-X\n\nd\tE-Y\n\ne f\n\n-DOCSTART- -X- O\n\ng\tO\n"
        )
        documents, log = read_as("", gzip.compress(text.encode()))
        assert documents == [
            Document(
                "7",
                "a b- c\nd",
                (Mention(2, 6, "b- c", type="X"), Mention(7, 8, "d", type="Y")),
                passages=(Passage(0, 6, "tokens"), Passage(7, 8, "tokens")),
            ),
            Document("2", "g", passages=(Passage(0, 1, "tokens"),)),
        ]
        assert rejected(log) == {"a sentence with a line that is not token and tag": [9]}

    def test_sentences_without_docstart_are_documents_and_inner_columns_are_counted(self, read_as):
        documents, log = read_as("", "a NN B\r\n\r\n\r\nb NN O\r\nx\r\n\r\nc NN O\r\n")
        assert [(d.id, d.text) for d in documents] == [("1", "a"), ("3", "c")]
        assert (log.filtered, log.rejected.counts.total()) == ({"column": 3}, 1)


def test_a_dialogue(read_as):
    tags = [("吐吗", "BO", ["呕吐"]), ("吐", "B", []), ("是", "OO", [])]
    turns = [
        {"speaker": "患者", "sentence": text, "label": label, "normalized": names, "type": ["2"]}
        for text, label, names in tags
    ]
    rows = [{"example-id": "5", "dialogue-content": turns}, {"example-id": "6"}]
    (document,), log = read_as("", "\n".join(json.dumps(row) for row in rows))
    assert document.text == "吐吗\n吐\n是"
    assert [(m.start, m.concepts) for m in document.mentions] == [(0, ("呕吐",)), (3, ())]
    assert log.doubtful.counts == {"not as many normal forms as tags B": 2}
    assert rejected(log) == {
        "not as many tags as characters": [1],
        "dialogue-content is missing or no list": [2],
    }


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("cmeee", '[{"text": "a%s", "entities": []}, {"text": "b", "entities": []}]'),
        ("bioc-json", '{"documents": [{"id": "%s", "passages": []}, {"id": "b", "passages": []}]}'),
    ],
)
def test_half_a_surrogate_pair_rejects_its_document(read_as, form, value):
    """Guards: it passed into documents of CMeEE and BioC, and stopped whoever wrote them."""
    documents, log = read_as(form, value % "\\ud800")
    assert len(documents) == 1
    assert [*rejected(log)] == ["holds half a surrogate pair"]


class TestChinese:
    def test_mention_data_with_offsets_as_text(self, read_as):
        data = [
            {"mention": "HIV", "type": "disease", "offset": "1", "guid": "None"},
            {"mention": "病", "type": "disease", "offset": "4", "guid": "g-1"},
        ]
        rows = [
            {"text": "查hiv病", "mention_data": data, "segment": []},
            {"mention_data": []},
            {"text": "a", "mention_data": [{"mention": "a", "offset": "x"}]},
            {"text": "b", "mention_data": []},
        ]
        documents, log = read_as("", "\n".join(map(json.dumps, rows)) + "\nnot json\n")
        mentions = (Mention(1, 4, "hiv", (), "disease"), Mention(4, 5, "病", ("g-1",), "disease"))
        assert documents == [Document("1", "查hiv病", mentions), Document("4", "b")]
        assert log.doubtful.counts == {"the text is written otherwise": 1}
        assert sorted(chain(*rejected(log).values())) == [2, 3, 5]
        assert log.filtered == {"segment": 1}


class TestJsonl:
    def test_short_and_malformed_documents(self, read_as):
        rows = [
            {
                "id": "1",
                "text": "a b c",
                "note": 1,
                "mentions": [{"start": 0, "end": 1}, {"fragments": [[0, 1], [4, 5]]}],
            },
            {"id": 2.5, "text": "x"},
            {"id": "3", "text": "x", "mentions": [{"start": True, "end": 1}]},
            {"id": "4", "text": "x", "relations": [{"type": "t", "of": "things"}]},
            {"id": "5", "text": "x", "relations": [{"type": "t", "arguments": [["a"]]}]},
            {"id": "6", "text": "x", "passages": [{"start": 0, "end": 9}]},
            {"id": "7", "text": "x", "mentions": ["x"]},
            {"id": 8, "text": "y"},
            {"text": "z"},
        ]
        documents, log = read_as("", "\n".join(map(json.dumps, rows)) + "\n[]\n")
        fragments = ((0, 1), (4, 5))
        expected = (Mention(0, 1, "a"), Mention(0, 5, "a c", fragments=fragments))
        assert documents[0] == Document("1", "a b c", expected)
        assert [d.id for d in documents[1:]] == ["8", f"{log.path.name}:9"]
        assert sorted(chain(*rejected(log).values())) == [2, 3, 4, 5, 6, 7, 10]
        assert log.filtered == {"note": 1}

"""Objects at the prompt and in a notebook: short, escaped, without a script."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from biograft import Linker
from biograft.display import highlighted, marked, stretches, table
from biograft.kb import build_starter
from biograft.mapping import MappingRow, MappingSet
from biograft.mapping.terms import SourceTerm, TermMapping
from biograft.text.documents import Document, Mention
from biograft.training.linkers.recipes import Outcome

NOTE = 'No fever, known AF <script>alert(1)</script> & "quotes" $5 to $6. 2型糖尿病10年, no CVA.'
LONG = 200


@pytest.fixture(scope="module")
def linker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("display") / "kb"
    build_starter(folder)
    return Linker.open(folder)


class Reader(HTMLParser):
    """Collects text and tags, and counts what is open."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], set(), [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def check_html(html):
    """What every representation keeps to."""
    read = Reader(html)
    assert read.open == []
    assert read.tags <= {"table", "tr", "td", "th", "div", "mark", "p"}
    assert {name for name, _ in read.attributes} <= {"class", "style", "title", "dir"}
    for name, value in read.attributes:
        if name == "style":  # text in the colour of the page, on colours that let it through
            assert "url(" not in value
            assert "color:" not in value.replace("color:inherit", "")
    return read


def objects(linker):
    kb, linked = linker.kb, linker(NOTE * 40)
    mention = Mention(3, 8, "fever", ("D005334",), "Disease", attributes=(("status", "absent"),))
    document = Document("n", NOTE * 40, (mention,) * 90)
    mapped = TermMapping(SourceTerm("hart atack" * 9), "D009203", "Infarction", 0.9, None)
    rows = [
        MappingRow(subject_id=f"MONDO:{n}", object_id="MESH:D1", object_label="<b>")
        for n in range(99)
    ]
    outcome = Outcome(made={"model": Path("RUN/model")}, report={"dev": {"acc@1": 0.81234567}})
    concept = kb["D003924"]
    things = [kb, concept, mention, document, linked, linked.mentions[0], mapped, rows[0], outcome]
    return [*things, linked.mentions[0].candidates[0], MappingSet(rows=rows)]


def test_every_repr_is_one_short_line(linker):
    for each in objects(linker):
        assert len(repr(each)) <= LONG, repr(each)
        assert "\n" not in repr(each)
        assert repr(each).startswith(type(each).__name__)


def test_every_html_is_well_formed_and_escaped(linker):
    for each in objects(linker):
        html = each._repr_html_()
        check_html(html)
        assert "<script" not in html
        assert "<b>" not in html


def test_a_mention_shows_what_one_wants_to_know(linker):
    mention = linker(NOTE).mentions[0]
    assert repr(mention) == (
        "LinkedMention(start=3, end=8, text='fever', concept='D005334', name='Fever', score=1.0, "
        "status='absent')"
    )


def test_a_short_note_has_a_short_repr(linker):
    linked = linker("No fever, known AF.")
    assert repr(linked).startswith("LinkedDocument(document=Document(text='No fever, known AF.')")
    assert repr(Document("7", "No fever.")) == "Document(id='7', text='No fever.')"


def test_a_linked_text_is_marked_and_listed(linker):
    read = check_html(linker(NOTE)._repr_html_())
    assert read.text.startswith(NOTE)
    titles = [value for name, value in read.attributes if name == "title"]
    assert titles[0] == "D005334 Fever absent"
    assert "Atrial Fibrillation" in read.text
    assert "line-through" in next(value for name, value in read.attributes if "through" in value)
    # a notebook would set what is between dollars as a formula
    assert all(value == "tex2jax_ignore" for name, value in read.attributes if name == "class")


def test_the_mentions_of_a_document_are_marked():
    mentions = (Mention(0, 4, "left", type="Side"), Mention(0, 9, "left knee", type="Body"))
    read = check_html(Document("n", "left knee", mentions)._repr_html_())
    assert read.text == "left knee"
    assert sum(name == "title" for name, _ in read.attributes) == 1


def test_a_set_shows_its_first_mappings_and_their_number():
    rows = [MappingRow(subject_id=f"MONDO:{n}", object_id="MESH:D1") for n in range(1234)]
    read = check_html(MappingSet(rows=rows)._repr_html_())
    assert "MONDO:9" in read.text
    assert "MONDO:10" not in read.text
    assert "1,234 mappings" in read.text


def test_a_report_is_a_table_of_its_numbers():
    outcome = Outcome(made={"model": Path("RUN/model")}, report={"dev": {"acc@1": 0.81234567}})
    assert "0.8123" in check_html(outcome._repr_html_()).text


def test_stretches_group_what_overlaps():
    spans = [Mention(8, 9, ""), Mention(0, 4, ""), Mention(2, 6, ""), Mention(6, 7, "")]
    found = [(start, end, len(group)) for start, end, group in stretches(spans)]
    assert found == [(0, 6, 2), (6, 7, 1), (8, 9, 1)]


def test_control_characters_do_not_reach_html():
    text = "a\x00\x1b[31m<i>\ud800"
    read = check_html(table([[text]]) + highlighted(text, [(0, 1, "x", "", 'q"><script>')]))
    assert "\x00" not in read.text
    assert "\x1b" not in read.text
    assert marked("a<b", [(1, 2, "<i>", "</i>")]) == "a<i>&lt;</i>b"

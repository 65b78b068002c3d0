"""The page: its text is whole, its links lead somewhere, nothing in it runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from biograft.errors import OutputError
from biograft.linking import Linker, link_chunks, write_linked
from biograft.text.documents import Document, Mention

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Reads a page: the text of its documents, the marks in them, anchors and links."""

    def __init__(self, source):
        super().__init__()
        self.open, self.texts, self.marks = [], [], []
        self.ids, self.links, self.tags, self.titles = [], [], set(), []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.add(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        if given.get("class") == "text":
            self.texts.append("")
        if tag == "a" and "div" in self.open and given.get("title"):
            self.marks.append((len(self.texts[-1]), ""))
            self.titles.append(given["title"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["div"] and "section" not in self.open:
            self.texts[-1] += data
        elif self.open[-2:] == ["div", "a"] and "section" not in self.open:
            start, so_far = self.marks[-1]
            self.marks[-1] = (start, so_far + data)
            self.texts[-1] += data


@pytest.fixture
def linker(kb):
    return Linker.open(kb)


def page(kb, *linked):
    return "".join(link_chunks(linked, "html", kb))


def page_of(kb, *linked):
    return Page(page(kb, *linked))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a heart attack & <script>alert('x')</script> \"cold\"",
        "😀 e\u0301 cold 👨‍👩‍👧 2型糖尿病 cold",
        "مريض cold עברית",
        "line one\n\n  cold\n",
    ],
)
def test_the_text_is_whole_and_every_mention_marked(kb, linker, text):
    linked = linker(text)
    shown = page_of(kb, linked)
    assert shown.texts == [text]
    assert shown.marks == [(m.start, m.text) for m in linked.mentions]


def test_links_lead_to_the_candidates_and_back(kb, linker):
    documents = list(linker.pipe(["cold and cold and heart attack", "cold"]))
    shown = page_of(kb, *documents)
    assert len(shown.ids) == len(set(shown.ids)) == 4 + 3
    assert {link.removeprefix("#") for link in shown.links} <= set(shown.ids)
    assert shown.links[0] == shown.links[1] != shown.links[2]


def test_nothing_comes_from_elsewhere_and_nothing_runs(kb, linker):
    source = page(kb, linker("cold"))
    assert Page(source).tags.isdisjoint({"script", "img", "link", "iframe", "object"})
    assert "default-src 'none'" in source
    assert not re.search(r"https?:|@import|url\(", source)


def test_what_the_store_says_is_escaped(kb, linker, store_of):
    source = page(kb, linker("type 2 diabetes"))
    assert "Too much sugar in the &lt;blood&gt;." in source
    evil = store_of([{"id": 'x"><b>', "name": "<i>cold</i>", "type": "<u>"}], "evil")
    shown = page_of(evil, Linker.open(evil)("i cold i <i>cold</i>"))
    assert shown.tags.isdisjoint({"b", "i", "u"})


def test_probabilities_evidence_and_forms_are_written(kb, linker):
    source = page(kb, linker("heart attack (HA), HA"))
    assert "lexical #1 (1.000) <bdi>heart attack</bdi>" in source
    assert "<bdi>HA</bdi> → <bdi>heart attack</bdi>: D4" in source
    assert "<span><a" in source
    assert ">disease</a>" in source


def test_parts_of_a_mention_and_overlapping_mentions_share_a_mark(kb, linker):
    text = "breast and ovarian cancer"
    document = Document("<1>", text, (Mention(0, 25, text), Mention(11, 25, text[11:])))
    shown = page_of(kb, linker(document))
    assert shown.marks == [(0, text)]
    assert shown.titles == ["D2 Breast Neoplasms; D3 Ovarian Neoplasms; D3 Ovarian Neoplasms"]


def test_characters_that_no_page_can_hold(kb, linker, tmp_path):
    write_linked([linker("\x00\x1b cold \ud83d")], tmp_path / "p.html", "html", kb)
    content = (tmp_path / "p.html").read_bytes().decode("utf-8")
    assert "\ufffd\ufffd <a" in content
    assert "cold</a> \ufffd" in content
    with pytest.raises(OutputError, match="exists already"):
        write_linked([], tmp_path / "p.html", "html", kb)
    write_linked([], tmp_path / "p.html", "html", kb, overwrite=True)


def test_the_page_shows_what_the_text_says_of_a_mention(kb, linker):
    source = page(kb, linker("No breast cancer. Possible heart attack. Mother had ovarian cancer."))
    assert re.search(r'class="m absent"[^>]*title="[^"]*negated \(No\)"', source)
    assert 'class="m possible"' in source
    assert "ovarian cancer</a><sup>family</sup>" in source
    assert "uncertain (Possible)" in source
    source = page(kb, linker("The heart attack has resolved. Breast cancer is planned."))
    assert "heart attack</a><sup>resolved</sup>" in source
    assert "Breast cancer</a><sup>planned</sup>" in source


def test_a_page_without_assertions_has_no_marks_of_them(kb):
    source = page(kb, Linker.open(kb, assertions=False)("No breast cancer."))
    assert 'class="m" style' in source
    assert "<sup>" not in source
    assert "negated" not in source

"""Lines for a terminal: columns under one another, whatever the script."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from biograft.documents import Document, Mention
from biograft.errors import OutputError
from biograft.linking import Linker, write_html
from biograft.linking.candidates import LinkedDocument, LinkedMention
from biograft.linking.output import align, candidates_table, cut, table, to_html, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [("flu", 3), ("流感", 4), ("e\u0301", 1), ("😀", 2), ("Ｔ", 2), ("", 0), ("a\u200db", 2)],
)
def test_width(text, columns):
    assert width(text) == columns


def test_columns_stand_under_one_another():
    assert align([("流感", "a"), ("flu", "b"), ("x", "")]) == ["流感  a", "flu   b", "x"]
    assert align([]) == []


def test_a_text_is_cut_to_columns_not_characters():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abc..."
    assert cut("流感流感", 7) == "流感..."


def test_a_document_and_its_answers(kb):
    lines = table(Linker.open(kb)("2型糖尿病 cold; heart attack (HA)"))
    assert [line.split()[0] for line in lines] == ["position", "0-5", "6-10", "12-24", "26-28"]
    assert "HA (heart attack)" in lines[4]
    assert lines[3].endswith("lexical #1: heart attack")
    assert table(Linker.open(kb)("")) == ["no mention"]


def test_candidates_and_nil(kb):
    linker = Linker.open(kb, threshold=0.9)
    inputs = [Document(str(n), m, (Mention(0, len(m), m),)) for n, m in enumerate(["cold", "hart"])]
    lines = candidates_table(linker.pipe(inputs), 2)
    assert [line.split()[0] for line in lines] == ["position", "0", "D7", "1"]
    assert "NIL" in lines[3]
    assert "nearest: Myocardial Infarction" in lines[3]


def test_a_text_cannot_command_the_terminal(kb):
    document = Document("1", "a\x1b[31m\nb", (Mention(0, 8, "a\x1b[31m\nb"),))
    lines = table(Linker.open(kb)(document))
    assert len(lines) == 2
    assert "\x1b" not in lines[1]


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


def page_of(kb, *linked):
    return Page(to_html(linked, kb))


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
    page = page_of(kb, linked)
    assert page.texts == [text]
    assert page.marks == [(m.start, m.text) for m in linked.mentions]


def test_links_lead_to_the_candidates_and_back(kb, linker):
    documents = list(linker.pipe(["cold and cold and heart attack", "cold"]))
    page = page_of(kb, *documents)
    assert len(page.ids) == len(set(page.ids)) == 4 + 3
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert page.links[0] == page.links[1] != page.links[2]


def test_nothing_comes_from_elsewhere_and_nothing_runs(kb, linker):
    source = to_html([linker("cold")], kb)
    assert Page(source).tags.isdisjoint({"script", "img", "link", "iframe", "object"})
    assert "default-src 'none'" in source
    assert not re.search(r"https?:|@import|url\(", source)


def test_what_the_store_says_is_escaped(kb, linker, store_of):
    source = to_html([linker("type 2 diabetes")], kb)
    assert "Too much sugar in the &lt;blood&gt;." in source
    evil = store_of([{"id": 'x"><b>', "name": "<i>cold</i>", "type": "<u>"}], "evil")
    page = page_of(evil, Linker.open(evil)("i cold i <i>cold</i>"))
    assert page.tags.isdisjoint({"b", "i", "u"})


def test_probabilities_evidence_and_forms_are_written(kb, linker):
    source = to_html([linker("heart attack (HA), HA")], kb)
    assert "lexical #1 (1.000) <bdi>heart attack</bdi>" in source
    assert "<bdi>HA</bdi> → <bdi>heart attack</bdi>: D4" in source
    assert "<span><a" in source
    assert ">disease</a>" in source


def test_parts_of_a_mention_and_overlapping_mentions_share_a_mark(kb, linker):
    text = "breast and ovarian cancer"
    document = Document("<1>", text, (Mention(0, 25, text), Mention(11, 25, text[11:])))
    page = page_of(kb, linker(document))
    assert page.marks == [(0, text)]
    assert page.titles == ["D2 Breast Neoplasms; D3 Ovarian Neoplasms; D3 Ovarian Neoplasms"]


def test_nil_is_marked_as_such(kb):
    linked = LinkedDocument(Document("1", "zzz"), (LinkedMention(0, 3, "zzz", "zzz"),))
    source = to_html([linked], kb)
    assert '<a class="m nil" id="d1m1" href="#d1f1" title="NIL">zzz</a>' in source


def test_characters_that_no_page_can_hold(kb, linker, tmp_path):
    write_html([linker("\x00\x1b cold \ud83d")], kb, tmp_path / "p.html")
    content = (tmp_path / "p.html").read_bytes().decode("utf-8")
    assert "\ufffd\ufffd <a" in content
    assert "cold</a> \ufffd" in content
    with pytest.raises(OutputError, match="exists already"):
        write_html([], kb, tmp_path / "p.html")
    write_html([], kb, tmp_path / "p.html", overwrite=True)


def test_equal_documents_make_equal_pages(kb, linker):
    text = "cold metformin heart attack"
    assert to_html([linker(text)], kb) == to_html([linker(text)], kb)


def test_the_page_shows_what_the_text_says_of_a_mention(kb, linker):
    source = to_html(
        [linker("No breast cancer. Possible heart attack. Mother had ovarian cancer.")], kb
    )
    assert re.search(r'class="m absent"[^>]*title="[^"]*negated \(No\)"', source)
    assert 'class="m possible"' in source
    assert "ovarian cancer</a><sup>family</sup>" in source
    assert "uncertain (Possible)" in source


def test_a_page_without_assertions_has_no_marks_of_them(kb):
    source = to_html([Linker.open(kb, assertions=False)("No breast cancer.")], kb)
    assert 'class="m" style' in source
    assert "<sup>" not in source
    assert "negated" not in source


def test_the_table_says_what_is_not_present(kb):
    lines = table(Linker.open(kb)("No heart attack. Breast cancer was found."))
    assert "heart attack [absent]" in lines[1]
    assert "[" not in lines[2]

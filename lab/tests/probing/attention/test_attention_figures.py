"""Figures and pages: fonts for all characters, numbers without a font, self-contained HTML."""

import re
import struct
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from biograft_lab.probing.attention import (
    AttentionSummary,
    Curves,
    InsideEntity,
    ReplacedSentence,
    curves_page,
    draw_curves,
    draw_insides,
    draw_summary,
    insides_page,
    summary_page,
)
from biograft_lab.probing.attention.curves import EncoderSummary
from biograft_lab.probing.attention.figures import OWN, choose_fonts, drawable

RARE = "\U0002a6d6\U0002b740"
"""Chinese characters that hardly any font has."""


@pytest.fixture
def rare_font(tmp_path):
    """Install a font with the rare signs for the time of a test."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for point in ((0, 500), (500, 500), (500, 0)):
        pen.lineTo(point)
    pen.closePath()
    glyphs = {".notdef": TTGlyphPen(None).glyph(), "a": pen.glyph(), "b": pen.glyph()}
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder(list(glyphs))
    font.setupCharacterMap(
        {ord(character): name for character, name in zip(RARE, "ab", strict=True)}
    )
    font.setupGlyf(glyphs)
    font.setupHorizontalMetrics(dict.fromkeys(glyphs, (600, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "Rare Signs", "styleName": "Regular"})
    font.setupOS2(sTypoAscender=800, usWinAscent=800, usWinDescent=200)
    font.setupPost()
    path = tmp_path / "rare.ttf"
    font.save(path)
    before = list(font_manager.fontManager.ttflist)
    font_manager.fontManager.addfont(path)
    yield "Rare Signs"
    font_manager.fontManager.ttflist[:] = before


def curves(tokens=("he", "has", "now"), encoder="tiny"):
    rng = np.random.default_rng(0)
    values = {name: rng.random(len(tokens)) for name in ("entity", "synonym", "random")}
    return Curves(encoder, 11, tuple(tokens), 2, values)


def inside(tokens=("high", "fever"), encoder="tiny"):
    n = len(tokens)
    weights = np.random.default_rng(1).random((n, n))
    return InsideEntity(encoder, 10, tuple(tokens), weights)


def summary(*encoders):
    rng = np.random.default_rng(2)
    elements = tuple(
        EncoderSummary(name, 11, {"synonym": rng.random(4), "random": rng.random(4)})
        for name in encoders
    )
    return AttentionSummary((SENTENCE,) * 4, elements, Counter({"the text is too long": 2}))


SENTENCE = ReplacedSentence("he has <fever> $x$ now", 7, 14, "heat & $y$", "gout", id="a<b")


def size(png):
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])


def test_fonts_are_chosen_by_their_characters(rare_font):
    assert choose_fonts(["fever é", "頭 "[1:]]) == [OWN]
    assert choose_fonts(["fever", RARE]) == [OWN, rare_font]
    assert choose_fonts([RARE, "\U0002ceb0"]) is None  # boxes for everything are no signs


def test_numbers_replace_texts_without_a_font(rare_font):
    with_font = draw_curves([curves(("a", RARE[0], "b"))], SENTENCE, "attention")
    assert with_font.has_texts
    without_font = draw_curves([curves(("a", "\U0002ceb0", "b"))], SENTENCE, "attention")
    other = draw_curves([curves(("c", "\U0002ceb0", "d"))], SENTENCE, "attention")
    assert not without_font.has_texts
    assert without_font.png == other.png  # only the numbers of tokens are shown
    assert not draw_insides([inside(("a", "\U0002ceb0"))]).has_texts
    assert draw_summary(summary("\U0002ceb0")).has_texts  # of a name, what can be is shown
    assert drawable("a\U0002ceb0 é") == "a\ufffd é"


def test_figures_are_reproducible_and_grow_with_their_content():
    one = draw_curves([curves()], SENTENCE, "attention")
    assert one.has_texts
    assert one.png == draw_curves([curves()], SENTENCE, "attention").png
    (width, height), two = size(one.png), draw_curves([curves(), curves()], SENTENCE, "attention")
    assert size(two.png)[1] == 2 * height
    long = draw_curves([curves(["word"] * 60)], SENTENCE, "attention")
    assert size(long.png)[0] > 2 * width
    endless = draw_curves([curves(["word"] * 250)], SENTENCE, "attention")
    assert size(endless.png)[0] <= 60 * 120
    single, side = size(draw_insides([inside()]).png), size(draw_insides([inside()] * 2).png)
    assert side[0] > 1.5 * single[0]
    assert draw_summary(summary("a", "b")).has_texts


def test_special_characters_are_drawn_literally():
    """Dollar signs would begin a formula; control characters have no glyph."""
    odd = ("$\\frac$", "a\x07b", "$$", "_^{", "a\nb")
    assert draw_curves([curves(odd, encoder="$a^$")], SENTENCE, "m").has_texts
    assert draw_insides([inside(odd)]).has_texts


class Elements(HTMLParser):
    """Count elements, collect texts, and check that all elements are closed."""

    def __init__(self, page):
        super().__init__()
        self.counts, self.open, self.texts = Counter(), [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.counts[tag] += 1
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data.strip())


def check(page):
    elements = Elements(page)
    assert not elements.counts.keys() & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"https?:|//|url\(|@import|\son\w+=", page)
    assert "default-src 'none'" in page
    return elements


def test_a_page_of_curves():
    page = curves_page([curves(("he", "<b>", "now")), curves(encoder="<x>")], SENTENCE, "attention")
    elements = check(page)
    assert (elements.counts["svg"], elements.counts["polyline"], elements.counts["b"]) == (2, 6, 0)
    assert elements.counts["mark"] == 1
    for text in ("<fever>", "heat & $y$", "<b>", "<x>, layer 11", "the entity is here"):
        assert any(text in each for each in elements.texts), text
    numbers = [f"{v:.4f}" for row in curves().values.values() for v in row]
    for number in numbers:
        assert elements.texts.count(number) == 2
    points = re.findall(r'points="([^"]+)"', page)
    top = max(float(v.max()) for v in curves().values.values())
    heights = [float(pair.split(",")[1]) for pair in points[0].split()]
    expected = [10 + 220 * (1 - v / top) for v in curves().values["entity"]]
    assert heights == pytest.approx(expected, abs=0.01)


def test_a_page_of_heat_maps():
    first, second = inside(), inside(("a", "<b>", "c"), encoder="other")
    elements = check(insides_page([first, second], "high <fever>", "attention"))
    assert elements.counts["td"] == 4 + 9
    for each in (first, second):
        for value in each.weights.ravel():
            assert f"{value:.4f}" in elements.texts
    assert "high <fever>" in elements.texts


def test_a_page_of_many_sentences():
    many = summary("one", "two")
    elements = check(summary_page(many, "attention"))
    assert "left out: 2, the text is too long" in elements.texts
    assert "a<b" in elements.texts
    for row in many.to_json()["models"]:
        mean, deviation = row["synonym"]["mean"], row["synonym"]["deviation"]
        assert f"{mean:.4f} ± {deviation:.4f}" in elements.texts
    assert elements.counts["tr"] == 1 + 2 + 1 + 4


def test_zero_attention_is_shown():
    zero_curves = Curves(
        "x", 1, ("a",), 0, dict.fromkeys(("entity", "synonym", "random"), np.zeros(1))
    )
    check(curves_page([zero_curves], SENTENCE, "attention"))
    check(insides_page([InsideEntity("x", 1, ("a", "b"), np.zeros((2, 2)))], "a b", "attention"))
    zeros = {"synonym": np.zeros(1), "random": np.zeros(1)}
    none = AttentionSummary((SENTENCE,), (EncoderSummary("x", 1, zeros),))
    check(summary_page(none, "attention"))
    assert draw_curves([zero_curves], SENTENCE, "m").has_texts
    assert draw_summary(none).has_texts
    assert draw_insides([InsideEntity("x", 1, ("a", "b"), np.zeros((2, 2)))]).has_texts

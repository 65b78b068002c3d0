"""Gold standards as texts: which formats have them, which mentions stay, what is refused."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError, FormatError, InputError, NotFoundError
from biograft.evaluation import GOLD_FORMATS, TEXT_FORMATS, GoldConfig, read_gold, read_gold_texts

PUBTATOR = """\
1|t|Flu and fever.
1|a|No more.
1\t0\t3\tFlu\tDisease\tD1
1\t8\t13\tfever\tFinding\tD2
1\t4\t13\tnot here at all\tDisease\tD3

2|t|Nothing.
2|a|

3|t|A cold.
3|a|
3\t2\t6\tcold\tDisease\t-1
"""


@pytest.fixture
def path(write):
    return write("a.pubtator", PUBTATOR)


def shown(gold):
    return [(d.id, [(m.text, m.concepts) for m in d.mentions]) for d in gold.documents]


@pytest.mark.parametrize("form", list(TEXT_FORMATS))
def test_every_format_of_texts_is_a_gold_format_and_loads(form):
    assert form in GOLD_FORMATS
    assert callable(TEXT_FORMATS.load(form))


def test_documents_without_mentions_stay_and_what_is_wrong_is_counted(path):
    gold = read_gold_texts(path, "pubtator")
    assert shown(gold) == [
        ("1", [("Flu", ("D1",)), ("fever", ("D2",))]),
        ("2", []),
        ("3", [("cold", ())]),
    ]
    assert gold.documents[0].text == "Flu and fever. No more."
    assert gold.log.rejected.counts == {"offsets do not fit the text": 1}


def test_types_and_limit(path):
    gold = read_gold_texts(path, "pubtator", types=("Finding",))
    assert shown(gold) == [("1", [("fever", ("D2",))]), ("2", []), ("3", [])]
    assert gold.log.filtered == {"of another type": 2}
    assert len(read_gold_texts(path, "pubtator", limit=2).documents) == 2


def test_the_sample_has_the_mentions_that_its_queries_have():
    gold = read_gold_texts("starter", "sample")
    mentions = [(d.id, m.text, m.start) for d in gold.documents for m in d.mentions]
    queries = read_gold("starter", "sample", GoldConfig(keep_nil=True)).queries
    assert mentions == [(query.document, query.mention, query.start) for query in queries]


def test_queries_too_tell_of_mentions_that_do_not_stand_in_the_text(path):
    """What the PubTator reader rejected was once not counted."""
    gold = read_gold(path, "pubtator")
    assert gold.log.rejected.counts == {"offsets do not fit the text": 1}


@pytest.mark.parametrize("form", [name for name in GOLD_FORMATS if name not in TEXT_FORMATS])
def test_a_format_without_texts_is_told(form):
    with pytest.raises(ConfigError, match=r"has no texts .*: pubtator, sample"):
        read_gold_texts("a", form)


def test_what_cannot_be_asked_is_told(path, write):
    with pytest.raises(NotFoundError, match="did you mean 'pubtator'"):
        read_gold_texts(path, "pubtater")
    with pytest.raises(FormatError, match=r"no mention is left of 1 documents .*2 of another type"):
        read_gold_texts(path, "pubtator", types=("Gene",), limit=1)
    with pytest.raises(InputError, match="is empty"):
        read_gold_texts(write("b.pubtator", ""), "pubtator")

"""Gold ids and the ids of a store: prefixes do not matter, unknown ones are counted."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError, FormatError
from biograft.evaluation import LinkQuery, StoreIds, drop_queries, read_gold, resolve_gold


@pytest.mark.parametrize(
    ("gold", "known"),
    [
        ("D1", "D1"),
        ("MIM:77", "OMIM:77"),
        ("77", "OMIM:77"),
        ("XYZ:D2", "D2"),
        ("78", None),
        ("OMIM:D99", None),
    ],
)
def test_prefixes_do_not_matter(base, gold, known):
    assert StoreIds(base).known(gold) == known


def test_resolving_spells_gold_as_the_store_does(base):
    queries = [
        LinkQuery("a", frozenset({"MESH:D1", "77"})),
        LinkQuery("b", frozenset({"D2", "gone"})),
        LinkQuery("c", frozenset({"D2", "gone"}), needed=(frozenset({"D2", "gone"}),)),
        LinkQuery("d"),
        LinkQuery("e", frozenset({"a:b:D2"})),
    ]
    resolved = resolve_gold(queries, StoreIds(base))
    assert [query.gold for query in resolved.queries] == [
        {"D1", "OMIM:77"},
        {"D2", "gone"},
        {"D2", "gone"},
        frozenset(),
        {"D2"},
    ]
    assert resolved.unknown == {"gone"}
    assert resolved.n_unreachable == 1


def test_gold_names_become_the_concepts_of_that_name(base):
    query = LinkQuery("x", gold_names=("切除术", "FLU", "flu", "不存在"))
    resolved = resolve_gold([query], StoreIds(base))
    groups = resolved.queries[0].needed
    assert groups == ({"D7", "D8"}, {"D1", "D4"}, {"D1", "D4"}, {"不存在"})
    assert resolved.queries[0].gold == {"D7", "D8", "D1", "D4", "不存在"}
    assert resolved.unknown == {"不存在"}
    assert resolved.n_unreachable == 1


GOLD = """\
1||0|9||T||infection||D2
1||2|5||T||cold||D4
1||20|23||T||flu||D9
1||30|33||T||flu|cold||D4|D9
2||0|3||T||flu||MESH:D1
"""


def test_queries_that_published_tests_leave_out(base, write):
    gold = read_gold(write("a.concept", GOLD), "biosyn")
    assert drop_queries(gold, base, ()).queries == gold.queries
    unknown = drop_queries(gold, base, ("unknown-ids",))
    assert [query.mention for query in unknown.queries] == ["infection", "cold", "flu"]
    gold = read_gold(write("a.concept", GOLD), "biosyn")
    left = drop_queries(gold, base, ("unknown-ids", "overlapping"))
    assert [query.document for query in left.queries] == ["2"]
    assert left.log.filtered == {
        "overlapping another mention": 2,
        "with an id that the knowledge base does not have": 2,
    }


def test_mentions_that_touch_do_not_overlap(base, write):
    gold = read_gold(write("a.concept", "1||0|3||T||flu||D9\n1||3|6||T||flu||D9\n"), "biosyn")
    assert len(drop_queries(gold, base, ("overlapping",)).queries) == 2


def test_what_cannot_be_left_out_is_refused(base, write):
    gold = read_gold(write("a.concept", "1||0|3||T||flu||D9\n"), "biosyn")
    with pytest.raises(ConfigError, match="drop: expected one of overlapping, unknown-ids"):
        drop_queries(gold, base, ("nil",))
    with pytest.raises(FormatError, match="no query is left"):
        drop_queries(gold, base, ("unknown-ids",))

"""Mentions brought together with the store."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError
from biograft.linking import LabelledMention
from biograft.training.linkers import NameTable, make_examples


def mention(text, *concepts):
    return LabelledMention(text, frozenset(concepts))


def gold_texts(data, index=0):
    return {data.names.text(number) for number in data.examples[index].gold}


def test_names_of_equal_tokens_are_one_text(clinic):
    names = NameTable(clinic.kb, clinic.load(), ())
    assert len(names) == clinic.kb.n_names - 1
    assert [names.text(int(n)) for n in names.of_concept(clinic.kb.row("C0"))] == [
        "abdominal pain",
        "pain of abdomen",
    ]
    for number in range(len(names)):
        assert clinic.kb.name(int(names.first_rows[number])).text.lower() == names.text(number)
    assert names.take(names.of_concept(clinic.kb.row("C1"))) == ["insomnia", "sleeplessness"]


def test_a_mention_knows_all_names_of_all_that_it_means(clinic, config_of):
    data = make_examples(clinic.kb, clinic.load(), [mention("tired", "C3", "C1")], config_of())
    assert gold_texts(data) == {"fatigue", "lassitude", "insomnia", "sleeplessness"}
    assert data.examples[0].concepts == (clinic.kb.row("C1"), clinic.kb.row("C3"))


def test_a_text_that_names_gold_is_right_whatever_else_it_names(store_of, clinic, config_of):
    kb = store_of(
        [
            {"id": "A", "name": "Cold", "names": ["rhinitis"]},
            {"id": "B", "name": "low temperature", "names": ["cold"]},
        ],
        "shared",
    )
    data = make_examples(kb, clinic.load(), [mention("chill", "B")], config_of())
    assert gold_texts(data) == {"cold", "low temperature"}


def test_what_teaches_nothing_is_counted(clinic, config_of):
    mentions = [mention("  ", "C0"), mention("x", "Z9"), mention("y"), mention("ache", "C0", "Z9")]
    counts = make_examples(clinic.kb, clinic.load(), mentions, config_of()).counts
    assert (counts.n_mentions, counts.n_unknown, counts.n_empty) == (4, 2, 1)
    assert (counts.n_nameless, counts.n_examples) == (0, 1)
    with pytest.raises(ConfigError, match=r"none of 3 can be learned from: 2 of concepts"):
        make_examples(clinic.kb, clinic.load(), mentions[:3], config_of())


def test_equal_mentions_are_one_example(clinic, config_of):
    mentions = [mention("Ache", "C0"), mention("ache", "C0"), mention("ache", "C1")]
    once = make_examples(clinic.kb, clinic.load(), mentions, config_of())
    assert [(example.text, example.concepts) for example in once.examples] == [
        ("Ache", (clinic.kb.row("C0"),)),
        ("ache", (clinic.kb.row("C1"),)),
    ]
    assert (once.counts.n_repeated, once.counts.n_examples) == (1, 2)
    each = make_examples(clinic.kb, clinic.load(), mentions, config_of(distinct=False))
    assert (each.counts.n_repeated, each.counts.n_examples) == (0, 3)


def test_names_that_are_the_mention_are_withheld_on_request(store_of, clinic, config_of):
    kb = store_of(
        [
            {"id": "A", "name": "belly ache", "names": ["Belly-Ache", "abdominal pain"]},
            {"id": "B", "name": "navel"},
        ],
        "own",
    )
    mentions = [mention("Belly ache", "A"), mention("NAVEL", "B")]
    kept = make_examples(kb, clinic.load(), mentions, config_of())
    assert gold_texts(kept) == {"belly ache", "belly-ache", "abdominal pain"}
    assert gold_texts(kept, 1) == {"navel"}
    withheld = make_examples(kb, clinic.load(), mentions, config_of(exclude_own_mention=True))
    assert gold_texts(withheld) == {"abdominal pain"}
    assert (withheld.counts.n_nameless, withheld.counts.n_examples) == (1, 1)


def test_only_names_of_the_selected_languages(store_of, clinic, config_of):
    kb = store_of([{"id": "A", "name": "pain", "names": {"zh": ["疼痛"]}}], "languages")
    every = make_examples(kb, clinic.load(), [mention("ache", "A")], config_of())
    assert gold_texts(every) == {"pain", "疼痛"}
    some = config_of(lexical={"languages": ["zh"]})
    assert gold_texts(make_examples(kb, clinic.load(), [mention("ache", "A")], some)) == {"疼痛"}


def test_the_fingerprint_follows_mentions_and_gold(clinic, config_of):
    def fingerprint(*mentions):
        return make_examples(clinic.kb, clinic.load(), mentions, config_of()).fingerprint()

    assert fingerprint(mention("a", "C0")) == fingerprint(mention("a", "C0"))
    assert fingerprint(mention("a", "C0")) != fingerprint(mention("b", "C0"))
    assert fingerprint(mention("a", "C0")) != fingerprint(mention("a", "C1"))

"""Mention detection: by names, by a model, by both, and what a linker makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from biograft.errors import ConfigError, StoreError
from biograft.linking import (
    DictionaryDetector,
    GivenMentions,
    Linker,
    LinkerConfig,
    MentionDetector,
    MisspeltDetector,
    ModelDetector,
    UnionDetector,
)
from biograft.linking.detection import outside
from biograft.linking.lexicon import NoteContext
from biograft.text import NamesIndex
from biograft.text.documents import Document, Mention

GIVEN = (Mention(0, 6, "Fevers", ("D005334",), "Disease"),)
DOCUMENT = Document("1", "Fevers and breast-cancer.", GIVEN)


class WordModel:
    """Predicts the given words, each with its type, as a model of entities would."""

    kind = "ner"

    def __init__(self, **types):
        self.types, self.labels = types, tuple(sorted(set(types.values())))

    def predict(self, documents):
        assert not any(document.mentions for document in documents)
        return [replace(each, mentions=self._mentions(each.text)) for each in documents]

    def _mentions(self, text):
        found = [
            Mention(text.index(word), text.index(word) + len(word), word, type=kind)
            for word, kind in self.types.items()
            if word in text
        ]
        return tuple(found)


def texts_of(found):
    return [[mention.text for mention in mentions] for mentions in found]


def test_given_mentions_are_given_back():
    detector: MentionDetector = GivenMentions()
    assert detector.detect([DOCUMENT, Document("2", "no mention")]) == [list(GIVEN), []]


def test_a_dictionary_finds_its_names_and_leaves_the_concepts_open():
    detector: MentionDetector = DictionaryDetector(NamesIndex.build(["breast cancer", "fever"]))
    assert detector.detect([DOCUMENT, Document("2", "")]) == [
        [Mention(0, 6, "Fevers"), Mention(11, 24, "breast-cancer")],
        [],
    ]


def test_a_model_predicts_mentions_in_text_order_whatever_a_document_has():
    detector = ModelDetector(WordModel(cancer="Disease", Fevers="Finding"))
    assert texts_of(detector.detect([DOCUMENT, Document("2", "")])) == [["Fevers", "cancer"], []]


def test_mentions_of_some_types_only():
    model = WordModel(cancer="Disease", Fevers="Finding")
    assert texts_of(ModelDetector(model, ("Disease",)).detect([DOCUMENT])) == [["cancer"]]
    with pytest.raises(ConfigError, match="mention_types: no 'disease'; did you mean 'Disease'"):
        ModelDetector(model, ("disease",))


def test_of_overlapping_mentions_those_of_the_first_stay():
    names = DictionaryDetector(NamesIndex.build(["breast cancer", "fever"]))
    both = UnionDetector(ModelDetector(WordModel(cancer="Disease")), names)
    assert texts_of(both.detect([DOCUMENT])) == [["Fevers", "cancer"]]
    assert texts_of(UnionDetector(names, GivenMentions()).detect([DOCUMENT])) == [
        ["Fevers", "breast-cancer"]
    ]


spans = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), max_size=6)


@given(spans, spans)
def test_outside_against_plain_loops(mentions, others):
    """Mentions may be nested, as those of a span head are."""
    mentions, others = (
        [Mention(start, start + size, "") for start, size in sorted(each)]
        for each in (mentions, others)
    )
    assert outside(mentions, others) == [
        m for m in mentions if all(m.end <= o.start or o.end <= m.start for o in others)
    ]


# ---- in a linker


def found(linker, document):
    return [(mention.text, mention.form, mention.concept) for mention in linker(document).mentions]


def open_linker(kb, detector=None, **settings):
    linker = Linker.open(kb)
    return Linker(kb, linker.search, detector=detector, config=LinkerConfig(**settings))


def test_detection_by_names_by_the_model_and_by_both(kb):
    detector = ModelDetector(WordModel(**{"hart atack": "Disease"}))
    text = "A hart atack, T2DM, and ovarian cancer (OC). OC!"
    by_model = [("hart atack", "hart atack", "D4")]
    by_name = [
        ("T2DM", "T2DM", "D1"),
        ("ovarian cancer", "ovarian cancer", "D3"),
        ("OC", "ovarian cancer", "D3"),
        ("OC", "ovarian cancer", "D3"),
    ]
    assert found(open_linker(kb), text) == by_name
    assert found(open_linker(kb, detector), text) == by_model
    assert found(open_linker(kb, detector, detection="both"), text) == by_model + by_name
    without = open_linker(kb, detector, detection="both", stop_words=("T2DM",))
    assert found(without, text) == by_model + by_name[1:]


def test_a_detector_is_preferred_to_the_mentions_of_a_document(kb):
    document = Document("1", "cold and heart attack", (Mention(0, 4, "cold"),))
    detector = ModelDetector(WordModel(attack="Disease"))
    assert [text for text, *_ in found(open_linker(kb, detector), document)] == ["attack"]
    assert [text for text, *_ in found(open_linker(kb), document)] == ["cold"]


def test_a_detector_that_is_missing_or_not_used_is_refused(kb, tmp_path):
    for detection in ("model", "both"):
        with pytest.raises(ConfigError, match=f"detection: '{detection}' needs a detector"):
            open_linker(kb, detection=detection)
    with pytest.raises(ConfigError, match="detection: 'names' does not use the detector"):
        open_linker(kb, GivenMentions(), detection="names")
    with pytest.raises(ConfigError, match="detection: expected"):
        LinkerConfig(detection="name")
    with pytest.raises(ConfigError, match="mention_types"):
        Linker.open(kb, mention_types=("Disease",))
    with pytest.raises(StoreError, match="task model"):
        Linker.open(kb, detector=tmp_path)


def test_a_misspelt_mention_is_looked_up_by_its_name_at_a_lower_score(kb):
    (mention,) = open_linker(kb)("Signs of breast cancre.").mentions
    assert (mention.text, mention.form, mention.concept) == ("breast cancre", "breast cancer", "D2")
    assert mention.candidates[0].score == pytest.approx(1 - 1 / len("breast cancer"))
    assert not open_linker(kb, misspelt=False)("Signs of breast cancre.").mentions


def test_a_word_is_no_misspelling_of_a_short_name_in_capitals():
    names = ["PSACH", "Pseudoachondroplasia"]
    detector = MisspeltDetector(NamesIndex.build(names), names.__getitem__)
    texts = ["Psach f/u.", "A psech.", "Pseudoachondroplasa."]
    found = detector.detect([Document("", text) for text in texts])
    assert texts_of(found)[1:] == [[], ["Pseudoachondroplasa"]]


def test_nested_entities_of_several_types_are_all_linked(kb):
    """A model may predict entities within others; the names beside them add nothing there."""
    model = WordModel(**{"breast cancer": "Disease", "cancer": "Finding", "metformin": "Drug"})
    text = "Type 2 diabetes, breast cancer; metformin."
    both = open_linker(kb, ModelDetector(model), detection="both")(text).mentions
    spans = [(mention.text, mention.concept) for mention in both]
    assert [each for each, _ in spans] == [
        "Type 2 diabetes",
        "breast cancer",
        "cancer",
        "metformin",
    ]
    assert spans[:2] == [("Type 2 diabetes", "D1"), ("breast cancer", "D2")]
    some = ModelDetector(model, ("Finding", "Drug"))
    linked = open_linker(kb, some, detection="model")(text).mentions
    assert [mention.text for mention in linked] == ["cancer", "metformin"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Seen by Dr. Graves", []),
        ("Seen by Dr. A. Graves", []),
        ("Mr Graves has Graves", ["Graves"]),
        ("Professor Graves syndrome", ["Graves syndrome"]),
        ("5 mg, 10 g/mg", []),
        ("low mg", ["mg"]),
    ],
)
def test_persons_and_units_are_no_mentions(text, found):
    names = DictionaryDetector(NamesIndex.build(["Graves", "Graves syndrome", "mg", "g"]))
    (mentions,) = names.detect([Document("1", text)])
    note = NoteContext(text)
    assert [mention.text for mention in mentions if not note.no_finding(mention)] == found


QUALIFIED = [
    {"id": "HP:0012823", "name": "Clinical modifier"},
    {"id": "HP:0012828", "name": "Severe", "relations": {"is-a": ["HP:0012823"]}},
    {"id": "HP:0002315", "name": "Headache", "type": "T184"},
    {"id": "C0205091", "name": "Left", "type": "T082"},
    {"id": "7771000", "name": "Mild", "type": "qualifier value"},
    {"id": "X:1", "name": "Severe", "type": "finding"},
]


def test_what_only_qualifies_is_found_if_it_is_asked_for(store_of):
    """HPO's *Severe* and *Left* were findings of their own."""
    kb = store_of(QUALIFIED[:-1], "qualified")
    text = "Severe headache, mild, left."

    def found(**settings):
        return [each.concept for each in Linker.open(kb, **settings)(text).mentions]

    assert found() == ["HP:0002315"]
    assert found(qualifiers=True) == ["HP:0012828", "HP:0002315", "7771000", "C0205091"]
    assert found(types=("T082", "T184")) == ["HP:0002315", "C0205091"]
    assert found(value_set="<< HP:0012823") == ["HP:0012828"]
    linker = Linker.open(kb)
    assert linker.link_mentions(["severe"])[0][0].concept == "HP:0012828"
    given = Document("1", text, (Mention(0, 6, "Severe"),))
    assert [each.concept for each in linker(given).mentions] == ["HP:0012828"]
    assert [kb.id_at(row) for row in kb.qualifiers.nonzero()[0]] == [
        "HP:0012823",
        "HP:0012828",
        "C0205091",
        "7771000",
    ]


def test_a_finding_with_the_name_of_a_qualifier_is_found(store_of):
    linker = Linker.open(store_of(QUALIFIED, "qualified"))
    (severe, _) = linker("Severe headache.").mentions
    assert "X:1" in {each.concept for each in severe.candidates}

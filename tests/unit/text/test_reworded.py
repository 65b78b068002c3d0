"""Names in other words: order, word classes, conjuncts; what must not be found."""

from __future__ import annotations

import pytest

from biograft.text import NamesIndex
from biograft.text.reworded import RewordedNames

KIDNEY = [
    # concept, names: kidney and renal replace each other in three concepts, as do abnormal words
    (0, "kidney stone", "renal stone"),
    (1, "kidney cyst", "renal cyst"),
    (2, "kidney failure", "renal failure"),
    (3, "abnormality of the kidney", "abnormal kidney"),
    (
        4,
        "atrial septal defect",
    ),
    (
        5,
        "branchial anomaly",
    ),
    (
        6,
        "ear anomaly",
    ),
    (
        7,
        "spasm of the ureter",
    ),
    (
        8,
        "肾囊肿",
    ),
    (
        9,
        "高血压",
    ),
    (
        10,
        "hepatitis B",
    ),
    (
        11,
        "cysts of the lower limb",
    ),
]


@pytest.fixture(scope="module")
def reworded():
    rows = [(concept, name) for concept, *names in KIDNEY for name in names]
    texts = [name for _, name in rows]
    return RewordedNames(NamesIndex.build(texts), [concept for concept, _ in rows]), texts


def found(reworded, text):
    finder, names = reworded
    return [(match.text, names[match.name_row]) for match in finder.find(text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A septal defect, atrial.", []),  # not across a comma
        ("A defect of the atrial septal wall", []),
        ("an atrial defect septal", []),  # a run does not end in an adjective
        ("defect, atrial septal", []),
        ("stones of the kidney", [("stones of the kidney", "kidney stone")]),
        ("cyst in the left kidney", []),  # no word is left out
        ("renal anomalies", [("renal anomalies", "abnormality of the kidney")]),
        ("malformed kidneys", [("malformed kidneys", "abnormality of the kidney")]),
        ("renal manifestations", [("renal manifestations", "abnormality of the kidney")]),
        ("ureter spasms", [("ureter spasms", "spasm of the ureter")]),
        ("The stone is in a kidney", []),
        ("stones, kidney", []),
        ("anomalies of renal function", []),  # the phrase goes on
        ("B hepatitis", []),
        ("肾的囊肿", [("肾的囊肿", "肾囊肿")]),
        ("囊肿肾", [("囊肿肾", "肾囊肿")]),
        ("肿囊肾", []),
        ("囊肿不是肾", []),
        ("血压高", [("血压高", "高血压")]),
    ],
)
def test_what_is_a_name_in_other_words(reworded, text, names):
    assert found(reworded, text) == names


def test_conjuncts_are_left_out(reworded):
    text = "branchial, otic and ear anomalies; cysts of the upper and lower limb"
    finder, names = reworded
    matches = [(m.text, names[m.name_row], m.coordinated) for m in finder.find(text)]
    assert ("branchial, otic and ear anomalies", "branchial anomaly", True) in matches
    assert ("cysts of the upper and lower limb", "cysts of the lower limb", True) in matches
    assert all(text[m.start : m.end] == m.text for m in finder.find(text))


def test_the_more_words_are_exchanged_the_lower_the_similarity(reworded):
    finder, _ = reworded
    same, exchanged = (finder.find(t)[0] for t in ("stones of the kidney", "renal anomalies"))
    assert 1 > same.similarity > exchanged.similarity > 0.6


def test_many_texts_are_searched_as_each_alone(reworded):
    finder, _ = reworded
    texts = ["ureter spasms", "", "no\x00thing", "renal anomalies and ureter spasm", "肾的囊肿"]
    assert finder.find_many(texts) == [finder.find(text) for text in texts]
    assert finder.find_many([]) == []


@pytest.mark.parametrize("names", [[], ["one"], ["of the"], ["a b"], ["肾"]])
def test_few_names(names):
    assert RewordedNames(NamesIndex.build(names), range(len(names))).find("of one and 肾") == []


def test_words_that_replace_each_other_in_too_few_concepts_are_no_class():
    names = ["lung stone", "heart stone", "lung cyst", "heart cyst"]
    finder = RewordedNames(NamesIndex.build(names), [0, 0, 1, 1])
    assert [names[m.name_row] for m in finder.find("stone of the lung")] == ["lung stone"]
    assert [names[m.name_row] for m in finder.find("stone of the heart")] == ["heart stone"]


ORGANS = [
    # concept, names
    (0, "Abnormality of the eye", "Eye disease"),
    (1, "Kidney disease"),
    (2, "Preauricular pit"),
    (3, "Type A brachydactyly"),
    (4, "Facial abnormality"),
    (5, "Sinus disease"),
    (6, "Hypotension"),
    (7, "Abnormality of the outer ear", "Ear anomalies"),
    (8, "Abnormality of the ear", "Ear anomaly"),
    (9, "Cafe au lait spots"),
    (10, "Branchial fistula"),
    (11, "Branchial cyst"),
    (12, "Numerous cysts"),
]


CONJUNCTS = "Their branchial fistulas or cysts. Branchial fistulas and a cyst."


@pytest.fixture(scope="module")
def organs():
    rows = [(concept, name) for concept, *own in ORGANS for name in own]
    names = [name for _, name in rows]
    return RewordedNames(NamesIndex.build(names), [concept for concept, _ in rows]), names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ocular anomalies", [("ocular anomalies", "Abnormality of the eye")]),
        ("ophthalmic findings", [("ophthalmic findings", "Abnormality of the eye")]),
        ("a nephric lesion", [("nephric lesion", "Kidney disease")]),
        ("Nephropathy.", [("Nephropathy", "Kidney disease")]),
        ("hypotensive, hypotensively", [("hypotensive", "Hypotension")]),
        ("pre-auricular pits", [("pre-auricular pits", "Preauricular pit")]),
        ("pre auricular pits", []),
        ("brachydactyly of a type", []),  # "A" is no article
        ("anomalies and a flat face", []),  # both conjuncts are whole
        ("sinuses and skin lesions", []),
        ("aural malformations", [("aural malformations", "Abnormality of the ear")]),
        ("spots, café au lait", []),
        ("multiple cysts", [("multiple cysts", "Numerous cysts")]),
        ("Café au lait spots", [("Café au lait spots", "Cafe au lait spots")]),
    ],
)
def test_words_that_replace_each_other_in_any_store(organs, text, names):
    assert found(organs, text) == names


def test_what_conjuncts_share_stands_before_the_first(organs):
    finder, names = organs
    matches = [(m.text, names[m.name_row], m.coordinated) for m in finder.find(CONJUNCTS)]
    assert ("branchial fistulas or cysts", "Branchial cyst", True) in matches
    assert ("Branchial fistulas and a cyst", "Branchial cyst", True) in matches
    assert finder.find("branchial fistulas, cysts") == finder.find("branchial fistulas")

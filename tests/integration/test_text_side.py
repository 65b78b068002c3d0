"""Corpora, abbreviations, composites and the dictionary on real files."""

from __future__ import annotations

import gzip

from biograft.linking import DEFAULT_STEPS, split_composite
from biograft.text import (
    LongForms,
    NamesIndex,
    find_abbreviations,
    read_pubtator,
)

NCBI = "entity_linking/ncbi_disease/original/NCBI{}set_corpus.txt{}"
CDR = "entity_linking/bc5cdr/pubtator/CDR_{}Set.PubTator.txt.gz"


def test_abbreviations_of_real_abstracts(shared_data):
    read = list(read_pubtator(shared_data(NCBI.format("train", ".gz"))))
    found = [(d, a) for d in read for a in find_abbreviations(d.text)]
    assert 690 <= len(found) <= 740
    for document, a in found:
        assert document.text[a.short_start : a.short_end] == a.short
        assert document.text[a.long_start : a.long_end] == a.long
    assert LongForms.of(read[0].text)["APC"] == "adenomatous polyposis coli"


def test_composites_of_the_training_set_are_split(shared_data):
    wanted = []
    with gzip.open(shared_data(CDR.format("Training")), "rt", encoding="utf-8") as file:
        for line in file:
            cells = line.rstrip("\n").split("\t")
            if len(cells) == 7 and any(f" {word} " in cells[3] for word in ("and", "or")):
                wanted.append((cells[3].lower(), tuple(cells[6].lower().split("|"))))
    right = sum(split_composite(text) == parts for text, parts in wanted)
    assert (len(wanted), right) == (52, 41)


def test_names_of_a_real_dictionary_match(shared_data):
    path = shared_data("entity_linking/ncbi_disease/biosyn/train_dictionary.txt.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        names = [line.rstrip("\n").split("||")[1] for line in file]
    matcher = NamesIndex.build(names)
    n_gold = n_found = 0
    for document in read_pubtator(shared_data(NCBI.format("develop", ""))):
        matches = matcher.find(document.text)
        assert all(document.text[m.start : m.end] == m.text for m in matches)
        spans = {(m.start, m.end) for m in matches}
        n_gold += len(document.mentions)
        n_found += sum((m.start, m.end) in spans for m in document.mentions)
    assert (n_gold, n_found) == (787, 481)


def test_normalisation_keeps_every_name_of_a_real_dictionary(shared_data):
    path = shared_data("entity_linking/ncbi_disease/biosyn/train_dictionary.txt.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        names = [line.rstrip("\n").split("||")[1] for line in file]
    forms = [DEFAULT_STEPS(name) for name in names]
    assert all(forms)
    assert forms == [DEFAULT_STEPS(form) for form in forms]

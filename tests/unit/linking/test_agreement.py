"""Agreement within a document: what is decided once for each form."""

from __future__ import annotations

import pytest
from generative_store import store_in

from biograft.kb import KnowledgeBase, build_starter
from biograft.linking import Candidate, DocumentState, Linker, MentionState
from biograft.linking.lexicon import StoreLexicon
from biograft.linking.steps import NO_SUPPORT, Agree
from biograft.text.documents import Document, Mention


def test_mentions_of_one_form_share_their_candidates(tmp_path):
    """Each mention had its own: a text of 50 MB took 4 GB."""
    build_starter(tmp_path / "KB")
    kb = KnowledgeBase.open(tmp_path / "KB")
    candidates = (Candidate(kb.id_at(0), "rheumatoid arthritis", "RA", 1.0),)
    mentions = [
        MentionState(Mention(start, start + 2, "RA"), "name", "RA", candidates=candidates)
        for start in (0, 5, 9)
    ]
    Agree(kb, StoreLexicon(kb))([DocumentState(Document("1", "RA"), mentions=mentions)])
    first, *others = mentions
    assert (first.candidates[0].score, first.support) == (0.5, NO_SUPPORT)
    assert all(other.candidates is first.candidates for other in others)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("MS was seen. Multiple sclerosis (MS) is common. MS again.", "D1 D1 D1 D1"),
        ("MS here. Echo: mitral stenosis.", "D2 D2"),
        ("Mitral stenosis. MS here.", "D2 D2"),
        ("Lupus was seen, lupus vulgaris later, and lupus again.", "D4 D4 D4"),
        ("MS here, and lupus.", "None D3"),
    ],
)
def test_what_a_document_names_decides_before_and_after_it(tmp_path, text, found):
    concepts = [
        {"id": "D1", "name": "Multiple Sclerosis", "names": ["MS"]},
        {"id": "D2", "name": "Mitral Stenosis", "names": ["MS"]},
        {"id": "D3", "name": "Systemic Lupus", "names": ["lupus"]},
        {"id": "D4", "name": "Lupus Vulgaris", "names": ["lupus"]},
    ]
    linked = Linker.open(store_in(tmp_path, concepts, "KB"))(text)
    assert [str(each.concept) for each in linked.mentions] == found.split()


def test_the_general_concept_stays_where_a_specific_one_is_named(tmp_path):
    """*Cardiomyopathy* beside *hypertrophic cardiomyopathy*: annotators mean the general one."""
    concepts = [
        {"id": "D1", "name": "Cardiomyopathy"},
        {"id": "D2", "name": "Hypertrophic Cardiomyopathy"},
    ]
    linker = Linker.open(store_in(tmp_path, concepts, "KB"))
    mentions = linker("Hypertrophic cardiomyopathy: a cardiomyopathy.").mentions
    assert [each.concept for each in mentions] == ["D2", "D1"]

"""Learning from annotated text: what is found, dropped and kept, and whether it gains."""

from __future__ import annotations

import json
import stat

import pytest
from generative_store import store_in

from biograft.errors import ConfigError, StoreError
from biograft.linking import Linker, LinkerConfig, build_index
from biograft.linking.learned import (
    LearnedForm,
    detector_of,
    exported,
    forms_of,
    remove_form,
)
from biograft.linking.learned_mentions import LearnedForms
from biograft.mapping import Decision, forget, learn, learn_forms
from biograft.text.documents import Document, Mention

CONCEPTS = [
    {"id": "D1", "name": "Atrial Fibrillation"},
    {"id": "D2", "name": "Rib Fractures", "names": ["rib fracture"]},
    {"id": "D3", "name": "Cold Temperature", "names": ["cold"]},
    {"id": "D4", "name": "Common Cold"},
    {"id": "D5", "name": "Pain"},
]


@pytest.fixture
def kb(tmp_path):
    return store_in(tmp_path, CONCEPTS, "KB")


@pytest.fixture
def index(kb, tmp_path):
    build_index(kb, tmp_path / "INDEX")
    return tmp_path / "INDEX"


def marked(number, text, *mentions):
    """Return a document in which some words are marked with a concept."""
    found = []
    for word, concept in mentions:
        start = text.index(word)
        found.append(Mention(start, start + len(word), word, (concept,)))
    return Document(str(number), text, tuple(found))


def corpus(n=24):
    return [
        marked(
            n,
            f"Note {n}. She has odd beat and a cold, no pain at {n}.",
            ("odd beat", "D1"),
            ("pain", "D5"),
        )
        for n in range(n)
    ]


def found(kb, index, text, **settings):
    linked = Linker.open(kb, index, **settings)(text)
    return [(mention.text, mention.concept) for mention in linked.mentions]


def test_forms_of_notes_are_found_and_what_is_none_is_dropped(kb, index):
    text = "Odd beat since May. Cold outside; rib fracture."
    assert found(kb, index, text) == [("Cold", "D3"), ("rib fracture", "D2")]
    report = learn_forms(kb, index, corpus())
    assert (report.n_forms, report.n_no_mention, report.is_applied) == (1, 1, True)
    assert report.f1_before < report.f1_after == 100
    assert report.interval[0] > 0
    assert found(kb, index, text) == [("Odd beat", "D1"), ("rib fracture", "D2")]
    linked = Linker.open(kb, index, explain=True)(text)
    mention = linked.mentions[0]
    assert mention.candidates[0].evidence[0].generator == "learned"
    assert 0.9 < mention.candidates[0].score < 1
    assert mention.explanation.support == "marked so 24 of 24 times in 24 documents"
    assert [(each.text, why) for each, why in linked.dropped] == [("Cold", "learned: no mention")]


def test_processes_and_given_mentions_know_the_forms(kb, index):
    learn_forms(kb, index, corpus())
    linker = Linker.open(kb, index)
    given = Document("1", "the odd beat.", (Mention(4, 12, "odd beat"),))
    assert [mention.concept for mention in linker(given).mentions] == ["D1"]
    (linked, _) = linker.pipe(["odd beat", "none"], n_process=2)
    assert [mention.concept for mention in linked.mentions] == ["D1"]


def test_what_does_not_gain_is_not_applied(kb, index):
    """A form that means something else in every document cannot be learned."""
    documents = [
        marked(n, f"Note {n}: odd beat.", ("odd beat", f"D{1 + n % 5}")) for n in range(30)
    ]
    report = learn_forms(kb, index, documents)
    assert not report.is_applied
    assert forms_of(index) == []
    assert found(kb, index, "odd beat") == []


def test_the_longest_mention_stays_and_nested_ones_where_they_are_asked_for(kb):
    forms = [LearnedForm("old rib fracture", "D2"), LearnedForm("rib", "D5")]
    for nested, expected in (
        ("longest", [("old rib fracture", "D2")]),
        ("all", [("old rib fracture", "D2"), ("rib fracture", "D2"), ("rib", "D5")]),
    ):
        base = Linker.open(kb, overlaps=nested)
        linker = Linker(kb, base.search, learned=forms, config=base.config)
        mentions = linker("An old rib fracture.").mentions
        assert [(each.text, each.concept) for each in mentions] == expected


def test_a_form_may_mean_something_in_one_section_alone(kb):
    forms = [LearnedForm("CP", "D5", "chief complaint"), LearnedForm("CP", "")]
    step = LearnedForms(kb, forms)
    note = "Chief complaint: CP\nPlan: CP clinic"
    matches = step.find([note])[0]
    assert [match.entry.concept for match in matches] == ["D5", ""]


def test_limits_of_concepts_hold_for_learned_forms(tmp_path):
    concepts = [{**each, "types": ["T047" if each["id"] == "D1" else "T184"]} for each in CONCEPTS]
    kb = store_in(tmp_path, concepts, "KB")
    build_index(kb, tmp_path / "INDEX")
    learn_forms(kb, tmp_path / "INDEX", corpus())
    assert found(kb, tmp_path / "INDEX", "odd beat", types=("T047",)) == [("odd beat", "D1")]
    assert found(kb, tmp_path / "INDEX", "odd beat", types=("T184",)) == []


def test_files_with_words_of_notes_are_for_their_owner_and_few_are_exported(kb, index):
    documents = [*corpus(), *[marked(n, "Zz rare form.", ("rare form", "D5")) for n in (90, 91)]]
    learn_forms(kb, index, documents, source="notes")
    folder = index / "learned"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
    assert {each.form for each in forms_of(index)} == {"odd beat", "cold", "rare form"}
    assert {each.form for each in exported(index)} == {"odd beat", "cold"}
    forget(index)
    assert found(kb, index, "odd beat") == []


def ambiguous(n=40):
    """Documents in which a name is a finding in one place, and none in another."""
    verbs, places = ("has", "had", "reports"), ("shelf", "album", "song")
    return [
        marked(
            n,
            f"Note {n}. She {verbs[n % 3]} a rib fracture; rib fracture {places[n % 3]} at {n}.",
            ("rib fracture", "D2"),
        )
        for n in range(n)
    ]


def test_a_detector_finds_what_forms_cannot_tell_apart(kb, index):
    forms = learn_forms(kb, index, ambiguous())
    assert forms.detector is None
    assert forms.f1_after < 90
    report = learn_forms(kb, index, ambiguous(), detector=True)
    assert report.detector is not None
    assert report.detector_interval[0] > 0
    assert report.f1_after > 95
    assert report.to_json()["detector"] is True
    linked = Linker.open(kb, index, explain=True)("He had a rib fracture; rib fracture album at 7.")
    assert [(m.text, m.start, m.concept) for m in linked.mentions] == [("rib fracture", 9, "D2")]
    assert linked.mentions[0].explanation.support
    assert ("rib fracture", "learned: hardly a mention") in [
        (m.text, why) for m, why in linked.dropped
    ]
    given = Document("1", "rib fracture album", (Mention(0, 12, "rib fracture"),))
    assert len(Linker.open(kb, index)(given).mentions) == 1, "given mentions stay"
    nested = Linker.open(kb, index, overlaps="all")("He had a rib fracture; rib fracture album.")
    assert len(nested.mentions) == 2, "it knows nothing of mentions inside others"


def test_a_detector_that_does_not_gain_is_not_kept(kb, index):
    report = learn_forms(kb, index, corpus(), detector=True)
    assert (report.is_applied, report.detector) == (True, None)
    with pytest.raises(ConfigError, match="overlaps"):
        learn_forms(kb, index, corpus(), detector=True, config=LinkerConfig(overlaps="all"))


def test_reviewers_outdo_the_detector_and_forms_are_removed_from_it(kb, index):
    learn_forms(kb, index, ambiguous(), detector=True)
    modes = {stat.S_IMODE(each.stat().st_mode) for each in (index / "learned").iterdir()}
    assert modes == {0o600}
    assert "rib fracture" in {each.form for each in detector_of(index).forms}
    learn(kb, index, [Decision(term="album at 7", concept="D5", verdict="approved")])
    assert ("album at 7", "D5") in found(
        kb, index, "He had a rib fracture; rib fracture album at 7."
    )
    remove_form(index, "Rib fracture")
    assert "rib fracture" not in {each.form for each in detector_of(index).forms}
    (index / "learned" / "weights.npy").write_bytes(b"")
    with pytest.raises(StoreError, match="learned"):
        Linker.open(kb, index)


def test_an_approved_term_is_found_in_the_next_note(kb, index):
    decisions = [
        Decision(term="rib fx", concept="D2", verdict="approved"),
        Decision(term="has", concept="D5", verdict="approved"),
        Decision(term="flu", verdict="nil"),
    ]
    learn(kb, index, decisions)
    linked = Linker.open(kb, index, explain=True)("She has old rib fx.")
    assert [(each.text, each.concept) for each in linked.mentions] == [("rib fx", "D2")]
    assert linked.mentions[0].explanation.support == "approved by a reviewer"


def test_text_without_marks_is_refused(kb, index):
    with pytest.raises(ConfigError, match="none has a mention"):
        learn_forms(kb, index, [Document("1", "odd beat")])


def test_the_command_learns_lists_removes_and_exports(kb, index, tmp_path, run_main):
    notes = tmp_path / "notes.jsonl"
    notes.write_text(
        "".join(
            json.dumps(
                {
                    "id": document.id,
                    "text": document.text,
                    "mentions": [
                        {
                            "start": m.start,
                            "end": m.end,
                            "text": m.text,
                            "concepts": list(m.concepts),
                        }
                        for m in document.mentions
                    ],
                }
            )
            + "\n"
            for document in corpus()
        )
    )
    base = ("learn", "--kb", str(kb.folder), "--index", str(index))
    out = tmp_path / "forms.jsonl"
    done = run_main(*base, str(notes), "-o", str(out), "-q")
    assert (done.code, done.err) == (0, "")
    assert "gain +" in done.out
    assert [json.loads(line)["form"] for line in out.read_text().splitlines()] == [
        "odd beat",
        "cold",
    ]
    assert "odd beat  D1  marked so 24 of 24 times" in run_main(*base, "--list").out
    assert run_main(*base, "--forget-form", "COLD").out == "removed 1\n"
    assert [each.form for each in forms_of(index)] == ["odd beat"]
    missing = run_main(*base, "--forget-form", "cold")
    assert (missing.code, "has learned no form 'cold'" in missing.err) == (2, True)
    assert run_main(*base, "--list", "--forget").code == 2
    with_detector = run_main(*base, str(notes), "--detector", "-q")
    assert (with_detector.code, with_detector.err) == (0, "")
    assert "of this the detector" not in with_detector.out, "there is nothing left to gain"

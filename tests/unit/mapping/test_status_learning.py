"""Learning statuses from annotated text: what is learned, from how much, and where it is used."""

from __future__ import annotations

import json
import re
import stat

import numpy as np
import pytest
from generative_store import store_in

from biograft.artifacts import new_folder
from biograft.clinical import assert_status
from biograft.linking import Linker, build_index
from biograft.linking.learned import StatusPhrase, exported, phrases_of, rules_with, save_learned
from biograft.mapping import forget, learn_forms
from biograft.mapping.status_learning import fit_statuses
from biograft.text.documents import Document, Mention

DRUGS = ("penicillin", "aspirin", "codeine", "latex", "iodine", "morphine")
CODES = {"n": "absent", "u": "possible", "h": "historical", "f": "family", "o": "other_person"}
CODES |= {"y": "hypothetical", "c": "conditional"}
SYMPTOMS = ("头痛", "发热", "咳嗽", "腹痛", "恶心", "胸闷")


def note(number, text, *marked):
    """Return a document; ``marked`` are words with what is said of them."""
    mentions = []
    for word, said in marked:
        start = text.index(word)
        attributes = tuple(said.items()) if isinstance(said, dict) else (("status", said),)
        mentions.append(Mention(start, start + len(word), word, attributes=attributes))
    return Document(str(number), text, tuple(mentions))


def folds(documents):
    return np.arange(len(documents)) % 5


def english(n=24):
    """Notes whose phrase the rules do not know, each with other words around it."""
    who = ("She", "Mr. Low", "He", "The pt")
    return [
        note(
            k,
            f"Seen on day {k}. {who[k % 4]} tolerates {DRUGS[k % 6]} well. Has {DRUGS[k % 5 - 1]}.",
            (DRUGS[k % 6], "absent"),
        )
        for k in range(n)
    ]


def chinese(n=24):
    lead = ("今日", "查房时", "患者", "夜间")
    return [
        note(
            k,
            f"{lead[k % 4]}暂缺{SYMPTOMS[k % 6]}，有{SYMPTOMS[k % 5 - 1]}。",
            (SYMPTOMS[k % 6], "absent"),
            (SYMPTOMS[k % 5 - 1], "present"),
        )
        for k in range(n)
        if SYMPTOMS[k % 6] != SYMPTOMS[k % 5 - 1]
    ]


@pytest.mark.parametrize(
    ("documents", "phrase", "text", "finding"),
    [
        (english(), "tolerates", "Mrs. Roe tolerates eggs.", "eggs"),
        (chinese(), "暂缺", "术后暂缺呕吐。", "呕吐"),
    ],
    ids=["en", "zh"],
)
def test_a_corrected_status_is_right_in_the_next_note(documents, phrase, text, finding):
    start = text.index(finding)
    span = [(start, start + len(finding))]
    assert assert_status(text, span, None)[0].status == "present"
    report = fit_statuses(documents, folds(documents))
    assert [(each.phrase, each.flag) for each in report.phrases] == [(phrase, "negated")]
    assert report.is_applied
    assert report.accuracy_before < report.accuracy_after == 100
    assert report.interval[0] > 0
    (rules,) = rules_with(report.phrases)
    (said,) = assert_status(text, span, None, rules)
    assert said.status == "absent"
    assert said.triggers[0].text == phrase
    assert said.triggers[0].rule.startswith("learned, marked so ")


def test_words_after_a_finding_and_its_axes_are_learned():
    documents = [
        note(k, f"{DRUGS[k % 6]} rash quietened down.", ("rash", {"course": "resolved"}))
        for k in range(8)
    ]
    report = fit_statuses(documents, folds(documents))
    (phrase,) = report.phrases
    assert (phrase.phrase, phrase.flag, phrase.direction) == (
        "quietened down",
        "resolved",
        "backward",
    )
    (rules,) = rules_with(report.phrases)
    (said,) = assert_status("Hives quietened down.", [(0, 5)], None, rules)
    assert (said.status, said.course) == ("present", "resolved")


def test_a_trigger_that_says_nothing_here_is_ignored_with_the_words_around_it():
    documents = [
        note(k, f"Lives without {word} breaks, no fever.", (word, "present"), ("fever", "absent"))
        for k, word in enumerate(("pain", "cough", "gout", "rash", "tics", "warts", "vertigo"))
    ]
    report = fit_statuses(documents, folds(documents))
    assert report.is_applied
    (rules,) = rules_with(report.phrases)
    said = assert_status("Lives without acne breaks, no fever.", [(14, 18), (30, 35)], None, rules)
    assert [each.status for each in said] == ["present", "absent"]
    (said,) = assert_status("She is without acne.", [(15, 19)], None, rules)
    assert said.status == "absent"


def test_a_phrase_reaches_a_list_where_the_notes_say_so():
    for other, scope in (("absent", "list"), ("present", "next")):
        documents = [
            note(
                k,
                f"Tolerates {DRUGS[k]}, {DRUGS[k - 1]}.",
                (DRUGS[k], "absent"),
                (DRUGS[k - 1], other),
            )
            for k in range(6)
        ]
        (phrase,) = fit_statuses(documents, folds(documents)).phrases
        assert (phrase.phrase, phrase.scope) == ("tolerates", scope)


def test_what_one_note_says_once_or_two_notes_say_both_ways_is_not_learned():
    once = [*english(1), *[note(k, "No fever.", ("fever", "absent")) for k in range(4)]]
    assert fit_statuses(once, folds(once)).phrases == ()
    both = [
        note(k, f"Tolerates {DRUGS[k % 6]}.", (DRUGS[k % 6], ("absent", "present")[k // 6 % 2]))
        for k in range(24)
    ]
    assert fit_statuses(both, folds(both)).phrases == ()
    plain = [note(k, "Gout.", ("Gout", {})) for k in range(4)]
    assert fit_statuses(plain, folds(plain)) is None


def test_a_phrase_that_holds_by_chance_is_not_applied():
    """Words that are beside marks of one kind in one part of the notes, and not in the other."""
    words = ("Quark", "Plinth", "Gamut", "Fjord", "Zither")
    documents = [
        note(k, f"{words[k % 5]} x{'y' * k}.", (f"x{'y' * k}", "absent")) for k in range(40)
    ]
    report = fit_statuses(documents, folds(documents))  # a fold has all places of a word
    assert report.n_phrases == 5
    assert not report.is_applied


def test_an_axis_that_is_marked_with_its_default_is_learned():
    """The status alone does not say that an absent finding is of today."""
    who = ("She", "Mr. Low", "He", "The pt")
    for said, gain in ({"status": "absent"}, 0), ({"status": "absent", "time": "current"}, 100):
        documents = [
            note(
                k,
                f"{who[k % 4]} has no recent reaction history of {DRUGS[k % 6]} on day {k}.",
                (DRUGS[k % 6], said),
            )
            for k in range(24)
        ]
        assert fit_statuses(documents, folds(documents)).gain == gain


@pytest.mark.parametrize("language", ["en", "zh"])
def test_learning_on_notes_does_no_harm(shared_data, language):
    notes = shared_data(f"clinical/notes_{language}_dev.txt").read_text("utf-8")
    documents = []
    for body in re.split(r"^(?:@@|#\d).*\n", notes, flags=re.MULTILINE)[1:]:
        text, mentions, end = "", [], 0
        for mark in re.finditer(r"\[\[(.*?)\]\]", body):
            name, _, said = mark[1].partition("|")
            status = CODES.get(said[:1]) if language == "zh" else said.split("|")[0]
            text += body[end : mark.start()]
            given = (("status", status or "present"),)
            span = (len(text), len(text) + len(name))
            mentions.append(Mention(*span, name, attributes=given))
            text, end = text + name, mark.end()
        documents.append(Document(str(len(documents)), text + body[end:], tuple(mentions)))
    report = fit_statuses(documents, folds(documents))
    assert report.accuracy_after >= report.accuracy_before > 90


@pytest.fixture
def taught(tmp_path):
    """A store, and its index that learned from notes."""
    concepts = [{"id": f"D{k}", "name": name} for k, name in enumerate((*DRUGS, *SYMPTOMS))]
    kb = store_in(tmp_path, concepts, "KB")
    build_index(kb, tmp_path / "INDEX")
    documents = [*english(8), note("9", "Gout.")]
    report = learn_forms(kb, tmp_path / "INDEX", documents, source="notes")
    assert report.statuses.is_applied
    assert not report.is_applied  # no mention has a concept
    return kb, tmp_path / "INDEX"


def statuses(kb, index, text, **settings):
    return [each.status for each in Linker.open(kb, index, **settings)(text).mentions]


def test_running_text_has_the_learned_status_with_its_evidence(taught, tmp_path):
    kb, index = taught
    assert statuses(kb, index, "Mrs. Roe tolerates latex.") == ["absent"]
    linker = Linker.open(kb, index)
    mention = linker("Mrs. Roe tolerates latex.").mentions[0]
    (trigger,) = mention.assertion.evidence("polarity")
    assert (trigger.text, trigger.rule) == (
        "tolerates",
        "learned, marked so 8 of 8 times in 8 documents",
    )
    assert mention.candidates[0].concept == "D3"
    assert linker.with_settings(k=2)("Tolerates latex.").mentions[0].status == "absent"
    (first, _) = linker.pipe(["Tolerates latex.", "Latex."], n_process=2)
    assert first.mentions[0].status == "absent"
    rules = tmp_path / "own.toml"
    rules.write_text(
        'extends = "en"\n[[rule]]\nname = "x"\nkind = "trigger"\nflags = ["family"]\n'
        'phrases = ["zork"]\n'
    )
    text = "Zork latex. Tolerates codeine."
    assert statuses(kb, index, text, assertion_rules=rules) == ["family", "absent"]
    forget(index)
    assert statuses(kb, index, "Mrs. Roe tolerates latex.") == ["present"]


def test_phrases_of_few_documents_are_not_exported(taught):
    _, index = taught
    known = phrases_of(index)
    assert [each.phrase for each in known] == ["tolerates"]
    rare = StatusPhrase("swears by", "negated", "en", n_documents=2)
    with new_folder(index / "learned", overwrite=True) as work:
        save_learned(work, "notes", (), [*known, rare])
    assert phrases_of(index) == [*known, rare]
    assert exported(index) == known
    assert stat.S_IMODE((index / "learned").stat().st_mode) == 0o700


def test_the_command_learns_lists_exports_and_removes_phrases(taught, tmp_path, run_main):
    kb, index = taught
    notes = tmp_path / "notes.jsonl"
    lines = (
        {
            "id": each.id,
            "text": each.text,
            "mentions": [
                {
                    "start": m.start,
                    "end": m.end,
                    "text": m.text,
                    "concepts": [],
                    "attributes": [list(pair) for pair in m.attributes],
                }
                for m in each.mentions
            ],
        }
        for each in english(8)
    )
    notes.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    base = ("learn", "--kb", str(kb.folder), "--index", str(index))
    out = tmp_path / "phrases.jsonl"
    done = run_main(*base, str(notes), "-o", str(out), "-q")
    assert (done.code, done.err) == (0, "")
    assert "status right, cross-validated: before 0.0, after 100.0" in done.out
    assert [json.loads(line)["phrase"] for line in out.read_text().splitlines()] == ["tolerates"]
    assert "tolerates  negated  marked so 8 of 8 times" in run_main(*base, "--list").out
    assert run_main(*base, "--forget-form", "Tolerates").out == "removed 1\n"
    assert statuses(kb, index, "Tolerates latex.") == ["present"]

"""What an index learns from decisions: reviewed names, rejected pairs, terms without a concept."""

from __future__ import annotations

import json
import shutil

import pytest
from one_writer import held_elsewhere

from biograft.errors import ConfigError, OutputError, StoreError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, build_index, update_index
from biograft.mapping import Decision, MappingSet, forget, learn, map_terms
from biograft.mapping.terms import replaces
from biograft.text.documents import Document, Mention

CONCEPTS = [
    {"id": "D1", "name": "Myocardial Infarction", "names": ["heart attack"], "type": "T047"},
    {"id": "D2", "name": "Heart Arrest", "type": "T047"},
    {"id": "D3", "name": "Hypertension", "names": ["high blood pressure"], "type": "T047"},
    {"id": "D4", "name": "Common Cold", "names": ["chill"]},
    {"id": "D5", "name": "Cold Temperature", "names": ["chill"]},
    {"id": "D6", "name": "Silent Coronary Occlusion", "relations": {"is-a": ["D1"]}},
]
TIME = "2026-11-24T02:00:00Z"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learning")
    (folder / "kb.jsonl").write_text("\n".join(map(json.dumps, CONCEPTS)), "utf-8")
    source = SourceConfig(path=folder / "kb.jsonl", format="jsonl")
    build_store(BuildConfig(sources=(source,)), folder / "KB")
    kb = KnowledgeBase.open(folder / "KB")
    build_index(kb, folder / "INDEX")
    return kb, folder / "INDEX"


@pytest.fixture
def kb(made):
    return made[0]


@pytest.fixture
def index(made, tmp_path):
    return shutil.copytree(made[1], tmp_path / "INDEX")


def approved(term: str, concept: str, **more: object) -> Decision:
    return Decision(term=term, concept=concept, verdict="approved", time=TIME, **more)


def rejected(term: str, concept: str, **more: object) -> Decision:
    return Decision(term=term, concept=concept, verdict="rejected", **{"time": TIME, **more})


def test_similar_terms_find_a_reviewed_name_where_other_decisions_support_it(kb, index):
    def similar():
        (found,) = Linker.open(kb, index).link_mentions(["a widow makers"])
        return [(each.concept, 0.5 < each.score < 1) for each in found]

    one = learn(kb, index, [approved("widow maker", "D1")])
    assert (one.weight, one.f1_before, one.f1_after) == (0, 0, 0)
    assert similar() == []
    spellings = ("widow maker", "widow makers", "the widow maker", "widow-maker!", "widowmaker")
    several = learn(kb, index, [approved(spelling, "D1") for spelling in spellings])
    assert several.weight > 0
    assert several.f1_before == 0 < several.f1_after
    assert similar() == [("D1", True)]
    misleading = ("widow maker", "widow makers", "the widow maker", "widow-maker!")
    decisions = [approved(term, f"D{n}") for n, term in enumerate(misleading, 1)]
    assert learn(kb, index, decisions).weight == 0


def test_the_store_is_not_touched_and_the_names_say_where_they_are_from(kb, index):
    before = {path: path.read_bytes() for path in kb.folder.rglob("*") if path.is_file()}
    learn(kb, index, [approved("widow maker", "D1")])
    assert before == {path: path.read_bytes() for path in kb.folder.rglob("*") if path.is_file()}
    names = KnowledgeBase.open(index / "reviewed" / "kb")
    assert list(names.sources) == ["reviewed"]


def test_a_rejected_concept_never_comes_first_again_for_that_term(kb, index):
    assert Linker.open(kb, index).link_mentions(["heart attak"])[0][0].concept == "D1"
    learn(kb, index, [rejected("Heart attak", "D1")])
    linker = Linker.open(kb, index)
    assert "D1" not in [each.concept for each in linker.link_mentions(["heart attak"])[0]]
    assert linker.link_mentions(["heart atack"])[0][0].concept == "D1"  # another term
    assert linker.link_mentions(["heart attack"])[0][0].concept == "D1"


def test_a_term_without_a_concept_has_none(kb, index):
    learn(kb, index, [Decision(term="heart attack", verdict="nil", time=TIME)])
    (mapped,) = map_terms(Linker.open(kb, index), ["Heart Attack"])
    assert (mapped.concept, mapped.flag) == (None, "nil")


def test_an_ambiguous_name_is_decided(kb, index):
    learn(kb, index, [approved("chill", "D5")])
    (mapped,) = map_terms(Linker.open(kb, index), ["chill"])
    assert (mapped.concept, mapped.flag) == ("D5", "exact")


def test_a_term_with_two_codes_may_mean_two_concepts(kb, index):
    learn(kb, index, [approved("chill", "D4"), approved("chill", "D5", frequency=9)])
    (mapped,) = map_terms(Linker.open(kb, index), ["chill"])
    assert (mapped.concept, mapped.flag) == ("D5", "ambiguous")


def answers(linker, term):
    return [mapping.concept for mapping in map_terms(linker, [term])]


def test_a_term_that_means_several_concepts_is_learned_with_all_of_them(kb, index):
    decided = [approved("pump failure + raised pressure", each) for each in ("D3", "D2")]
    learn(kb, index, decided)
    assert answers(Linker.open(kb, index), decided[0].term) == ["D3", "D2"]
    decided = [approved("pump failure + cold weather", each) for each in ("D2", "D4")]
    learn(kb, index, decided)
    assert answers(Linker.open(kb, index), decided[0].term) == ["D2", "D4"]
    assert answers(Linker.open(kb, index, types=["T047"]), decided[0].term) == ["D2"]
    apart = [approved("chill", "D4", code="1"), approved("chill", "D5", code="2")]
    learn(kb, index, apart)
    assert answers(Linker.open(kb, index), "chill") == ["D4"]


def test_terms_like_those_that_were_decided_mean_several_concepts_or_one(kb, index):
    words = ("pump stoppage", "pump stops", "stopped pump", "a pump stoppage")
    decided = [approved(words, "D2") for words in words]
    words = ("raised pressures", "raised pressure", "pressure raised", "pressures raised")
    decided += [approved(words, "D3") for words in words]
    decided += [approved("heart attacks, pump stopping", each) for each in ("D1", "D2")]
    decided += [approved("pressure raised + sweating", "D3")]
    assert learn(kb, index, decided).weight > 0
    linker = Linker.open(kb, index)
    assert set(answers(linker, "the heart attacks, pump stopping")) == {"D1", "D2"}
    assert set(answers(linker, "raised pressure, pump stopping")) == {"D2", "D3"}
    assert answers(linker, "the pressure raised + sweating") == ["D3"]


def test_what_was_decided_is_looked_up_as_it_is(kb, index):
    learn(kb, index, [rejected("HTN", "D3"), approved("flu and cold", "D4")])
    linker = Linker.open(kb, index)
    document = Document(
        "1", "HTN, flu and cold", (Mention(0, 3, "HTN"), Mention(5, 17, "flu and cold"))
    )
    first, *others = linker(document).mentions
    assert first.concept is None
    assert [(each.form, each.concept) for each in others] == [("flu and cold", "D4")]


def test_the_latest_of_contradictory_decisions_counts(kb, index):
    later = "2026-11-24T03:00:00Z"
    learn(kb, index, [rejected("mi", "D1", time=later), approved("mi", "D1")])
    assert "D1" not in [c.concept for c in Linker.open(kb, index).link_mentions(["mi"])[0]]


def test_broader_concepts_are_answers_but_no_names(kb, index):
    learn(kb, index, [approved("widow maker", "D2", relation="broad")])
    linker = Linker.open(kb, index)
    assert linker.link_mentions(["widow maker"])[0][0].concept == "D2"
    assert linker.link_mentions(["widow makers"]) == [[]]


def test_types_still_limit_the_answers(kb, index):
    learn(kb, index, [approved("cold thing", "D4")])
    assert Linker.open(kb, index, types=("T047",)).link_mentions(["cold thing"])[0] == []
    assert Linker.open(kb, index).link_mentions(["cold thing"])[0][0].concept == "D4"


def test_an_index_has_one_writer(kb, index):
    """It was replaced while it learned: a traceback, or what was learned was gone."""
    with held_elsewhere(index):
        with pytest.raises(OutputError):
            learn(kb, index, [approved("widow maker", "D1")])
        with pytest.raises(OutputError):
            forget(index)


def test_learning_again_replaces_and_forgetting_removes(kb, index):
    learn(kb, index, [approved("widow maker", "D1")])
    learn(kb, index, [approved("broken heart", "D2")])
    linker = Linker.open(kb, index)
    assert linker.link_mentions(["broken heart"])[0][0].concept == "D2"
    assert linker.link_mentions(["widow maker"]) == [[]]
    update_index(kb, index)
    assert Linker.open(kb, index).link_mentions(["broken heart"])[0][0].score == 1.0
    forget(index)
    assert Linker.open(kb, index).reviewed is None


def test_probabilities_are_fitted_without_the_terms_own_names(kb, index):
    none = [
        Decision(term=f"heart attack {word}", verdict="nil", time=TIME)
        for word in ("alley", "action", "band", "board", "grill", "risk", "song", "trial")
        for word in (word, f"{word} one", f"{word} two", f"{word} three")
    ]
    right = [approved(f"heart attack {'!' * n}", "D1") for n in range(34)]
    few = learn(kb, index, [*none[:18], *right])
    assert few.threshold is None
    by_score = Linker.open(kb, index)
    assert by_score.link_mentions(["heart attack"])[0][0].probability is not None
    assert by_score.nil.threshold_of("heart attack") == 0.55
    report = learn(kb, index, [*none, *right])
    assert report.threshold is not None
    assert report.f1_after > report.f1_before
    linker = Linker.open(kb, index)
    assert linker.calibration is not None
    assert linker.calibration.n == 66
    candidates = linker.link_mentions(["heart attack"])[0]
    assert candidates[0].probability is not None


CODED = [
    *(approved(f"X{n}.{n} heart attack, chart {n} of ward", "D1") for n in range(3)),
    *(approved(f"X{n}.{n} high blood pressure, see file {n}", "D3") for n in range(3, 6)),
    *(Decision(term=f"form {n} was sent", verdict="nil", time=TIME) for n in range(4)),
]
"""Names that codes and remarks stand beside."""


def mapped(kb, index, text, **settings):
    (mapping,) = map_terms(Linker.open(kb, index, **settings), [text])
    return mapping


def test_names_inside_terms_answer_without_decisions(kb, index):
    text = "X9.9 heart arrest, call back soon"
    assert mapped(kb, index, text).concept == "D2"
    assert mapped(kb, index, text).score < 1
    assert mapped(kb, index, "form 9 was sent").concept is None
    assert mapped(kb, index, "X9.9 no heart arrest, call back").concept is None
    assert mapped(kb, index, "X9.9 mother had heart arrest").concept is None
    learn(kb, index, CODED)
    assert mapped(kb, index, text).concept == "D2"


def test_a_narrower_answer_stays_where_the_name_inside_is_broader(kb):
    assert replaces(kb, "D1", "D2")
    assert replaces(kb, "D1", None)
    assert not replaces(kb, None, "D1")
    assert not replaces(kb, "D1", "D6")


def test_a_report_says_of_each_part_why_it_is_not_applied(kb, index):
    report = learn(kb, index, [approved("widow maker", "D1")])
    reasons = {each.name: each.reason for each in report.parts}
    assert reasons["weight of lexical search"] == "the index has one kind of search"
    assert "needs 50 terms" in reasons["threshold of NIL"]
    assert reasons["similar names"] == "no gain"
    assert json.loads(json.dumps(report.to_json()))["parts"][1]["interval"] == [0, 0]


def test_the_command_prints_each_part_with_its_gain(kb, index, tmp_path, run_main):
    sssom = tmp_path / "decided.sssom.tsv"
    MappingSet.of_decisions(CODED).write(sssom)
    base = ("learn", str(sssom), "--kb", str(kb.folder), "--index", str(index))
    done = run_main(*base)
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "weight of lexical search not applied: the index has one kind of search" in lines
    (similar,) = (line for line in lines if line.startswith("similar names"))
    assert "->" in similar
    assert similar.endswith("not applied: gain within its error")
    parts = json.loads(run_main(*base, "--json").out)["parts"]
    assert [part["name"] for part in parts if part["applied"]] == []


def test_the_command_learns_from_what_usagi_saves(kb, index, tmp_path, run_main):
    usagi = tmp_path / "labs.csv"
    usagi.write_text(
        "sourceCode,sourceName,sourceFrequency,mappingStatus,equivalence,conceptId,conceptName\n"
        "1,nothing known,3,APPROVED,EQUAL,0,Unmapped\n"
    )
    done = run_main("learn", str(usagi), "--kb", str(kb.folder), "--index", str(index), "--json")
    assert (done.code, json.loads(done.out)["n_nil"]) == (0, 1)


def test_probabilities_of_an_earlier_biograft_are_learned_again(kb, index):
    """They named no knowledge base, so they may have been fitted with another one."""
    learn(kb, index, [approved("widow maker", "D1")])
    fitted = {"method": "platt", "points": [[1, 0]], "n": 9, "search": "", "threshold": None}
    calibration = {"format": "biograft-calibration", "version": 1, **fitted}
    (index / "reviewed" / "calibration.json").write_text(json.dumps(calibration))
    with pytest.raises(StoreError, match="without its knowledge base; run `biograft learn` again"):
        Linker.open(kb, index)
    learn(kb, index, [approved("widow maker", "D1")])
    assert Linker.open(kb, index).calibration is None


def test_decisions_on_other_concepts_are_counted_or_refused(kb, index):
    report = learn(kb, index, [approved("x", "D999"), approved("widow maker", "D1")])
    assert report.n_unknown == 1
    with pytest.raises(ConfigError, match="none on a concept"):
        learn(kb, index, [approved("x", "D999")])
    with pytest.raises(StoreError, match="biograft index"):
        learn(kb, index.parent / "none", [approved("widow maker", "D1")])


@pytest.mark.parametrize("file", ["kb/names.arrow", "lexical/manifest.json"])
def test_damage_of_what_was_learned_says_to_learn_again(kb, index, file):
    """It said to build the store, or the index, again."""
    learn(kb, index, [approved("widow maker", "D1")])
    path = index / "reviewed" / file
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(StoreError, match=r"reviewed.*run `biograft learn` again"):
        Linker.open(kb, index)

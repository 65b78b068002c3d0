"""Earlier decisions: which terms have one, and what changed in the store since."""

import pytest

from biograft.mapping import Decision, EarlierDecisions, SourceTerm, map_terms


def decided(concept="HP:8", name="Heart attack", **fields):
    verdict = "approved" if concept else "nil"
    fields = {"term": "MI", "verdict": verdict, "concept": concept, "name": name} | fields
    return Decision(**fields)


@pytest.mark.parametrize(
    ("decision", "flag", "concept"),
    [
        (decided(), "seen", "HP:8"),
        (decided("", ""), "seen", ""),
        (decided(name="Cardiac infarction"), "renamed", "HP:8"),
        (decided("HP:9", "Fever"), "merged", "HP:1"),
        (decided("HP:7", "Pyrexia"), "replaced", "HP:1"),
        (decided("HP:6", "Fever or cold"), "split", ""),
        (decided("HP:5", "Cold"), "retired", ""),
        (decided("OMOP:4329847"), "seen", "HP:8"),
    ],
)
def test_a_decision_is_compared_with_the_store(kb, linker, decision, flag, concept):
    before = EarlierDecisions([decision], kb).of("mi")
    assert (before.flag, before.concept) == (flag, concept)
    (mapping,) = map_terms(linker, ["MI"], EarlierDecisions([decision], kb))
    assert (mapping.flag, mapping.concept or "") == (flag, concept)
    assert mapping.decision == decision


def test_candidates_of_what_was_split_or_may_be_meant(kb, linker):
    for concept, first in (("HP:6", ["HP:1", "HP:2"]), ("HP:5", ["HP:2"])):
        earlier = EarlierDecisions([decided(concept, "x", term="Heart attack")], kb)
        (mapping,) = map_terms(linker, ["heart attack"], earlier)
        found = [candidate.concept for candidate in mapping.others]
        assert found[: len(first)] == first
        assert "HP:8" in found  # what is found anew follows


def test_a_reference_that_several_concepts_have_decides_nothing(store_of):
    shared = [{"id": "OMOP:1", "kind": "xref"}]
    names = ("Fever", "Cold")
    kb = store_of([{"id": f"HP:{n}", "name": n, "ids": shared} for n in names])
    before = EarlierDecisions([decided("OMOP:1", "Fever")], kb).of("MI")
    assert (before.flag, before.concept) == ("retired", "")


def test_the_latest_decision_counts(kb):
    old, new = decided(time="2026-01-01"), decided("", "", time="2026-01-02T10:00:00Z")
    for order in ([old, new], [new, old]):
        assert EarlierDecisions(order, kb).of("MI").decision == new


def test_a_further_concept_stands_beside_the_first(kb, linker):
    """A concept added by ``review target`` later than the first hid it."""
    first = decided(time="2026-01-01T10:00:00Z")
    second = decided("HP:1", "Fever", part="Fever", time="2026-01-02T10:00:00Z")
    other = decided("HP:2", "Cold", part="x", time="2026-01-03T10:00:00Z")
    for order in ([first, second, other], [other, second, first]):
        found = list(map_terms(linker, ["MI"], EarlierDecisions(order, kb)))
        assert {m.concept for m in found} == {"HP:8", "HP:1", "HP:2"}
    later = decided("HP:3", "Sodium", time="2026-01-04T10:00:00Z")
    found = map_terms(linker, ["MI"], EarlierDecisions([first, second, later], kb))
    assert {m.concept for m in found} == {"HP:3", "HP:1"}


def test_a_part_without_a_concept_hides_no_other(kb, linker):
    first = decided(part="a", time="2026-01-01T10:00:00Z")
    none = decided("", "", part="b", time="2026-01-02T10:00:00Z")
    found = list(map_terms(linker, ["MI"], EarlierDecisions([first, none], kb)))
    assert [(m.concept, m.flag) for m in found] == [("HP:8", "seen"), (None, "seen")]


def test_proposals_are_no_decisions(kb):
    earlier = EarlierDecisions([Decision(term="MI", concept="HP:8")], kb)
    assert earlier.of("MI").flag == ""
    assert (earlier.n_decided, earlier.n_proposed) == (0, 1)


def test_codes_and_contexts_tell_terms_apart(kb):
    one = decided(code="1", context="unit: a")
    two = decided("HP:1", "Fever", code="2", context="unit: b")
    earlier = EarlierDecisions([one, two], kb)
    assert earlier.of("MI", "2", "unit: b").decision == two
    assert earlier.of("MI", "1").decision == one
    assert earlier.of("MI", "3").decision is None
    assert earlier.of("MI").decision is None  # they disagree
    assert EarlierDecisions([one], kb).of("MI").decision == one
    assert earlier.n_unused == 0
    assert EarlierDecisions([one, two], kb).n_unused == 2


def test_of_decisions_that_agree_the_same_one_counts_in_every_run(kb):
    """It was the last of a set, whose order changes from run to run."""
    codes = [decided(code=str(code)) for code in range(9)]
    assert EarlierDecisions(codes, kb).of("MI").decision == codes[-1]


def test_a_decision_on_a_code_alone(kb):
    earlier = EarlierDecisions([decided(term="", code="I21")], kb)
    assert earlier.of("any text", "I21").flag == "seen"


def test_rejected_concepts_are_not_proposed_again(kb, linker):
    no = decided(term="Heart attack", verdict="rejected", concept="OMOP:4329847")
    rejected, other = map_terms(linker, ["heart attack", "fever"], EarlierDecisions([no], kb))
    assert (rejected.flag, rejected.concept) == ("rejected", None)
    assert "HP:8" not in [c.concept for c in rejected.others]
    assert (other.flag, other.concept) == ("exact", "HP:1")


def context(text, **columns):
    return SourceTerm(text, context=tuple(columns.items()))


def test_the_context_decides_between_equal_candidates_only(linker):
    terms = [
        context("chill", department="Weather station"),
        context("chill", department="Surgery"),
        context("sodium", specimen="blood"),
        context("sodium", specimen="urine"),
        context("fever", department="cold weather"),
        context("zzqx", department="fever"),
    ]
    found = {(t.term.text, t.term.context_text): t for t in map_terms(linker, terms)}
    by_context = {key[1].split(": ")[1]: (m.flag, m.concept) for key, m in found.items()}
    assert by_context["Weather station"] == ("context", "HP:2")
    assert by_context["Surgery"][0] == "ambiguous"
    assert by_context["cold weather"] == ("exact", "HP:1")
    assert by_context["fever"] == ("nil", None)
    low = list(map_terms(linker.with_settings(threshold=0.1), terms))
    assert [m.concept for m in low[2:4]] == ["HP:4", "HP:3"]
    assert {low[2].flag, low[3].flag} <= {"", "context"}

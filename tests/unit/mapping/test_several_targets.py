"""Terms of several concepts: in tables, sets, reviews, and applied again."""

import csv
from dataclasses import replace

from biograft.linking import Linker
from biograft.linking.outputs import ConceptIds
from biograft.mapping import (
    Decision,
    EarlierDecisions,
    MappingRun,
    ReviewStore,
    check_review,
    concept_map,
    export_review,
    import_review,
    map_terms,
    read_decisions,
    write_mapping,
)


def test_a_term_of_several_concepts_goes_through_a_review_and_back(store_of, tmp_path):
    """Each concept is a row of the table, a term of the review, and an object of the set."""
    kb = store_of([{"id": "X:A", "name": "asthma"}, {"id": "X:B", "name": "hypertension"}])
    run = MappingRun(kb=kb, ids=ConceptIds(kb))
    mapped = list(map_terms(Linker.open(kb), ["asthma + hypertension", "J45.9 asthma"]))
    write_mapping(mapped, tmp_path / "m.csv", run)
    rows = list(csv.DictReader((tmp_path / "m.csv").read_text("utf-8").splitlines()))
    assert [(row["source_term"], row["concept"], row["part"]) for row in rows] == [
        ("asthma + hypertension", "X:A", "asthma"),
        ("asthma + hypertension", "X:B", "hypertension"),
        ("J45.9 asthma", "X:A", "asthma"),
    ]
    with ReviewStore.open(tmp_path / "r.db", create=True) as store:
        assert import_review(store, tmp_path / "m.csv", reviewer="ann").n_added == 3
        items = {(i.term.text, i.term.part): i for i in store.items()}
        both = "asthma + hypertension"
        assert set(items) == {(both, "asthma"), (both, "hypertension"), ("J45.9 asthma", "")}
        store.decide(items[both, "asthma"].id, "approve", reviewer="ann")
        store.decide(items[both, "hypertension"].id, "approve", reviewer="ann")
        export_review(store, tmp_path / "w.csv")
        assert import_review(store, tmp_path / "w.csv", reviewer="bob").n_unchanged == 3
        assert store.find("review", both, part="asthma")
        export_review(store, tmp_path / "d.sssom.tsv")
    assert check_review(tmp_path / "r.db").problems == ()
    earlier = EarlierDecisions(read_decisions(tmp_path / "d.sssom.tsv"), kb)
    again = list(map_terms(Linker.open(kb), [both], earlier))
    assert [(m.concept, m.flag, m.part) for m in again] == [
        ("X:A", "seen", "asthma"),
        ("X:B", "seen", "hypertension"),
    ]
    with ReviewStore.open(tmp_path / "r2.db", create=True) as store:
        import_review(store, tmp_path / "d.sssom.tsv", reviewer="ann")
        export_review(store, tmp_path / "d2.sssom.tsv")
    first, second = (read_decisions(tmp_path / n) for n in ("d.sssom.tsv", "d2.sssom.tsv"))
    assert [replace(each, time="") for each in first] == [replace(each, time="") for each in second]
    (element,) = concept_map(again, run)["group"][0]["element"]
    assert [target["code"] for target in element["target"]] == ["X:A", "X:B"]


def approved(concept, **fields):
    return Decision(term="both", concept=concept, verdict="approved", **fields)


def test_which_of_several_decisions_stand(store_of):
    kb = store_of([{"id": f"X:{each}", "name": each} for each in ("one", "two", "three")])
    early, late = "2026-01-01", "2026-02-01"
    cases = [
        ([approved("X:one", time=early), approved("X:two", time=early)], ["X:one", "X:two"]),
        ([approved("X:one"), approved("X:two")], ["X:one", "X:two"]),
        ([approved("X:one", time=early), approved("X:two", time=late)], ["X:two"]),
        (
            [
                approved("X:one", part="a", time=early),
                approved("X:two", part="b", time=late),
                approved("X:three", part="a", time=late),
            ],
            ["X:two", "X:three"],
        ),
        ([approved("X:one", time=early), Decision(term="both", verdict="nil", time=late)], [""]),
    ]
    for decisions, concepts in cases:
        found = EarlierDecisions(decisions, kb).of("both")
        assert [each.concept for each in (found, *found.more)] == concepts

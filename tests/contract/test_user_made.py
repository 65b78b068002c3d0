"""Files of version 0.1.0 that users keep open in this version with nothing lost."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from biograft import BiograftError, KnowledgeBase, Linker
from biograft.linking import build_index
from biograft.mapping import (
    Decision,
    EarlierDecisions,
    MappingSet,
    ReviewFilter,
    ReviewStore,
    export_review,
    import_review,
    learn,
    map_terms,
    read_decisions,
    read_earlier,
)
from biograft.serve import KeyFile

FOLDER = Path(__file__).parent / "user_made"
READERS: Mapping[str, Callable[[Path], list[Decision]]] = {
    "review-terms.sssom.tsv": read_decisions,
    "review-double.sssom.tsv": read_decisions,
    "review-proposals.sssom.tsv": read_decisions,
    "mapped.sssom.tsv": read_decisions,
    "decisions.sssom.tsv": read_decisions,
    "mapped-edited.csv": read_earlier,
}
SETS = [name for name in READERS if name.endswith(".sssom.tsv")]
IMPORTS = (
    "review-terms.sssom.tsv",
    "decisions.sssom.tsv",
    "mapped.csv",
    "mapped.tsv",
    "mapped-edited.csv",
)
DECIDED_NOW = {"at", "updated_at", "batch"}
"""What an import or an edit sets anew."""


def keeps(found: Any, expected: Any, path: str = "") -> None:
    """Assert that all of ``expected`` is there; keys may have been added."""
    if isinstance(expected, dict):
        assert isinstance(found, Mapping), path
        assert expected.keys() <= found.keys(), path
        for key, value in expected.items():
            keeps(found[key], value, f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for row, value in enumerate(expected):
            keeps(found[row], value, f"{path}[{row}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-9), path
    else:
        assert found == expected, path


def without_times(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in DECIDED_NOW}


def list_review(place: Path) -> dict[str, Any]:
    """List all that a review holds: queues, terms, removed ones too, every event, comments."""
    with ReviewStore.open(place) as store:
        queues = store.queues()
        removed = ReviewFilter(status="removed")
        listed: dict[str, Any] = {"queues": queues}
        for queue in (each["queue"] for each in queues):
            items = [*store.items(queue), *store.items(queue, removed)]
            rejections = store.rejections(queue)
            listed[queue] = {
                "terms": [item.to_json() for item in sorted(items, key=lambda item: item.id)],
                "order": [item.id for item in store.items(queue)],
                "events": [
                    event.to_json()
                    for item in sorted(items, key=lambda item: item.id)
                    for event in store.history(queue, item.id)
                ],
                "history": [event.id for event in store.history(queue)],
                "comments": {str(term): said for term, said in store.comments(queue).items()},
                "rejections": [[*key, *who] for key, who in sorted(rejections.items())],
            }
        return listed


def list_import(path: Path, folder: Path) -> dict[str, Any]:
    """List what a new review holds after a file was imported into it."""
    with ReviewStore.open(folder / f"{path.name}.db", create=True) as store:
        done = import_review(store, path, reviewer="eve")
        items = sorted(store.items(), key=lambda item: item.id)
        return {
            "rows": [done.n_rows, done.n_added, done.n_decided, done.n_unchanged],
            "problems": [line for line, _ in done.problems],
            "terms": [without_times(item.to_json()) for item in items],
            "comments": {str(term): said for term, said in store.comments().items()},
        }


@pytest.fixture(scope="module")
def expected() -> Any:
    return json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(params=["review.db", "review-1.db.gz", "review-3.db.gz", "review-4.db.gz"])
def review(request: Any, tmp_path: Path) -> Path:
    """The review as each version of the schema has it."""
    if request.param == "review.db":
        return Path(shutil.copy(FOLDER / "review.db", tmp_path))
    place = tmp_path / request.param.removesuffix(".gz")
    place.write_bytes(gzip.decompress((FOLDER / request.param).read_bytes()))
    return place


@pytest.fixture(scope="module")
def kb(kb: Path) -> KnowledgeBase:
    return KnowledgeBase.open(kb)


def test_a_review_has_all_its_terms_events_and_comments(review, expected):
    keeps(list_review(review), expected["review"])
    keeps(list_review(review), expected["review"])  # also once it was brought up to date


def test_a_review_goes_on(review, expected):
    """Decisions, the undo of old events and of an old batch work as on a review of today."""
    terms = expected["review"]["terms"]["terms"]
    with ReviewStore.open(review) as store:
        (cold,) = (term for term in terms if term["text"] == "cold")
        later = store.decide(cold["id"], "reject", reviewer="eve", version=cold["version"])
        assert (later.state.status, later.version) == ("rejected", cold["version"] + 1)
        (bulk,) = {
            event.batch for event in store.history("terms") if event.comment == "all above 0.9"
        }
        undone = store.undo_batch(bulk, reviewer="eve")
        assert (undone.n_changed, [term for term, _ in undone.skipped]) == (5, [cold["id"]])
        first = store.find("terms", "heart attack", "L01")
        (event,) = (e for e in store.history("terms", first.id) if e.action == "approve")
        assert store.undo(event.id, reviewer="eve").state.status == "open"
        proposed = store.find("double", "hart atack", "L02")
        assert store.decide(proposed.id, "approve", reviewer="bob").state.status == "approved"


@pytest.mark.parametrize("name", READERS)
def test_decisions_are_read_in_full(name, expected):
    keeps([asdict(each) for each in READERS[name](FOLDER / name)], expected["decisions"][name])


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_its_metadata_and_is_written_again_in_full(name, expected, tmp_path):
    for folder in (FOLDER, tmp_path):
        mappings = MappingSet.read(folder / name)
        for field in ("id", "license", "source", "kb"):
            assert getattr(mappings, field) == expected["metadata"][name][field]
        decisions = [asdict(each) for each in read_decisions(folder / name)]
        keeps(decisions, expected["decisions"][name])
        if folder is FOLDER:
            mappings.write(tmp_path / name)
    assert MappingSet.read(tmp_path / name) == MappingSet.read(FOLDER / name)


@pytest.mark.parametrize("name", IMPORTS)
def test_files_are_imported_into_a_review(name, expected, tmp_path):
    keeps(list_import(FOLDER / name, tmp_path), expected["imports"][name])


def test_an_edited_worksheet_finds_its_review(review, expected):
    """What was edited is decided; rows that nobody touched stay as they are."""
    before = {term["id"]: term for term in expected["review"]["terms"]["terms"]}
    with ReviewStore.open(review) as store:
        unchanged = import_review(store, FOLDER / "worksheet.csv", reviewer="eve", queue="terms")
        assert (unchanged.n_decided, unchanged.problems) == (0, ())
        done = import_review(store, FOLDER / "worksheet-edited.csv", reviewer="eve", queue="terms")
        assert (done.n_decided, done.problems) == (4, ())
        edited = {
            item.term.code: (item.state.status, item.state.concept, item.state.relation)
            for item in store.items("terms")
            if item.version != before[item.id]["version"]
        }
    assert edited == {
        "L02": ("rejected", "D009203", "exact"),
        "L11": ("approved", "D005334", "exact"),
        "L21": ("nil", None, "exact"),
        "L22": ("approved", "D010146", "broad"),
    }


def test_a_review_is_exported_as_before(review, expected, tmp_path):
    with ReviewStore.open(review) as store:
        for queue in ("terms", "double"):
            name = f"review-{queue}.sssom.tsv"
            export_review(store, tmp_path / name, queue=queue)
            keeps(
                [asdict(each) for each in read_decisions(tmp_path / name)],
                expected["decisions"][name],
            )


def test_decisions_are_applied_to_the_same_terms(kb):
    """What was approved is not asked again, what was rejected is not suggested again."""
    earlier = EarlierDecisions(read_earlier(FOLDER / "review-terms.sssom.tsv"), kb)
    assert (earlier.n_decided, earlier.n_proposed) == (20, 0)
    terms = {
        "hart atack": ("D009203", "seen"),
        "高血压": ("D006973", "seen"),
        "Mrs Miller": (None, "seen"),
        "asthma, severe": ("D001249", "seen"),
    }
    found = {m.term.text: m for m in map_terms(Linker.open(kb), [*terms, "sugar"], earlier)}
    assert {text: (found[text].concept, found[text].flag) for text in terms} == terms
    assert found["sugar"].concept != "D007003"


def test_an_index_learns_them(kb, tmp_path):
    build_index(kb, tmp_path / "INDEX")
    decisions = read_decisions(FOLDER / "review-terms.sssom.tsv")
    report = learn(kb, tmp_path / "INDEX", decisions)
    assert (report.n_approved, report.n_rejected, report.n_nil) == (15, 1, 3)
    linker = Linker.open(kb, tmp_path / "INDEX")
    hart, nobody, sugar = map_terms(linker, ["hart atack", "Mrs Miller", "sugar"])
    assert (hart.concept, nobody.concept) == ("D009203", None)
    assert "D007003" not in (sugar.concept, *(other.concept for other in sugar.others))


def test_keys_open_what_they_opened(expected, tmp_path):
    keys = KeyFile.open(shutil.copy(FOLDER / "keys.toml", tmp_path))
    for name, (role, key) in expected["keys"].items():
        found = keys.find(key)
        assert found is not None
        assert (found.name, found.role) == (name, role)
    keys.remove("eve")
    assert {*KeyFile.open(keys.path).keys} == expected["keys"].keys() - {"eve"}


def test_the_defaults_of_a_set_stay(tmp_path):
    """A set without metadata of its own has the same IRI in every version."""
    decisions = read_decisions(FOLDER / "review-terms.sssom.tsv")
    MappingSet.of_decisions(decisions, source="terms").write(tmp_path / "terms.sssom.tsv")
    assert (
        MappingSet.read(tmp_path / "terms.sssom.tsv").id
        == "https://example.org/sets/5845ce22-b7a4-5922-b2e5-6bdbc1cd5739"
    )


def test_stores_and_indexes_of_another_format_are_refused_in_one_line(kb, tmp_path):
    """They may be built again, and the error says by which command."""
    build_index(kb, tmp_path / "INDEX")
    shutil.copytree(kb.folder, tmp_path / "KB")
    for folder, command, opens in (
        (tmp_path / "INDEX", "biograft index", lambda: Linker.open(kb, tmp_path / "INDEX")),
        (tmp_path / "KB", "biograft kb build", lambda: KnowledgeBase.open(tmp_path / "KB")),
    ):
        (path,) = folder.glob("manifest.json")
        manifest = json.loads(path.read_text())
        for version in (manifest["version"] - 1, manifest["version"] + 1):
            path.write_text(json.dumps({**manifest, "version": version}))
            with pytest.raises(BiograftError, match=f"version {version}.*`{command}") as error:
                opens()
            assert "\n" not in str(error.value)

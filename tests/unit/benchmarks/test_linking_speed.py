"""The speed of linking is measured by a script whose last line others read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SMALL = ("names=800", "mentions=40", "texts=8", "vectors=500", "queries=20", "runs=1")


@pytest.mark.slow
def test_a_small_run_ends_with_one_json_object():
    command = [sys.executable, str(BENCHMARKS / "linking_speed.py"), "--quick", "--json"]
    command += [f"--size={size}" for size in SMALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["lexical_over_sklearn"] > 0
    assert result["encode_over_published"] > 0
    assert set(result["not_measured"]) >= {"lexical_large", "search_large", "ncbi", "scispacy"}
    lexical, encode = result["parts"]["lexical"], result["parts"]["encode"]
    assert (lexical["n_names"], lexical["n_mentions"]) == (800, 40)
    assert min(lexical["found"], lexical["sklearn_found"]) > 0.8
    # the same vectors, whatever the precision
    assert encode["lowest_cosine"] > 0.98
    search = result["parts"]["search"]
    if result["search_over_faiss_flat"] is None:
        assert "faiss" in result["not_measured"]
    else:
        assert search["same_rows"] > 0.99
    assert all(0 < part["peak_gib"] < 4 for part in result["parts"].values())


def test_parts_that_cannot_be_measured_say_why(script, tmp_path):
    lexical = script("lexical_speed")
    assert "--data" in lexical.compare_on_ncbi({"data": str(tmp_path)})["skipped"]
    assert "--scispacy-python" in lexical.measure_scispacy({"scispacy_python": ""})["skipped"]


def test_a_part_that_fails_does_not_lose_what_the_others_measured(script, capfd):
    speed = script("linking_speed")
    failed = speed._run_apart("lexical", {"names": "many"})
    assert failed["skipped"].startswith("failed: ")
    assert "lexical failed" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [(("--parts", "speed"), "expected some of"), (("--size", "names=few"), "NAME=NUMBER")],
)
def test_what_is_not_known_is_refused(script, monkeypatch, capsys, options, told):
    monkeypatch.setattr(sys, "argv", ["linking_speed.py", *options])
    with pytest.raises(SystemExit, match="2"):
        script("linking_speed").main()
    assert told in capsys.readouterr().err


def test_names_are_the_same_every_time_and_all_different(script):
    names = script("synthetic_names")
    made = names.make_names(3000)
    assert made == names.make_names(3000)
    assert len(set(made)) == 3000
    assert made != names.make_names(3000, seed=1)


def test_mentions_are_changed_names(script):
    names = script("synthetic_names")
    known = names.make_names(500)
    mentions, origins = names.make_mentions(known, 300)
    assert (mentions, origins) == names.make_mentions(known, 300)
    assert len(set(mentions)) == len(mentions) == len(origins) == 300
    assert not set(mentions) & set(known)
    assert set(origins) <= set(known)
    letters = [len(set(m) & set(o)) / len(set(o)) for m, o in zip(mentions, origins, strict=True)]
    assert np.mean(letters) > 0.8


def test_the_plain_search_finds_what_comparing_all_pairs_finds(script):
    pytest.importorskip("sklearn")
    names = script("synthetic_names").make_names(300)
    mentions = [name[1:] for name in names[:50]]
    plain = script("lexical_speed").SklearnSearch(names)
    found, filled = plain.search_sparse(mentions, 5), plain.search(mentions, 5)
    scores = (plain.vectorizer.transform(mentions) @ plain.names).toarray()
    best = -np.sort(-scores, axis=1)[:, :5]
    assert np.take_along_axis(scores, found, axis=1) == pytest.approx(best)
    in_order = -np.sort(-np.take_along_axis(scores, filled, axis=1), axis=1)
    assert in_order == pytest.approx(best)
    # a text without any known trigram finds nothing
    assert plain.search_sparse(["###"], 5).tolist() == [[-1] * 5]


def test_runs_are_made_in_turn_and_the_median_counts(script):
    timing = script("timing")
    calls = []
    timed = timing.in_turn(3, lambda: calls.append("a"), lambda: calls.append("b") or "done")
    assert calls == ["a", "b"] * 3
    assert [each.result for each in timed] == [None, "done"]
    assert all(each.seconds > 0 for each in timed)


def test_the_table_shows_what_was_measured_and_nothing_else(script):
    tables = script("tables")
    machine = {"n_cores": 2, "processor": "P", "bf16": False}
    lexical = {
        "n_names": 73000,
        "over_sklearn": 4.0,
        "mentions_per_second": 2000.0,
        "sklearn_mentions_per_second": 500.0,
    }
    search = {"n_vectors": 10, "dim": 4, "queries_per_second": 1.0, "over_faiss_flat": None}
    parts = {"lexical": lexical, "search": search, "scispacy": {"skipped": "not measured"}}
    text = tables.linking_speed({"machine": machine, "parts": parts})
    row = (
        "| mentions, 73,000 synthetic names, by letters | 2,000 | scikit-learn tf-idf | 500 | 4.0 |"
    )
    assert row in text
    assert "faiss" not in text
    assert "scispaCy" not in text
    assert "was not measured" in text


def test_a_recorded_command_tells_no_places(script):
    shown = script("machine").describe_command("a.py", ["--encoder", "x=/home/me/model", "--quick"])
    assert shown == "python benchmarks/a.py --encoder x=model --quick"
    shown = script("machine").describe_command("b.py", ["--set", "a.b=2", "--set=a.c=/x/y"])
    assert shown == "python benchmarks/b.py --set a.b=2 --set=a.c=y"
    shown = script("machine").describe_command("c.py", ["--encoder", "reading alone"])
    assert shown == "python benchmarks/c.py --encoder 'reading alone'"

"""The benchmark of linking speed: its parts, its output, its synthetic names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SMALL = ("names=800", "mentions=40", "texts=8", "vectors=500", "queries=20", "runs=1")


@pytest.mark.long
def test_a_small_run_ends_with_one_json_object():
    command = [sys.executable, str(BENCHMARKS / "linking_speed.py"), "--quick", "--json"]
    command += [f"--size={size}" for size in SMALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["lexical_over_sklearn"] > 0
    assert result["encode_over_published"] > 0
    assert set(result["not_measured"]) >= {"lexical_large", "search_large", "ncbi", "scispacy"}
    assert result["lexical_1m_mentions_s"] > 0
    assert result["annotate_mb_s"] > 0
    assert result["cold_start_s"] > 0
    sizes = result["parts"]["lexical_1m"]
    assert sizes["n_names"] == 800
    if sizes["unique_mib"] is not None:  # where the system tells it
        assert 0 < sizes["unique_mib_of_eight"] < sizes["unique_mib"]
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


def test_skipped_parts_report_the_reason(script, tmp_path):
    lexical = script("lexical_speed")
    assert "--data" in lexical.compare_on_ncbi({"data": str(tmp_path)})["skipped"]
    assert "--scispacy-python" in lexical.measure_scispacy({"scispacy_python": ""})["skipped"]


def test_a_failed_part_is_reported_as_skipped(script, capfd):
    speed = script("linking_speed")
    failed = speed._run_apart("lexical", {"names": "many"})
    assert failed["skipped"].startswith("failed: ")
    assert "lexical failed" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [(("--parts", "speed"), "expected some of"), (("--size", "names=few"), "NAME=NUMBER")],
)
def test_unknown_options_are_refused(script, monkeypatch, capsys, options, message):
    monkeypatch.setattr(sys, "argv", ["linking_speed.py", *options])
    with pytest.raises(SystemExit, match="2"):
        script("linking_speed").main()
    assert message in capsys.readouterr().err


def test_synthetic_names_are_deterministic_and_unique(script):
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
    overlap = [len(set(m) & set(o)) / len(set(o)) for m, o in zip(mentions, origins, strict=True)]
    assert np.mean(overlap) > 0.8


def test_the_sklearn_search_equals_comparing_all_pairs(script):
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
    # a text without a known trigram has no matches
    assert plain.search_sparse(["###"], 5).tolist() == [[-1] * 5]


def test_runs_are_interleaved(script):
    timing = script("timing")
    calls = []
    timed = timing.interleave(3, lambda: calls.append("a"), lambda: calls.append("b") or "done")
    assert calls == ["a", "b"] * 3
    assert [each.result for each in timed] == [None, "done"]
    assert all(each.seconds > 0 for each in timed)


def test_a_recorded_command_has_no_folders(script):
    shown = script("machine").describe_command("a.py", ["--encoder", "x=/home/me/model", "--quick"])
    assert shown == "python benchmarks/a.py --encoder x=model --quick"
    shown = script("machine").describe_command("b.py", ["--set", "a.b=2", "--set=a.c=/x/y"])
    assert shown == "python benchmarks/b.py --set a.b=2 --set=a.c=y"
    shown = script("machine").describe_command("c.py", ["--encoder", "MLM only"])
    assert shown == "python benchmarks/c.py --encoder 'MLM only'"

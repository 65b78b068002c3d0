"""The leaderboard: published figures have a source, ours come from the results."""

from __future__ import annotations

import pytest

from biograft.errors import ConfigError
from biograft_lab.replication.leaderboard import SETS, LinkingSystem, leaderboard, linking_systems
from biograft_lab.replication.report import read_result, result_path

ABOUT = {"name": "A", "labels": "no", "model": "none", "knowledge": "none"}


def test_our_figures_are_those_of_the_results():
    result = {
        "rows": [
            {
                "set": "ncbi-disease",
                "protocol": "published",
                "dictionary": "published",
                "split": "test",
                "config": "lexical",
                "n": 10,
                "acc@1": 90.04,
                "intervals": {"acc@1": [80.0, 95.0]},
            },
            {
                "set": "ncbi-disease",
                "protocol": "ontology",
                "dictionary": "ontology",
                "split": "test",
                "config": "lexical",
                "n": 10,
                "acc@1": 11.0,
                "intervals": {"acc@1": [10.0, 12.0]},
            },
        ]
    }
    lines = leaderboard(result).splitlines()
    published = [system for system in linking_systems() if system.figures]
    assert len(lines) == 2 + len(published) + 1  # ours without a row are left out
    (ours,) = [line for line in lines if "biograft: lexical search |" in line]
    assert ours.split(" | ")[4:6] == ["90.0 (80.0–95.0)", ""]
    assert "| 92.0 |" in lines[2]  # SapBERT on NCBI disease


def test_the_strict_leaderboard_has_the_sets_and_rows_of_its_protocol():
    row = {
        "set": "ncbi-disease",
        "protocol": "strict",
        "dictionary": "ontology",
        "split": "test",
        "config": "lexical",
        "n": 10,
        "acc@1": 77.04,
        "intervals": {"acc@1": [70.0, 80.0]},
    }
    head, _, *lines = leaderboard({"rows": [row]}, protocol="strict").splitlines()
    assert "AskAPatient" not in head
    assert any(line.startswith("| BELHD") and "| 87.6 |" in line for line in lines)
    assert not any("ANGEL" in line for line in lines)  # published by the other protocol only
    assert [line for line in lines if "77.0 (70.0–80.0)" in line]


def test_every_system_of_ours_has_a_result():
    from biograft_lab.replication.report import _join

    name = "linking-protocols/leaderboard"
    rows = leaderboard(_join(name, read_result(result_path(name)))).splitlines()[2:]
    ours = [line for line in rows if "biograft" in line]
    assert ours
    assert all("–" in line for line in ours)
    assert "否" in leaderboard({"rows": []}, "zh")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "expected figures"),
        ({"figures": {"ncbi-disease": "9"}}, "need a source"),
        ({"figures": {"x": "9"}, "source": "B"}, "no set 'x'"),
    ],
)
def test_figures_without_a_source_are_refused(more, message):
    with pytest.raises(ConfigError, match=message):
        LinkingSystem(**ABOUT, **more)
    assert LinkingSystem(**ABOUT, configs=("lexical",)).configs
    assert len(SETS) == 5

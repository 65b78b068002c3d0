"""The named mutants fit the source, and what survives has a reason."""

from __future__ import annotations

import ast
import json
import tomllib
from importlib import import_module
from importlib.resources import files

import pytest

from biograft_lab import places

ROOT = places.REPOSITORY
KNOWN = tomllib.loads((files("biograft_lab.scripts") / "known_mutants.toml").read_text("utf-8"))
RESULT = places.RESULTS / "mutants.json"


@pytest.mark.parametrize("mutant", KNOWN["named"], ids=lambda each: each["what"])
def test_a_named_mutant_is_one_change_with_a_test(mutant):
    source = (ROOT / "src" / mutant["file"]).read_text(encoding="utf-8")
    assert source.count(mutant["was"]) == 1
    ast.parse(source.replace(mutant["was"], mutant["becomes"]))
    for test in mutant["tests"]:
        file, *_, name = test.split("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.skipif(not RESULT.exists(), reason=f"there is no {RESULT.name}")
def test_nine_of_ten_mutants_are_killed_and_survivors_have_reasons():
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    for name, module in result["modules"].items():
        n_survivors = module["survived"] + module["equivalent"]
        assert module["killed"] + n_survivors == module["mutants"]
        assert len(module["survivors"]) == n_survivors
        assert module["killed"] >= 0.9 * (module["killed"] + module["survived"]), name
        assert all(each["reason"] for each in module["survivors"]), name
    assert result["modules"].get("named", {"survivors": []})["survivors"] == []


SOURCE = '''
"""A file."""
LIMIT = 3


@cached
def keep(values: list[int], least: int = 1) -> list[int]:
    """Keep some values."""
    if not values:
        raise ValueError("no values " + str(least + 1))
    return [value for value in values if value < LIMIT and value > least]
'''


@pytest.fixture
def sample(tmp_path):
    (tmp_path / "a.py").write_text(SOURCE)
    mutants = import_module("biograft_lab.scripts.mutation_testing")
    return lambda n, seed=1: mutants.sample_mutants(tmp_path, ["a.py"], n, seed)[0]


def test_mutants_of_a_file(sample):
    mutants = sample(100)
    assert len({each.line for each in mutants}) == len(mutants)
    assert {each.line for each in mutants} == {3, 7, 9, 11}
    assert [each.key for each in sample(100)] == [each.key for each in mutants]
    assert len(sample(2)) == 2
    for each in mutants:
        ast.parse(each.text)
        assert each.text != SOURCE
    of_line = {each.line: each for each in mutants}
    assert of_line[3].key == "a.py: LIMIT = 3 -> LIMIT = 4"
    assert of_line[9].becomes in ("if not (not values):", "if values:")


@pytest.mark.long
def test_a_mutant_is_noticed_by_its_tests(tmp_path):
    testing = import_module("biograft_lab.scripts.mutation_testing")
    mutants = testing.chosen_mutants("named", 0, 0)
    rng = next(each for each in mutants if "random_numbers" in each[1][0])
    result = testing.Laboratory(tmp_path).try_all([rng])
    assert (result["mutants"], result["killed"], result["survivors"]) == (1, 1, [])

"""Configurations: plain values into dataclasses, and the constraints of their fields."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, get_type_hints

import pytest
from command_runs import runner_of

from biograft.cli import CommandGroup, Offered
from biograft.config import (
    Above,
    AtLeast,
    Choice,
    Config,
    Doc,
    Option,
    Range,
    Ratio,
    check_fields,
    described_fields,
    from_mapping,
    load_toml,
    to_toml,
)
from biograft.errors import ConfigError
from biograft.linking import LinkerConfig
from biograft.linking.config import LinkerSettings


@dataclass(frozen=True, kw_only=True)
class Inner:
    n: int = 1


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: str
    rate: float = 0.5
    on: bool = False
    words: tuple[str, ...] = ()
    parts: tuple[Inner, ...] = ()
    inner: Inner = field(default_factory=Inner)
    maybe: int | None = None
    either: int | str = 0
    numbers: Mapping[str, int] = field(default_factory=dict)
    path: Path = Path()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Outer(name="x")),
        ({"rate": 2}, Outer(name="x", rate=2.0)),
        ({"on": True}, Outer(name="x", on=True)),
        ({"words": ["a", "b"]}, Outer(name="x", words=("a", "b"))),
        ({"words": []}, Outer(name="x")),
        ({"parts": [{"n": 2}, {}]}, Outer(name="x", parts=(Inner(n=2), Inner()))),
        ({"inner": {"n": 3}}, Outer(name="x", inner=Inner(n=3))),
        ({"maybe": None}, Outer(name="x")),
        ({"maybe": 4}, Outer(name="x", maybe=4)),
        ({"either": "y"}, Outer(name="x", either="y")),
        ({"numbers": {"a": 1}}, Outer(name="x", numbers={"a": 1})),
        ({"path": "a/b"}, Outer(name="x", path=Path("a/b"))),
        ({"path": Path("a")}, Outer(name="x", path=Path("a"))),
    ],
)
def test_plain_values_become_the_dataclass(values, expected):
    result = from_mapping(Outer, {"name": "x", **values})
    assert result == expected
    assert isinstance(result.rate, float)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, "missing key 'name'"),
        ({"nam": "x"}, "unknown key 'nam'; did you mean 'name'?"),
        ({"name": 1}, "name: expected str, found 1"),
        ({"rate": "fast"}, "rate: expected float, found 'fast'"),
        ({"words": "ab"}, "words: expected a list, found 'ab'"),
        ({"words": ["a", 1]}, "words[1]: expected str, found 1"),
        ({"parts": [{"n": 1}, {"m": 1}]}, "parts[1]: unknown key 'm'; known: n"),
        ({"inner": 3}, "inner: expected a table, found 3"),
        ({"inner": {"n": True}}, "inner.n: expected int, found True"),
        ({"either": 1.5}, "either: expected str, found 1.5"),
        ({"numbers": {"a": "b"}}, "numbers.a: expected int, found 'b'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(values, problem):
    complete = values if "nam" in values or not values else {"name": "x", **values}
    with pytest.raises(ConfigError) as error:
        from_mapping(Outer, complete, "build.toml: ")
    assert str(error.value) == f"build.toml: {problem}"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a = \n", "not valid TOML: .*line 1"),
        (b"a = 1\na = 2\n", "not valid TOML: .*line 2"),
        (b"a = '\xff'", "not valid TOML"),
    ],
)
def test_faulty_toml_is_refused_with_its_line(tmp_path, content, problem):
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"^{path}: {problem}"):
        load_toml(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Config):
    count: Annotated[int, AtLeast(1)] = 1
    rate: Annotated[float, Above(0)] = 1.0
    ratio: Ratio = 0.5
    dropout: Annotated[float, Range(min=0, below=1)] | None = None
    threshold: Annotated[float, Range(above=0, below=1)] = 0.5
    margin: Annotated[float, Range(above=0, max=1)] = 0.5
    shift: Annotated[float, Range(max=0)] = 0.0
    mode: Annotated[str, Choice("mean", "sum")] = "mean"
    rates: tuple[Annotated[float, Above(0)], ...] = ()
    offset: Annotated[float, Range()] = 0.0
    free: float = math.nan


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "count: expected at least 1, found 0"),
        ({"count": True}, "count: expected at least 1, found True"),
        ({"rate": 0.0}, "rate: expected a number above 0, found 0.0"),
        ({"rate": math.nan}, "rate: expected a number above 0, found nan"),
        ({"ratio": 1.1}, "ratio: expected a number from 0 to 1, found 1.1"),
        ({"ratio": math.nan}, "ratio: expected a number from 0 to 1, found nan"),
        ({"dropout": 1.0}, "dropout: expected a number from 0 to below 1, found 1.0"),
        ({"threshold": 1}, "threshold: expected a number above 0 and below 1, found 1"),
        ({"margin": 1.5}, "margin: expected a number above 0 and at most 1, found 1.5"),
        ({"shift": 1}, "shift: expected at most 0, found 1"),
        ({"mode": "men"}, "mode: expected one of mean, sum, found 'men'; did you mean 'mean'?"),
        ({"rates": (1, -1)}, "rates[1]: expected a number above 0, found -1"),
        ({"offset": math.nan}, "offset: expected a number, found nan"),
    ],
)
def test_values_against_the_constraints(values, message):
    with pytest.raises(ConfigError) as caught:
        Limits(**values)
    assert str(caught.value) == message


def test_constraints_hold_for_subclasses_and_for_plain_values():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class More(Limits):
        ratio: float = 0.25  # another default, the same constraint
        steps: Annotated[int, AtLeast(0)] = 0

    assert More().ratio == 0.25
    with pytest.raises(ConfigError, match="ratio: expected a number from 0 to 1"):
        More(ratio=7.0)
    with pytest.raises(ConfigError, match="steps: expected at least 0"):
        More(steps=-1)
    with pytest.raises(ConfigError, match="count: expected at least 1"):
        More(count=0)
    assert from_mapping(Limits, {"ratio": 1, "rates": [1]}).rates == (1.0,)
    with pytest.raises(ConfigError, match="expected int, found True"):
        from_mapping(Limits, {"count": True})


def test_fields_are_checked_under_the_name_of_their_table():
    @dataclass(frozen=True)
    class Table:
        n: Annotated[int, AtLeast(1)] = 0

        def __post_init__(self) -> None:
            check_fields(self, "table.")

    with pytest.raises(ConfigError, match=r"table\.n: expected at least 1, found 0"):
        Table()


def test_plain_values_are_written_as_toml():
    values = {"a": 1, "b": ["x", 2.5, True], "c": {"d": 'say "é"', "e": {"f": []}}, "g": {}}
    values |= {"王敏": {"Dr. Li": {"ß 1": "x"}}}
    assert tomllib.loads(to_toml(values)) == values


def test_every_setting_of_a_linker_is_a_keyword():
    """An editor completes them; the sentences stand in ``LinkerConfig`` alone."""
    assert get_type_hints(LinkerSettings) == get_type_hints(LinkerConfig)
    described = {field.name for field in described_fields(LinkerConfig)}
    assert described == set(get_type_hints(LinkerConfig))


@dataclass(frozen=True, kw_only=True)
class Described(Config):
    """Fields of every kind that an option may have."""

    n: Annotated[int, AtLeast(1), Option("Number.", "-n", "N")] = 3
    names: Annotated[tuple[str, ...], Option("Names.", metavar="A,...")] = ()
    place: Annotated[Path | None, Option("Place.")] = None
    fast: Annotated[bool, Option("Be fast.")] = True
    hidden: Annotated[int, Doc("No option.")] = 7


def test_a_command_has_the_options_of_its_configurations():
    seen = []

    def command(text: str, config: Annotated[Described, Offered(n=5)]) -> None:
        seen.append((text, config))

    group = CommandGroup("Test.")
    group.command("command")(command)
    run = runner_of(group)
    run("t")
    run("t", "-n", "2", "--names", "a, b", "--place", "p", "--no-fast")
    given = Described(n=2, names=("a", "b"), place=Path("p"), fast=False)
    assert seen == [("t", Described(n=5)), ("t", given)]
    with pytest.raises(AssertionError, match=r"Invalid value for '-n'"):
        run("t", "-n", "0")

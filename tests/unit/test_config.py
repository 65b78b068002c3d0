from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from biograft.config import from_mapping, load_toml
from biograft.errors import ConfigError
from biograft.kb import BuildConfig, NameRules
from biograft.sources import SourceConfig


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
    ("values", "said"),
    [
        ({}, "missing key 'name'"),
        ({"nam": "x"}, "unknown key 'nam'; did you mean 'name'?"),
        ({"name": 1}, "name: expected str, found 1"),
        ({"name": None}, "name: expected str, found None"),
        ({"rate": "fast"}, "rate: expected float, found 'fast'"),
        ({"rate": True}, "rate: expected float, found True"),
        ({"on": 1}, "on: expected bool, found 1"),
        ({"words": "ab"}, "words: expected a list, found 'ab'"),
        ({"words": {"a": 1}}, "words: expected a list, found {'a': 1}"),
        ({"words": ["a", 1]}, "words[1]: expected str, found 1"),
        ({"parts": [{"n": 1}, {"m": 1}]}, "parts[1]: unknown key 'm'; known: n"),
        ({"inner": 3}, "inner: expected a table, found 3"),
        ({"inner": {"n": True}}, "inner.n: expected int, found True"),
        ({"maybe": "y"}, "maybe: expected int, found 'y'"),
        ({"either": 1.5}, "either: expected str, found 1.5"),
        ({"numbers": {"a": "b"}}, "numbers.a: expected int, found 'b'"),
        ({"numbers": []}, "numbers: expected a table, found []"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(values, said):
    complete = values if "nam" in values or not values else {"name": "x", **values}
    with pytest.raises(ConfigError) as error:
        from_mapping(Outer, complete, "build.toml: ")
    assert str(error.value) == f"build.toml: {said}"


def test_a_build_is_described_by_a_toml_file(tmp_path):
    path = tmp_path / "build.toml"
    path.write_text("""
        merge = "ids"
        types = ["T047"]
        [names]
        lowercase = true
        [[sources]]
        path = "a.obo"
        languages = ["en"]
        [[sources]]
        path = "b.csv"
        columns = {id = "code"}
    """)
    assert from_mapping(BuildConfig, load_toml(path)) == BuildConfig(
        sources=(
            SourceConfig(path=Path("a.obo"), languages=("en",)),
            SourceConfig(path=Path("b.csv"), columns={"id": "code"}),
        ),
        merge="ids",
        types=("T047",),
        names=NameRules(lowercase=True),
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sources": ()}, "sources: expected at least one"),
        ({"merge": "all"}, "merge: expected one of none, ids, xrefs, found 'all'"),
    ],
)
def test_a_build_checks_its_values(options, said):
    with pytest.raises(ConfigError, match=said):
        BuildConfig(**{"sources": (SourceConfig(path=Path("x")),), **options})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a = \n", "not valid TOML: .*line 1"),
        (b"a = 1\na = 2\n", "not valid TOML: .*line 2"),
        (b"a = '\xff'", "not valid TOML"),
    ],
)
def test_faulty_toml_is_refused_with_its_place(tmp_path, content, said):
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"^{path}: {said}"):
        load_toml(path)


@pytest.mark.parametrize(("name", "said"), [("none.toml", "No such file"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, said):
    with pytest.raises(ConfigError, match=f"^{tmp_path / name}: cannot be read .{said}"):
        load_toml(tmp_path / name)

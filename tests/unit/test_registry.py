import sys

import pytest

from biograft.errors import NotFoundError
from biograft.registry import Registry

THINGS = {
    "b": ("colorsys:rgb_to_hsv", "Hues."),
    "a": ("biograft_has_no_such_module:x", "Broken."),
}


@pytest.fixture
def registry():
    return Registry("thing", THINGS)


def test_listing_imports_nothing_and_keeps_the_order(registry):
    sys.modules.pop("colorsys", None)
    assert list(registry) == ["b", "a"]
    assert registry.help() == {"b": "Hues.", "a": "Broken."}
    assert "b" in registry
    assert "c" not in registry
    assert "colorsys" not in sys.modules


@pytest.mark.parametrize(("name", "message"), [("bb", "did you mean 'b'"), ("xyz", "known: a, b")])
def test_an_unknown_name_is_refused_with_the_known_ones(registry, name, message):
    with pytest.raises(NotFoundError, match=f"no thing is called '{name}'; {message}"):
        registry.load(name)


def test_a_fault_in_a_registered_module_is_not_taken_for_an_unknown_name(registry):
    with pytest.raises(ModuleNotFoundError):
        registry.load("a")

import pickle
import re

import pytest

from biograft import errors
from biograft.errors import (
    BiograftError,
    ConfigError,
    InputError,
    MissingExtraError,
    nearest,
)


def drawn_tree():
    """Read class and parent off the tree in the docstring."""
    parents, path = {}, []
    for line in errors.__doc__.splitlines():
        if name := re.search(r"\w+Error\b", line):
            depth = name.start() // 4
            path = [*path[: depth - 1], name[0]]
            parents[name[0]] = path[-2] if len(path) > 1 else "Exception"
    return parents


def test_the_tree_in_the_docstring_is_the_tree_of_the_code():
    classes = [
        c
        for c in vars(errors).values()
        if isinstance(c, type) and c.__module__ == errors.__name__ and not issubclass(c, Warning)
    ]
    assert drawn_tree() == {c.__name__: c.__bases__[0].__name__ for c in classes}
    assert all(issubclass(c, BiograftError) for c in classes)


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({}, "a.obo: is empty"),
        ({"line": 3}, "a.obo:3: is empty"),
        ({"line": 0}, "a.obo: is empty"),
        ({"line": 3, "text": "x\ty"}, "a.obo:3: is empty (found: 'x\\ty')"),
        ({"text": ""}, "a.obo: is empty (found: '')"),
        ({"remedy": "fetch it"}, "a.obo: is empty; fetch it"),
        ({"line": 3, "text": "x", "remedy": "y"}, "a.obo:3: is empty (found: 'x'); y"),
    ],
)
def test_an_input_error_names_position_problem_text_and_remedy(details, message):
    assert str(InputError("is empty", path="a.obo", **details)) == message


@pytest.mark.parametrize(
    ("word", "hint"),
    [("jsnol", "did you mean 'jsonl'?"), ("zzz", "known: biosyn, jsonl, triples")],
)
def test_the_nearest_known_word_is_offered(word, hint):
    assert nearest(word, ["triples", "jsonl", "biosyn"]) == hint


def test_a_list_of_known_words_ends_in_time():
    """Guards: a store of many types was listed whole, in one message of 1.2 MB."""
    hint = nearest("zzz", [f"type{k}" for k in range(100_000)])
    assert len(hint) < 1600
    assert hint.startswith("known: type0, type1, type10, ")
    assert hint.endswith(" more")
    listed, _, more = hint.removeprefix("known: ").partition(" and ")
    assert len(listed.split(", ")) + int(more.removesuffix(" more").replace(",", "")) == 100_000
    assert nearest("y" * 100_000, ["yes"]) == "known: yes"


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("a\nb\x1b[2J\u202e"),
        InputError("a\nb\x1b[2J", path="p\nq", line=3, text="t\n", remedy="r\u2028"),
        MissingExtraError("owl", "reading\nOWL"),
    ],
)
def test_a_message_is_one_line_without_control_characters(error):
    """Guards: 135 messages, such as those with a path or a text of a parser, had several lines."""
    assert "\n" not in str(error)
    assert str(error).isprintable()


def test_errors_come_back_from_another_process():
    """Guards: one in a worker was *a worker ended early (out of memory?)*, since none unpickled."""
    error = InputError("is damaged", path="p", line=3, text="t", remedy="r")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(again), str(again)) == (InputError, str(error))
    assert (again.path, again.line, again.remedy) == (error.path, 3, "r")
    missing = MissingExtraError("a", "b")
    assert str(pickle.loads(pickle.dumps(missing))) == str(missing)  # noqa: S301

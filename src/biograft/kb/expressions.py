"""Expressions that choose concepts, in the brief syntax of ECL, SNOMED CT's constraint language.

    << HP:0000118 MINUS << HP:0000707 |Abnormality of the nervous system|

- ``ID``, ``ID |name|``, ``"ID"``: a concept; quotes are for ids with blanks or marks; ``*``: all;
- ``< X``, ``<< X``, ``<! X``, ``<<! X``: those below X, with X; its children, with X;
- ``> X``, ``>> X``, ``>! X``, ``>>! X``: those above X, with X; its parents, with X;
- ``^ SET``: the members of a value set, by its file or URL;
- ``X AND Y``, ``X OR Y``, ``X MINUS Y``: those in both, in either, in the first only;
- ``X : relation = Y``, ``X : R relation = Y``: those in X with a relation to one in Y, or from one.

An expression is read into a tree, whose parts mark rows of a knowledge base as whole arrays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from biograft.arrays import Flags
from biograft.errors import ConfigError, nearest, shorten
from biograft.kb.fhir import AT_ONCE, spend
from biograft.kb.hierarchy import Rows
from biograft.kb.store import KnowledgeBase

_TOKEN = re.compile(
    r"""\s*(?:
        \^\s*(?P<set>"[^"]*"|[^\s()]+)
        |(?P<walk><<!|<<|<!|<|>>!|>>|>!|>)
        |(?P<term>\|[^|]*\|)
        |"(?P<quoted>[^"]*)"
        |(?P<mark>[(),=:]|\*(?=[\s()<>,:]|$))
        |(?P<id>\d+(?=\s*:)|(?:[^\s()|,="<>^:]|:(?=[^\s()|,="<>^:]))+)
    )""",
    re.VERBOSE,
)
_JOINS = {"AND": np.logical_and, "OR": np.logical_or, "MINUS": np.greater}
_DEEPEST = 50
_SHOWN = 3
_STEPS_OF_ID = 20


class Node(NamedTuple):
    """A part of an expression."""

    kind: str
    """``concept``, ``*``, ``^``, a walk such as ``<<``, AND, OR, MINUS, ``:`` or ``:R``."""
    column: int
    text: str = ""
    """Id of a concept, value set or relation."""
    term: str = ""
    """Name of the concept or relation, where it is given."""
    parts: tuple[Node, ...] = ()


class Expression:
    """An expression that chooses concepts.

    >>> Expression("<< D003920 MINUS << D003922").select(kb).sum()  # doctest: +SKIP
    12
    """

    def __init__(self, text: str) -> None:
        """Read an expression.

        Args:
            text: The expression.

        Raises:
            ConfigError: It is none; the message has the column.
        """
        self.text = text
        self._tokens: list[tuple[str, str, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise self.error(at + 1, f"{text[at]!r} is not understood here")
            column = match.start() + len(match[0]) - len(match[0].lstrip()) + 1
            self._tokens.append((match.lastgroup, match[match.lastgroup], column))
            at = match.end()
        self._tokens.append(("end", "", end + 1))
        self._at = self._depth = 0
        self.tree = self._joined()
        if self._tokens[self._at][0] != "end":
            raise self._unexpected("AND, OR, MINUS or the end")

    def error(self, column: int, problem: str) -> ConfigError:
        """Return the error for a part of the expression.

        Args:
            column: Where it stands, from 1.
            problem: What is wrong.
        """
        return ConfigError(f"{shorten(self.text)!r}, column {column}: {problem}")

    # ---- reading

    def _unexpected(self, expected: str) -> ConfigError:
        kind, text, column = self._tokens[self._at]
        found = "it ends" if kind == "end" else f"found {text!r}"
        return self.error(column, f"{found}, expected {expected}")

    def _take(self, kind: str, *texts: str) -> str:
        """Return the next token and go on, if it is of a kind and one of some; else nothing."""
        found, text, _ = self._tokens[self._at]
        if found != kind or (texts and text.upper() not in texts):
            return ""
        self._at += 1
        return text

    def _joined(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._unexpected(f"at most {_DEEPEST} parentheses in each other")
        column = self._tokens[self._at][2]
        parts, join = [self._refined()], ""
        while word := self._take("id", *_JOINS).upper():
            if join and word != join:
                self._at -= 1
                raise self._unexpected(f"parentheses around what {join} joins")
            join = word
            parts.append(self._refined())
        self._depth -= 1
        return Node(join, column, parts=tuple(parts)) if join else parts[0]

    def _refined(self) -> Node:
        node = self._walk()
        more = self._take("mark", ":")
        while more:
            inverse = "R" if self._take("id", "R") else ""
            relation = self._named("the name of a relation")
            if not self._take("mark", "="):
                raise self._unexpected("=")
            node = relation._replace(kind=f":{inverse}", parts=(node, self._walk()))
            more = self._take("mark", ",")
        return node

    def _walk(self) -> Node:
        column = self._tokens[self._at][2]
        if walk := self._take("walk"):
            return Node(walk, column, parts=(self._focus(),))
        return self._focus()

    def _focus(self) -> Node:
        column = self._tokens[self._at][2]
        if self._take("mark", "("):
            node = self._joined()
            if not self._take("mark", ")"):
                raise self._unexpected("a closing parenthesis")
            return node
        if self._take("mark", "*"):
            return Node("*", column)
        if target := self._take("set"):
            return Node("^", column, target.strip('"'))
        return self._named("the id of a concept")

    def _named(self, expected: str) -> Node:
        column = self._tokens[self._at][2]
        text = self._take("quoted") or self._take("id")
        if not text or text in _JOINS:
            self._at -= bool(text)
            raise self._unexpected(expected)
        return Node("concept", column, text, self._take("term").strip("| "))

    # ---- evaluation

    def select(
        self,
        kb: KnowledgeBase,
        *,
        find_row: Callable[[str], int | None] | None = None,
        members_of: Callable[[str], Flags] | None = None,
    ) -> Flags:
        """Mark the concepts of a knowledge base that the expression chooses.

        Args:
            kb: The knowledge base.
            find_row: Finds the row of an id; default: as the knowledge base does.
            members_of: Marks the members of a value set, by its file or URL.

        Raises:
            ConfigError: There is no such concept or relation.
        """
        return _Selector(self, kb, find_row or kb.find_row, members_of).mark(self.tree)


@dataclass(frozen=True)
class _Selector:
    """Marks the concepts of the parts of an expression."""

    expression: Expression
    kb: KnowledgeBase
    find_row: Callable[[str], int | None]
    members_of: Callable[[str], Flags] | None

    def mark(self, node: Node) -> Flags:
        kb = self.kb
        spend(1 + len(kb) // AT_ONCE)
        marked = np.zeros(len(kb), bool)
        if node.kind == "*":
            return ~marked
        if node.kind == "^":
            if self.members_of is None:
                raise self.expression.error(node.column, "^ is not supported here")
            return self.members_of(node.text)
        if node.kind in ("concept", "OR"):  # many ids are one array, not one each
            parts = node.parts or (node,)
            marked[[self._row(each) for each in parts if each.kind == "concept"]] = True
            for each in parts:
                if each.kind != "concept":
                    marked |= self.mark(each)
            return marked
        first, *rest = [self.mark(each) for each in node.parts]
        if node.kind in _JOINS:
            return reduce(_JOINS[node.kind], rest, first)
        if node.kind.startswith(":"):
            heads, tails = self._related(node)
            marked[heads[rest[0][tails]]] = True
            return marked & first
        return kb.hierarchy.related(
            np.flatnonzero(first),
            up=node.kind[0] == ">",
            own=node.kind[:2] in ("<<", ">>"),
            direct=node.kind.endswith("!"),
        )

    def _row(self, node: Node) -> int:
        """Return the row of a concept; its name, where it is given, must not be another's."""
        spend(_STEPS_OF_ID)
        kb, found = self.kb, self.find_row(node.text)
        named = kb.find(node.term) if node.term else []
        if found is not None and (
            not named or any(match.concept == kb.id_at(found) for match in named)
        ):
            return found
        named = named or kb.find(node.text)
        meant = "; ".join(f"{m.concept} |{m.concept_name}|" for m in named[:_SHOWN])
        if found is not None:
            problem = f"{node.text} is {kb.name_at(found)!r}, {node.term!r} is a name of {meant}"
        elif (retired := kb.replacement(node.text)) is not None:
            problem = str(retired)
        else:
            remedy = f"did you mean {meant}?" if meant else "look it up with `biograft kb search`"
            problem = f"no concept of {kb.folder} has the id {node.text!r}; {remedy}"
        raise self.expression.error(node.column, problem)

    def _related(self, node: Node) -> tuple[Rows, Rows]:
        """Return the heads and tails of all relations with a name, or with that of an id."""
        kb = self.kb
        wanted = {_plain(node.text), _plain(node.term)}
        if (row := self.find_row(node.text)) is not None:
            wanted.update(_plain(name.text) for name in kb.names_at(row))
        codes = [i for i, name in enumerate(kb.relation_names) if _plain(name) in wanted]
        if not codes:
            known = nearest(node.term or node.text, kb.relation_names)
            problem = f"no relation is called {node.text!r}; {known}"
            raise self.expression.error(node.column, problem)
        chosen = np.isin(kb.numbers("relations", "relation"), codes)
        spend(len(chosen) // AT_ONCE)
        heads, tails = (kb.numbers("relations", end)[chosen] for end in ("head", "tail"))
        return (tails, heads) if node.kind == ":R" else (heads, tails)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()

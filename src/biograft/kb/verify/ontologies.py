"""Ids and labels in OBO and Turtle, by their syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator

from biograft.kb.verify.pairs import ID, Pair, PairFinder, SourceText

_OBO_LINE = re.compile(r"^([\w-]+):[ \t]*(.*)$", re.MULTILINE)
_OBO_TEXTS = ("def", "comment", "synonym", "format-version", "date", "remark", "namespace")
_TURTLE_KEPT = {".": 0, ";": 1, ",": 2}
"""Parts of a statement that the next one repeats, by what stands between them."""
_TURTLE_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<prefix>@?[Pp][Rr][Ee][Ff][Ii][Xx]\s+(?P<name>[\w.-]*):\s*<(?P<space>[^>]*)>\s*\.?)
    |(?P<literal>\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<iri><[^>\s]*>)
    |(?P<language>@[\w-]+|\^\^)
    |(?P<pname>[\w.-]*:[\w%.-]*[\w%-]|[\w.-]*:)
    |(?P<word>a\b|true\b|false\b|[+-]?\d[\d.eE+-]*)
    |(?P<mark>[.;,\[\]()])""",
    re.VERBOSE,
)


def obo_pairs(source: SourceText, finder: PairFinder) -> Iterator[Pair]:
    """Yield the id of every stanza with its name, and every id with the name behind a ``!``.

    Args:
        source: The file.
        finder: What is looked for.
    """
    subject: Pair | None = None
    for match in _OBO_LINE.finditer(source.text):
        tag, value = match[1], match[2]
        at = match.start(2)
        if tag == "id":
            if subject is not None and finder.is_id(subject.id):
                yield subject
            subject = Pair(value.strip(), "", at, at + len(value.strip()), column="id")
        elif tag == "name" and subject is not None:
            end = at + len(value.rstrip())
            subject = subject._replace(label=value.strip(), label_start=at, label_end=end)
        elif tag not in _OBO_TEXTS:
            before, mark, label = value.partition(" ! ")
            found = [each for each in ID.finditer(before) if finder.is_id(each[0])]
            text = re.sub(r"\s*\{.*\}\s*$", "", label).strip()
            start = at + len(before) + len(mark) if text else -1
            for n, each in enumerate(found, 1):
                last = n == len(found)
                yield Pair(
                    each[0],
                    text if last else "",
                    at + each.start(),
                    at + each.end(),
                    start if last else -1,
                    start + len(text) if last and text else -1,
                    column=tag,
                )
    if subject is not None and finder.is_id(subject.id):
        yield subject


def turtle_pairs(source: SourceText, finder: PairFinder) -> Iterator[Pair]:
    """Yield every id, the subjects of labels with them.

    Args:
        source: The file.
        finder: What is looked for.
    """
    prefixes: dict[str, str] = {}
    statement: list[tuple[str, str, int, int]] = []
    for match in _TURTLE_TOKEN.finditer(source.text):
        kind, token = str(match.lastgroup), match[0]
        if kind == "comment":
            continue
        if kind == "prefix":
            prefixes[match["name"]] = match["space"]
        elif kind == "mark":
            if token in _TURTLE_KEPT:
                yield from filter(lambda pair: finder.is_id(pair.id), _label_of(statement))
                statement = statement[: _TURTLE_KEPT[token]]
        elif kind == "iri":
            statement.append(("id", finder.id_of(token[1:-1]), match.start() + 1, match.end() - 1))
        elif kind == "pname":
            name, _, local = token.partition(":")
            whole = prefixes.get(name)
            text = token if whole is None else finder.id_of(whole + local)
            statement.append(("id", text, match.start(), match.end()))
        elif kind == "literal":
            size = 3 if token.startswith(('"""', "'''")) else 1
            statement.append(("text", token[size:-size], match.start() + size, match.end() - size))
        if statement and len(statement) > 1 and statement[-1][0] == "id":
            _, text, start, end = statement[-1]
            if finder.is_id(text) and kind in ("iri", "pname"):
                yield Pair(text, "", start, end)


def _label_of(statement: list[tuple[str, str, int, int]]) -> Iterator[Pair]:
    """Yield the subject of a statement with its label, if it states one."""
    if len(statement) < 3 or statement[2][0] != "text":
        return
    (_, subject, start, end), (_, predicate, *_), (_, label, first, last) = statement[:3]
    if re.split(r"[/#:]", predicate)[-1] in ("label", "prefLabel"):
        yield Pair(subject, label.replace('\\"', '"'), start, end, first, last)

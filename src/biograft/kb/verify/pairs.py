"""Ids with their labels in files of any kind, each with its line and column.

Tables pair columns by their names (``subject_id`` with ``subject_label``), JSON and YAML the keys
of an object (``id`` with ``label``, a FHIR ``code`` with its ``display``), OBO and Turtle by their
syntax; in any other text an id stands beside its label: ``[Seizure](HP:0001250)``,
``HP:0001250 (Seizure)``, ``HP:0001250 ! Seizure``, or the next cell of a table in Markdown.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from biograft.errors import FormatError, nearest
from biograft.kb.names import whole_number
from biograft.kb.sources.files import HEAD_BYTES, decode, open_bytes, shown_encoding
from biograft.kb.sources.log import short_id
from biograft.kb.sources.table import csv_rows, find_delimiter, unquoted
from biograft.kb.sources.workbooks import is_workbook, read_sheet, sheet_names
from biograft.kb.vocabularies import vocabulary_of_system

_SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".hpoa"), "table"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson", ".jsonld"), "json"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    ".obo": "obo",
    **dict.fromkeys((".ttl", ".nt"), "turtle"),
}
Span = tuple[int, int]
"""Offsets of a part of a text."""


class Pair(NamedTuple):
    """An id as a file has it, its label, and where both stand."""

    id: str
    label: str = ""
    start: int = -1
    """Offset of the id in the text; -1: of a workbook, which has rows and columns instead."""
    end: int = -1
    label_start: int = -1
    """Offset of the label in the text; -1: none that can be rewritten."""
    label_end: int = -1
    row: int = 0
    """Row of a workbook."""
    column: str = ""
    """Column of a table, or key."""
    exact: bool = True
    """Whether the label is this text as a whole; otherwise it may begin later (prose)."""
    locate: Callable[[Pair], Pair] | None = None
    """Finds where a pair of a table stands, which is asked for only where something is wrong."""

    def located(self) -> Pair:
        """Return the pair with the offsets of its id and its label."""
        return self if self.locate is None else self.locate(self)


@dataclass
class SourceText:
    """A file that is verified: its text and its format."""

    path: Path
    format: str
    text: str = ""
    sheets: tuple[str, ...] = ()
    """Sheets of a workbook, which has no text."""

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    @cached_property
    def delimiter(self) -> str:
        """The delimiter of a table."""
        lines = self.text.split("\n")
        first = next((line for line in lines if line and line[0] != "#"), lines[0])
        return find_delimiter(first)

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset, from 1.

        Args:
            offset: Position in the text.
        """
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    @classmethod
    def open(cls, path: Path, form: str = "", encoding: str = "utf-8") -> SourceText:
        """Read a file, and recognise its format by its name, else by its content.

        Args:
            path: The file, which may be compressed.
            form: One of ``FORMATS``; default: recognised.
            encoding: Encoding of the text; GB18030 is recognised.
        """
        if is_workbook(path):
            return cls(path, "table", sheets=tuple(sheet_names(path)))
        with open_bytes(path) as file:
            data = file.read()
        text = decode(data, path, 1, shown_encoding(data[:HEAD_BYTES], encoding))
        return cls(path, form or _recognise(path, text), text)


def _recognise(path: Path, text: str) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if suffixes and (form := _SUFFIXES.get(suffixes[-1])):
        return form
    start = text.lstrip()[:2000]
    if start.startswith(("{", "[{", "[\n")):
        return "json"
    if re.match(r"(?:format-version:|\[Term\])", start):
        return "obo"
    return "turtle" if start.startswith(("@prefix", "PREFIX")) else "text"


@dataclass
class PairFinder:
    """Finds the pairs of files, given which ids are looked for."""

    holds: Callable[[str], bool]
    """Whether an id is of a vocabulary that is looked for."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns or keys of the ``id`` and the ``label``; default: found by their names."""

    def find(self, source: SourceText) -> Iterator[Pair]:
        """Yield the pairs of a file, in its order.

        Args:
            source: The file.

        Raises:
            FormatError: The file is not what its format says, or has no such column.
        """
        readers = {
            "json": self._json,
            "yaml": self._yaml,
            "obo": self._obo,
            "turtle": self._turtle,
            "text": self._prose,
        }
        if source.sheets:
            for sheet in source.sheets:
                rows = ((n, cells, None) for n, cells in read_sheet(source.path, sheet))
                yield from self._table(rows, source, sheet)
        elif source.format == "table":
            yield from self._table(_rows(source), source)
        else:
            yield from readers[source.format](source)

    @cached_property
    def _is_id(self) -> Callable[[str], bool]:
        """Whether a text is an id that is looked for; the same ids stand in many rows."""
        return lru_cache(_KEPT)(
            lambda text: bool(_ID.fullmatch(text)) and self.holds(short_id(text))
        )

    # ---- tables

    def _table(self, rows: Iterator[Row], source: SourceText, sheet: str = "") -> Iterator[Pair]:
        first = next(rows, None)
        if first is None:
            return
        header = [cell.strip().lstrip("#").strip() for cell in first[1]]
        chosen = self._chosen_columns(header, source)
        if not chosen:  # the cells show which columns hold ids; there may be no header
            sample = [first, *islice(rows, _SAMPLED)]
            chosen, rows = self._columns_of_ids(sample), chain(sample, rows)
        for row in rows:
            yield from self._row(row, chosen, header, sheet)

    def _chosen_columns(
        self, header: list[str], source: SourceText
    ) -> list[tuple[int, int | None]]:
        """Return the columns that were declared, or that the header pairs."""
        if not self.columns:
            pairs = pair_keys(tuple(header))
            labels = [name for name in header if _LABEL_KEY.fullmatch(name)]
            if len(pairs) == len(labels) == 1:  # they belong together, whatever they are called
                pairs = ((pairs[0][0], labels[0]),)
            return [
                (header.index(one), header.index(label) if label else None) for one, label in pairs
            ]
        found = {}
        for role, name in self.columns.items():
            number = whole_number(name[1:]) if name.startswith("#") else None
            if number and number <= len(header):
                found[role] = number - 1
            elif name in header:
                found[role] = header.index(name)
            else:
                raise FormatError(
                    f"column {name!r} is missing",
                    path=source.path,
                    line=1,
                    text="\t".join(header),
                    remedy=nearest(name, header),
                )
        return [(found["id"], found.get("label"))]

    def _columns_of_ids(self, rows: list[Row]) -> list[tuple[int, int | None]]:
        """Return the columns whose cells are ids, each with the column of labels beside it."""
        width = max(len(cells) for _, cells, _ in rows)
        ids = []
        for k in range(width):
            cells = [row[1][k].strip() for row in rows if k < len(row[1]) and row[1][k].strip()]
            n = sum(all(map(self._is_id, _split(cell))) for cell in cells)
            if cells and 2 * n > len(cells):
                ids.append(k)
        chosen: list[tuple[int, int | None]] = []
        for k in ids:
            beside = [
                n
                for n in (k + 1, k - 1)
                if 0 <= n < width and n not in ids and _are_labels(rows, n)
            ]
            chosen.append((k, next(iter(beside), None)))
        return chosen

    def _row(
        self,
        row: Row,
        chosen: list[tuple[int, int | None]],
        header: list[str],
        sheet: str,
    ) -> Iterator[Pair]:
        number, cells, span = row
        for k, other in chosen:
            cell = cells[k].strip() if k < len(cells) else ""
            if not cell:
                continue
            label = cells[other].strip() if other is not None and other < len(cells) else ""
            ids, labels = _split(cell), _split(label)
            if len(ids) == 1 or len(labels) != len(ids):
                labels = [label if len(ids) == 1 else ""] * len(ids)
            column = (header[k] if k < len(header) else "") or f"#{k + 1}"
            if sheet:
                column = f"{sheet}!{_letters(k)}{number}"
            for n, (one, text) in enumerate(zip(ids, labels, strict=True)):
                if self._is_id(one):
                    place = span and partial(_in_row, span, k, other, ids, n)
                    yield Pair(one, text, row=number, column=column, locate=place)

    # ---- JSON and YAML

    def _json(self, source: SourceText) -> Iterator[Pair]:
        """Walk the tokens of a text of any number of JSON values; texts keep their places."""
        stack: list[_Object] = []
        key: str | None = None
        for match in _JSON_TOKEN.finditer(source.text):
            token = match[0]
            first = token[0]
            if first == '"':
                holder = stack[-1] if stack else None
                if holder is not None and holder.is_list is False and key is None:
                    key = _unescaped(token)
                    continue
                if holder is not None:
                    text = _unescaped(token)
                    holder.texts.append(
                        (key or holder.name, text, match.start() + 1, match.end() - 1)
                    )
                key = None
            elif first in "{[":
                name = key or (stack[-1].name if stack else "")
                path = (
                    f"{stack[-1].path}.{key}"
                    if stack and key
                    else (stack[-1].path if stack else "")
                )
                stack.append(_Object(first == "[", name, path))
                key = None
            elif first in "}]":
                if not stack or stack[-1].is_list != (first == "]"):
                    line, _ = source.place(match.start())
                    raise FormatError(
                        "is not JSON", path=source.path, line=line, remedy="check the brackets"
                    )
                yield from self._of_object(stack.pop())
                key = None
            elif first not in ",:":
                key = None
        if stack:
            raise FormatError(
                "the JSON is cut short", path=source.path, remedy="fetch the file again"
            )

    def _of_object(self, value: _Object) -> Iterator[Pair]:
        """Yield the pairs of the texts of an object, then ids without a label."""
        if value.is_list:
            for name, text, start, end in value.texts:
                if self._is_id(text):
                    yield Pair(text, "", start, end, column=name)
            return
        texts = {name: (text, start, end) for name, text, start, end in value.texts}
        paired: set[str] = set()
        for one, other in self._paired_keys(value, texts):
            text, start, end = texts[one]
            label = texts.get(other, ("", -1, -1)) if other else ("", -1, -1)
            system = texts.get("system")
            if one == "code" and system and (known := vocabulary_of_system(system[0])):
                text = text if ":" in text else f"{known}:{text}"
            paired.add(one)
            if self._is_id(text):
                yield Pair(text, label[0].strip(), start, end, *label[1:], column=one)
        for name, (text, start, end) in texts.items():
            if name not in paired and ":" in text and self._is_id(text):
                yield Pair(text, "", start, end, column=name)

    def _paired_keys(self, value: _Object, texts: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        if not self.columns:
            return pair_keys(tuple(texts))
        wanted = {role: path.rpartition(".") for role, path in self.columns.items()}
        above, _, name = wanted["id"]
        inside = not above or f"{value.path}.".endswith(f".{above}.") or value.path == above
        if not inside or name not in texts:
            return ()
        return ((name, wanted["label"][2] if "label" in wanted else ""),)

    def _yaml(self, source: SourceText) -> Iterator[Pair]:
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            for document in yaml.compose_all(source.text, loader):
                yield from self._node(document, "", "")
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            raise FormatError(
                f"is not YAML ({getattr(error, 'problem', None) or error})",
                path=source.path,
                line=mark.line + 1 if mark else None,
                remedy="check the indentation and the quotes",
            ) from error

    def _node(self, node: Any, name: str, path: str) -> Iterator[Pair]:
        value = _Object(node.id == "sequence", name, path)
        below: list[tuple[Any, str]] = []
        if node.id == "scalar":
            value.is_list = True
            value.texts.append(_scalar(name, node))
        elif node.id == "sequence":
            for each in node.value:
                if each.id == "scalar":
                    value.texts.append(_scalar(name, each))
                else:
                    below.append((each, name))
        else:
            for key, each in node.value:
                if each.id == "scalar":
                    value.texts.append(_scalar(str(key.value), each))
                else:
                    below.append((each, str(key.value)))
        yield from self._of_object(value)
        for each, key in below:
            inner = f"{path}.{key}" if node.id == "mapping" else path
            yield from self._node(each, key, inner)

    # ---- OBO and Turtle

    def _obo(self, source: SourceText) -> Iterator[Pair]:
        """Yield the id of every stanza with its name, and every id with the name behind a ``!``."""
        subject: Pair | None = None
        for match in _OBO_LINE.finditer(source.text):
            tag, value = match[1], match[2]
            at = match.start(2)
            if tag == "id":
                if subject is not None and self._is_id(subject.id):
                    yield subject
                subject = Pair(value.strip(), "", at, at + len(value.strip()), column="id")
            elif tag == "name" and subject is not None:
                end = at + len(value.rstrip())
                subject = subject._replace(label=value.strip(), label_start=at, label_end=end)
            elif tag not in _OBO_TEXTS:
                before, mark, label = value.partition(" ! ")
                found = [each for each in _ID.finditer(before) if self._is_id(each[0])]
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
        if subject is not None and self._is_id(subject.id):
            yield subject

    def _turtle(self, source: SourceText) -> Iterator[Pair]:
        """Yield every id, the subjects of labels with them."""
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
                    yield from filter(lambda pair: self._is_id(pair.id), _label_of(statement))
                    statement = statement[: _TURTLE_KEPT[token]]
            elif kind == "iri":
                statement.append(("id", short_id(token[1:-1]), match.start() + 1, match.end() - 1))
            elif kind == "pname":
                name, _, local = token.partition(":")
                whole = prefixes.get(name)
                text = token if whole is None else short_id(whole + local)
                statement.append(("id", text, match.start(), match.end()))
            elif kind == "literal":
                size = 3 if token.startswith(('"""', "'''")) else 1
                statement.append(
                    ("text", token[size:-size], match.start() + size, match.end() - size)
                )
            if statement and len(statement) > 1 and statement[-1][0] == "id":
                _, text, start, end = statement[-1]
                if self._is_id(text) and kind in ("iri", "pname"):
                    yield Pair(text, "", start, end)

    # ---- any other text

    def _prose(self, source: SourceText) -> Iterator[Pair]:
        """Yield every id with the label beside it."""
        for line in _LINE.finditer(source.text):
            text, at = line[0], line.start()
            ids = [each for each in _ID_IN_TEXT.finditer(text) if self._is_id(each[0])]
            for n, each in enumerate(ids):
                until = ids[n + 1].start() if n + 1 < len(ids) else len(text)
                since = ids[n - 1].end() if n else 0
                pair = Pair(each[0], "", at + each.start(), at + each.end())
                found = _label_beside(text, each.start(), each.end(), since, until)
                if found is not None:
                    start, end, exact = found
                    label = text[start:end]
                    pair = pair._replace(
                        label=label,
                        label_start=at + start if exact else -1,
                        label_end=at + end if exact else -1,
                        exact=exact,
                    )
                yield pair


Row = tuple[int, list[str], Callable[[int], Span] | None]
"""The number of a row, its cells, and where a cell stands in the text, unless in a workbook."""
_KEPT = 1 << 17
"""Texts of which it is kept whether they are ids."""
_SAMPLED = 100
"""Rows by which columns of ids are found where the header does not say which they are."""
_LABELS = 0.5
_ID = re.compile(r"(?:https?://[^\s<>\"]+|[A-Za-z][\w.-]*:[\w.-]*[\w]|[A-Z]{0,3}\d[\w.-]*)")
"""A CURIE, an IRI, or a bare id."""
_ID_IN_TEXT = re.compile(
    r"https?://[^\s<>\"')\]|]+[\w]|(?<![\w:/.-])[A-Za-z][\w.]*:[A-Za-z_]{0,4}\d[\w.-]*\w"
    r"|(?<![\w:/.-])(?:[CDQ]\d{6,9})(?!\w)"
)
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_OBO_LINE = re.compile(r"^([\w-]+):[ \t]*(.*)$", re.MULTILINE)
_OBO_TEXTS = ("def", "comment", "synonym", "format-version", "date", "remark", "namespace")
_LINE = re.compile(r"[^\n]+")
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


_ID_KEY = re.compile(
    r"(.*?)[_.\s-]*(?:ids?|codes?|curies?|identifiers?|iris?|@id|编码|代码)$", re.IGNORECASE
)
_LABEL_KEY = re.compile(
    r"(.*?)[_.\s-]*(?:labels?|names?|displays?|terms?|titles?|preflabel|的?名称)$", re.IGNORECASE
)
_STEMS = ("", "concept", "term", "class", "entity", "node")
"""Stems under which an id and a label belong together whatever the other one is called."""


@cache
def pair_keys(keys: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Pair the keys of ids with those of labels, by what stands before ``id`` and ``label``.

    Args:
        keys: Names of columns, or keys of an object.

    >>> pair_keys(("subject_id", "subject_label", "object_id", "comment"))
    (('subject_id', 'subject_label'), ('object_id', ''))
    >>> pair_keys(("id", "name", "description"))
    (('id', 'name'),)
    """
    labels: dict[str, str] = {}
    for key in keys:
        if (match := _LABEL_KEY.fullmatch(key)) and not _ID_KEY.fullmatch(key):
            labels.setdefault(match[1].lower(), key)
    pairs = []
    for key in keys:
        if match := _ID_KEY.fullmatch(key):
            stem = match[1].lower()
            label = labels.get(stem, "")
            if not label and stem in _STEMS:
                label = next((labels[other] for other in _STEMS if other in labels), "")
            pairs.append((key, label))
    return tuple(pairs)


def _rows(source: SourceText) -> Iterator[Row]:
    """Split a text into rows; a quoted cell may hold line ends."""
    delimiter = source.delimiter
    lines, starts = source.text.split("\n"), [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    skipped = next((n for n, line in enumerate(lines) if line.strip() and line[0] != "#"), 0)
    if not any(lines[skipped:]):
        return
    quoted = delimiter != "\t"
    rows = csv_rows(
        (line.removesuffix("\r") for line in lines[skipped:]),
        source.path,
        skipped + 1,
        delimiter,
        quoted=quoted,
    )
    for number, cells in rows:
        if not any(cells):
            continue
        start, line = starts[number - 1], lines[number - 1].removesuffix("\r")

        whole = cells if quoted else [unquoted(cell) for cell in cells]
        yield number, whole, partial(_cell_span, line, delimiter, start)


def _in_row(
    span: Callable[[int], Span], k: int, other: int | None, ids: list[str], n: int, pair: Pair
) -> Pair:
    """Find where a pair of a row stands; labels of cells with several ids are not looked for."""
    start, end = span(k)
    if len(ids) > 1 and start >= 0:
        start += sum(len(each) + 1 for each in ids[:n])
        end = start + len(pair.id)
    label = span(other) if other is not None and len(ids) == 1 else (-1, -1)
    return pair._replace(
        start=start, end=end, label_start=label[0], label_end=label[1], locate=None
    )


def _cell_span(line: str, delimiter: str, start: int, k: int) -> Span:
    """Return where a cell of a line stands in the text, without blanks and quotes around it."""
    position = n = 0
    while n < k and position < len(line):
        if line[position] == '"' and delimiter != "\t":
            position = _behind_quotes(line, position)
        position = line.find(delimiter, position) + 1
        if not position:
            return -1, -1
        n += 1
    end = _behind_quotes(line, position) if line[position : position + 1] == '"' else position
    end = line.find(delimiter, end)
    cell = line[position : end if end >= 0 else len(line)]
    inner = cell.strip()
    at = start + position + cell.index(inner) if inner else start + position
    if len(inner) > 1 and inner[0] == inner[-1] == '"':
        return at + 1, at + len(inner) - 1
    return at, at + len(inner)


def _behind_quotes(line: str, position: int) -> int:
    """Return the position behind the quoted cell that begins at a position."""
    while True:
        position = line.find('"', position + 1)
        if position < 0:
            return len(line)
        if line[position + 1 : position + 2] != '"':
            return position + 1
        position += 1


def _split(cell: str) -> list[str]:
    """Split a cell of several ids or labels."""
    if "|" in cell or ";" in cell:
        return [part.strip() for part in cell.split("|" if "|" in cell else ";")]
    return [cell]


def _are_labels(rows: list[Row], k: int) -> bool:
    cells = [row[1][k] for row in rows if k < len(row[1]) and row[1][k].strip()]
    words = sum(
        any(map(str.isalpha, cell)) and not cell.replace(".", "").isdigit() for cell in cells
    )
    return bool(cells) and words > _LABELS * len(rows)


def _letters(k: int) -> str:
    """Return the letters of a column of a workbook."""
    letters = ""
    k += 1
    while k:
        k, rest = divmod(k - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


@dataclass(slots=True)
class _Object:
    """An object or a list of JSON or YAML: its texts, and the key under which it stands."""

    is_list: bool
    name: str
    path: str
    texts: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Key, text, and where it stands."""


def _unescaped(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token))
    except ValueError:
        return token[1:-1]


def _scalar(name: str, node: Any) -> tuple[str, str, int, int]:
    start, end = node.start_mark.index, node.end_mark.index
    if node.style in ("'", '"'):
        start, end = start + 1, end - 1
    elif node.style in ("|", ">"):  # a block, which is not rewritten
        end = start
    return name, str(node.value), start, end


def _label_of(statement: list[tuple[str, str, int, int]]) -> Iterator[Pair]:
    """Yield the subject of a statement with its label, if it states one."""
    if len(statement) < 3 or statement[2][0] != "text":
        return
    (_, subject, start, end), (_, predicate, *_), (_, label, first, last) = statement[:3]
    if re.split(r"[/#:]", predicate)[-1] in ("label", "prefLabel"):
        yield Pair(subject, label.replace('\\"', '"'), start, end, first, last)


_BESIDE_AFTER = re.compile(
    r"""\s*(?:\]\([^)]*\))?\s*(?:
        \(\s*(?P<round>[^()]*(?:\([^()]*\)[^()]*)*)\)
        |["'“](?P<quoted>[^"'”]+)["'”]
        |!\s*(?P<mark>[^\n{]+)
        |\|\s*(?P<cell>[^|]+?)\s*(?=\||$)
    )""",
    re.VERBOSE,
)
_LINK = re.compile(r"\[([^\[\]]+)\]\(\s*[^()\s]*$")
_BEFORE = re.compile(r"(?P<label>[^|\n;:!?。；：]*?)\s*(?:[(\[<（【]\s*)$")
_CELL_BEFORE = re.compile(r"\|\s*(?P<label>[^|]*?)\s*\|\s*$")
_LOOSE = re.compile(r"\s*(?:[-–—:=]\s+)?(?P<loose>[A-Za-z\u3400-\u9fff][^\n|;()\[\]<>]*)")


def _label_beside(
    text: str, start: int, end: int, since: int, until: int
) -> tuple[int, int, bool] | None:
    """Return where the label of an id in a line stands, and whether it is exactly this.

    Args:
        text: The line.
        start: Where the id begins.
        end: Where it ends.
        since: Where the id before it ends.
        until: Where the next id begins.
    """
    before = text[since:start]
    if link := _LINK.search(before):
        return since + link.start(1), since + link.end(1), True
    tail = text[end:until]
    if (found := _BESIDE_AFTER.match(tail)) and found.lastgroup:
        label = found[found.lastgroup]
        at = end + found.start(found.lastgroup)
        if any(map(str.isalpha, label)):
            return at, at + len(label.rstrip()), True
    if (cell := _CELL_BEFORE.search(before)) and any(map(str.isalpha, cell["label"])):
        return since + cell.start("label"), since + cell.end("label"), True
    if (found := _BEFORE.search(before)) and found["label"].strip():
        lead = len(found["label"]) - len(found["label"].lstrip(" -*•,"))
        return since + found.start("label") + lead, since + found.end("label"), False
    return None

"""Gold standard readers: BioSyn, PubTator, AskAPatient, XL-BEL, COMETA, Babelon and others."""

from __future__ import annotations

import csv
import re
import tarfile
from collections.abc import Iterator
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from biograft.errors import EncodingError, FormatError, InputError
from biograft.evaluation.gold import GoldConfig, LinkQuery, gold_ids, queries_of, read_annotated
from biograft.kb.names import whole_number
from biograft.kb.sources import babelon
from biograft.kb.sources.files import (
    EXPANSION,
    MAX_LINE_BYTES,
    decode,
    is_empty,
    max_expansion,
    max_value,
    number_lines,
    open_tar,
    raise_limit,
    read_lines,
    too_large,
)
from biograft.kb.sources.format import SourceConfig
from biograft.kb.sources.json_files import decode_json, read_objects
from biograft.kb.sources.log import ReadLog
from biograft.metrics.linking import split_composite
from biograft.text.documents import Document, Mention
from biograft.text.formats.pubtator import read_pubtator


def read_aap(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the lines.

    Args:
        path: File of lines ``id, name, phrase``, with tabs between.
        config: Settings of reading; unused.
        log: Counts lines read, and rejected by reason.
    """
    for number, line in _aap_lines(Path(path)):
        if not line.strip():
            continue
        log.read()
        fields = line.split("\t")
        if len(fields) != 3 or not fields[2].strip():
            log.reject("not of the form id, name, phrase (tabs between)", number, line)
            continue
        yield LinkQuery(fields[2].strip(), frozenset(gold_ids([fields[0]])))


def _aap_lines(path: Path) -> list[tuple[int, str]]:
    try:
        return list(read_lines(path))
    except EncodingError:
        return list(read_lines(path, "cp1252"))


SUFFIXES = (".concept", ".txt")
IN_TAR = "::"
NumberedLines = Iterator[tuple[Path, int, str]]


def read_biosyn(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries file by file, in the order of the files' names.

    Args:
        path: File of lines ``doc||start|end||type||mention||id``, or a folder of such files.
        config: Settings of reading: how ids that are joined count.
        log: Counts lines read, and rejected by reason.
    """
    for file, number, line in _biosyn_lines(path):
        if not line.strip():
            continue
        log.read()
        fields = line.split("||")
        if len(fields) < 5 or not fields[3].strip():
            log.reject("not of the form doc||start|end||type||mention||id", number, line, path=file)
            continue
        # a mention may contain the separator; the first three fields and the last may not
        yield _query(fields, "||".join(fields[3:-1]), config)


def _query(fields: list[str], mention: str, config: GoldConfig) -> LinkQuery:
    document, span, kind, ids_field = fields[0].strip(), fields[1], fields[2].strip(), fields[-1]
    start, _, end = span.partition("|")
    split = config.split_composites
    ids = gold_ids(split_composite(ids_field) if split else ids_field.split("|"))
    return LinkQuery(
        mention,
        frozenset(ids),
        parts=split_composite(mention) if split else (mention,),
        needed=tuple(frozenset({i}) for i in ids),
        document=document,
        start=whole_number(start),
        end=whole_number(end),
        type=kind,
    )


def _biosyn_lines(path: str) -> NumberedLines:
    archive, marked, folder = path.partition(IN_TAR)
    if marked:
        yield from _lines_of_tar(Path(archive), folder.strip("/"))
        return
    path_in_tar = Path(path)
    files = [path_in_tar]
    if path_in_tar.is_dir():
        files = sorted(file for file in path_in_tar.iterdir() if file.suffix in SUFFIXES)
        if not files:
            raise InputError(
                "has no *.concept file", path=path_in_tar, remedy="name the folder of them"
            )
    for file in files:
        if path_in_tar.is_dir() and is_empty(file):  # a document without mentions
            continue
        for number, line in read_lines(file):
            yield file, number, line


def _lines_of_tar(archive: Path, folder: str) -> NumberedLines:
    if not archive.is_file():
        raise InputError("does not exist", path=archive, remedy="check the path")
    with open_tar(archive) as tar:
        contents, folders = _contents(tar, folder, archive)
    if not contents:
        raise InputError(
            f"has no *.concept file in the folder {folder!r}",
            path=archive,
            remedy=f"its folders: {', '.join(sorted(folders))}",
        )
    for name in sorted(contents):
        path_in_tar = Path(f"{archive}{IN_TAR}{name}")
        text = decode(contents[name], path_in_tar, 1, "utf-8")
        yield from ((path_in_tar, *line) for line in number_lines(text))


def _contents(
    tar: tarfile.TarFile, folder: str, archive: Path
) -> tuple[dict[str, bytes], set[str]]:
    """Read the files of one folder in one pass, and collect the names of all folders."""
    contents, folders, remaining = {}, set(), max_expansion()
    for member in tar:
        name = PurePosixPath(member.name.removeprefix("./"))
        if not member.isfile() or name.suffix not in SUFFIXES:
            continue
        folders.add(str(name.parent))
        if str(name.parent) == (folder or "."):
            remaining -= member.size
            if member.size > max_value():
                raise too_large(f"{name} is a file", archive)
            if remaining < 0:
                raise InputError(
                    f"has files of over {max_expansion() >> 20} MiB in the folder {folder!r}",
                    path=archive,
                    remedy=raise_limit(EXPANSION),
                )
            file = tar.extractfile(member)
            contents[str(name)] = file.read() if file else b""
    return contents, folders


HEADER = ["原始词", "标准词"]
JOINED = "##"


def read_procedures(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the file.

    Args:
        path: File of lines ``term, standard names``, with a tab between, or JSON objects of
            ``text`` and ``normalized_result`` (CHIP-CDN of CBLUE).
        config: Settings of reading; unused.
        log: Counts lines read, and rejected by reason.
    """
    for number, fields, text in _terms(Path(path), log):
        names = tuple(name.strip() for name in fields[-1].split(JOINED) if name.strip())
        if len(fields) != 2 or not fields[0] or not names:
            log.reject("not a term with its standard names", number, text)
            continue
        yield LinkQuery(fields[0], gold_names=names)


def _terms(path: Path, log: ReadLog) -> Iterator[tuple[int, list[str], str]]:
    """Yield the line, the term with its standard names, and the text of each row."""
    if any(line.lstrip()[:1] in "[{" for _, line in islice(read_lines(path), 1)):
        for row in read_objects(path, log):
            keys = ("text", "normalized_result")
            yield row.line, [str(row.value.get(key, "")).strip() for key in keys], row.text
        return
    for number, line in read_lines(path):
        fields = [field.strip() for field in line.split("\t")]
        if line.strip() and fields != HEADER:
            log.read()
            yield number, fields, line


def read_pubtator_queries(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the documents; mentions unlike the text are rejected.

    Args:
        path: PubTator file.
        config: Settings of reading; unused.
        log: Counts records read, and rejected by reason.
    """
    for document in read_pubtator(Path(path), log):
        yield from queries_of(document)


def read_document_queries(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries of annotated documents, whose format is recognised by content.

    Args:
        path: File, or folder, of annotated documents.
        config: Settings of reading; unused.
        log: Counts records read, and rejected by reason.
    """
    for document in read_annotated(path, log):
        yield from queries_of(document)


STARTER = "starter"


def read_sample(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the documents.

    Args:
        path: File of the sample format, or ``starter``.
        config: Settings of reading; unused.
        log: Counts records read, and rejected by reason.
    """
    for document in read_sample_documents(path, log):
        yield from queries_of(document)


def read_sample_documents(path: str, log: ReadLog) -> Iterator[Document]:
    """Read the documents of a file, or of the sample that ships with biograft.

    Args:
        path: File of the sample format, or ``starter``.
        log: Counts records read, and rejected by reason.
    """
    if path != STARTER:
        yield from _read_file(Path(path), log)
        return
    with as_file(files("biograft") / "starter" / "sample.jsonl") as shipped:
        yield from _read_file(shipped, log)


def _read_file(path: Path, log: ReadLog) -> Iterator[Document]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        log.read()
        try:
            document = _document(decode_json(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(
                f"no document with mentions ({error!r})",
                path=path,
                line=number,
                text=line,
                remedy="expected an object with id, text and mentions (start, end, text, concepts)",
            ) from error
        for mention in document.mentions:
            start, end = mention.start, mention.end
            within = 0 <= start <= end <= len(document.text)
            if not within or document.text[start:end] != mention.text:
                raise FormatError(
                    f"the text from {start} to {end} is not the mention",
                    path=path,
                    line=number,
                    text=mention.text,
                )
        yield document


def _document(value: dict[str, Any]) -> Document:
    mentions = tuple(
        Mention(
            _offset(m["start"]),
            _offset(m["end"]),
            str(m["text"]),
            tuple(map(str, m["concepts"])),
            str(m.get("type", "")),
        )
        for m in value["mentions"]
    )
    return Document(str(value["id"]), str(value["text"]), mentions, str(value.get("language", "")))


def _offset(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"an offset is a whole number, found {value!r}")
    return value


TERM, EXAMPLE = "Term", "Example"
_ID_COLUMNS = {"general": "General SNOMED ID", "specific": "Specific SNOMED ID"}
_NO_ID = frozenset({"", "nan"})


def read_cometa(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries with the general concept of each term, in the order of the rows.

    Args:
        path: File of COMETA.
        config: Settings of reading; unused.
        log: Counts rows read, and rejected by reason.
    """
    yield from _read_cometa(Path(path), "general", log)


def read_cometa_specific(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries with the specific concept of each term, in the order of the rows.

    Args:
        path: File of COMETA.
        config: Settings of reading; unused.
        log: Counts rows read, and rejected by reason.
    """
    yield from _read_cometa(Path(path), "specific", log)


def _cometa_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read rows with the numbers of their last lines; quoted cells may span several lines."""
    csv.field_size_limit(MAX_LINE_BYTES)
    rows = csv.reader((f"{line}\n" for _, line in read_lines(path)), delimiter="\t")
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise FormatError(
            f"is no tab-separated table ({error})",
            path=path,
            line=rows.line_num,
            remedy="check its quotes: one may not be closed",
        ) from error


def _read_cometa(path: Path, ids: str, log: ReadLog) -> Iterator[LinkQuery]:
    columns = (TERM, EXAMPLE, _ID_COLUMNS[ids])
    rows = _cometa_rows(path)
    _, header = next(rows, (1, []))
    for column in columns:
        if column not in header:
            raise FormatError(
                f"column {column!r} is missing",
                path=path,
                line=1,
                text="\t".join(header),
                remedy=f"expected {', '.join(columns)}, separated by tabs",
            )
    indices = [header.index(column) for column in columns]
    for number, row in rows:
        if not any(map(str.strip, row)):
            continue
        log.read()
        term, example, concept = ([*row, *[""] * len(header)][index].strip() for index in indices)
        if len(row) != len(header) or not term:
            reason = (
                "without a term" if len(row) == len(header) else "not as many columns as the header"
            )
            log.reject(reason, number, "\t".join(row))
            continue
        yield _cometa_query(term, example, concept, number, log)


def _cometa_query(term: str, example: str, concept: str, line: int, log: ReadLog) -> LinkQuery:
    """Make a query of a row; the term is found in its example as a word, else anywhere."""
    escaped = re.escape(term)
    found = re.search(rf"(?<!\w){escaped}(?!\w)", example, re.IGNORECASE) or re.search(
        escaped, example, re.IGNORECASE
    )
    if found is None:
        log.doubt("the term is not in its example, and stands alone", line, f"{term}: {example}")
    return LinkQuery(
        term,
        frozenset(gold_ids([] if concept.lower() in _NO_ID else [concept])),
        document=f"line {line}",
        start=found.start() if found else None,
        end=found.end() if found else None,
        context=example,
    )


def read_babelon(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read translated labels and exact synonyms as queries, in the order of the rows.

    Args:
        path: Babelon file.
        config: Settings of reading; unused.
        log: Counts rows read, and rejected by reason.
    """
    for name in babelon.read_names(SourceConfig(path=Path(path)), log):
        yield LinkQuery(name.text, frozenset(gold_ids([name.concept])))


OPEN, CLOSE = "<tgt>", "</tgt>"


def read_xlbel(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the lines.

    Args:
        path: File of lines ``ids||mention||sentence``.
        config: Settings of reading; unused.
        log: Counts lines read, and rejected by reason.
    """
    for number, line in read_lines(Path(path)):
        if not line.strip():
            continue
        log.read()
        fields = line.split("||", 2)
        if len(fields) < 2 or not fields[1].strip():
            log.reject("not of the form ids||mention||sentence", number, line)
            continue
        ids, mention = frozenset(gold_ids(fields[0].split("|"))), fields[1].strip()
        context, span = _unmark(fields[2] if len(fields) > 2 else "")
        yield LinkQuery(
            mention,
            ids,
            needed=(ids,) if ids else (),
            document=f"line {number}",
            start=span[0] if span else None,
            end=span[1] if span else None,
            context=context,
        )


def _unmark(sentence: str) -> tuple[str, tuple[int, int] | None]:
    """Remove the marks from a sentence, and return the span of the mention."""
    before, opened, rest = sentence.partition(OPEN)
    inside, closed, after = rest.partition(CLOSE)
    if not (opened and closed):
        return sentence, None
    return before + inside + after, (len(before), len(before) + len(inside))

"""Every reader as a function of bytes: what it reads must be sound, and what it refuses explained.

``READERS`` names them. :func:`examine` gives an input to one; what comes back is a finding, such as
an exception that is none of ours, a message of several lines, or a record that cannot be written.
"""

from __future__ import annotations

import functools
import io
import re
import shutil
import sys
import time
import traceback
import unicodedata
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import reader_seeds as seeds
from snippets import SNIPPETS

from biograft.errors import BiograftError
from biograft.kb.records import RECORD_TYPES
from biograft.kb.sources import FORMATS, Block, ReadLog, SourceConfig, read_source
from biograft.text.documents import Document

MAX_SECONDS = 5.0
"""Of processor time, for an input of 64 KiB at most."""
MAX_MESSAGE = 2000
_MARKER = re.compile(rb"^=== ([\w.-]+) ===\n", re.MULTILINE)
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")


@dataclass(frozen=True)
class Reader:
    """A reader: it takes a folder to write to, and the bytes."""

    read: Callable[[Path, bytes], None]
    seeds: tuple[bytes, ...]


@dataclass(frozen=True)
class Finding:
    """What is wrong with the answer of a reader to an input."""

    kind: str
    """Name of the exception, ``message``, ``record`` or ``slow``."""
    place: str
    text: str


class UnsoundError(Exception):
    """A record or message is not what it must be."""


def examine(reader: Reader, folder: Path, data: bytes) -> Finding | None:
    """Give an input to a reader; return what is wrong, if anything."""
    start = time.process_time()
    try:
        reader.read(folder, data)
    except BiograftError as error:
        if problem := judge_message(str(error)):
            return Finding("message", _place(error), f"{problem}: {str(error)[:300]!r}")
    except (Exception, MemoryError) as error:
        return Finding(type(error).__name__, _place(error), str(error)[:300])
    seconds = time.process_time() - start
    return Finding("slow", "", f"{seconds:.1f} s") if seconds > MAX_SECONDS else None


def judge_message(message: str) -> str:
    """Say why a message is not one line of plain characters, if it is not."""
    if len(message) > MAX_MESSAGE:
        return f"a message of {len(message)} characters"
    for char in message:
        if unicodedata.category(char) in _UNPRINTABLE:
            return f"a message with the character {char!r}"
    return ""


def _place(error: BaseException) -> str:
    """Return the last line of biograft that an exception passed through."""
    frames = [
        f"{Path(frame.filename).stem}:{frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "biograft" in Path(frame.filename).parts
    ]
    return frames[-1] if frames else ""


# ---- records


def check_text(value: str) -> None:
    """A text can be written: it has no lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UnsoundError(f"a text that cannot be written: {value[:80]!r}") from error


def check_texts(value: object) -> None:
    """All texts in a record can be written."""
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, dict):
        check_texts(list(value.items()))
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            check_texts(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            check_texts(getattr(value, field.name))


def check_item(item: object) -> None:
    """A record of a source, or a block of them, has all fields, as text; its line is a number."""
    if isinstance(item, Block):
        import polars as pl

        columns = item.frame.drop("line")
        _expect(set(item.frame.columns) == set(item.record.__slots__), "columns", item)
        _expect(set(columns.dtypes) <= {pl.String()}, "types of columns", item)
        _expect(sum(columns.null_count().row(0)) == 0, "missing values", item)
        _expect(bool((item.frame["line"] >= 0).all()), "lines", item)
        return
    _expect(isinstance(item, RECORD_TYPES), "no record", item)
    for name in item.__slots__:
        value = getattr(item, name)
        if name == "line":
            _expect(type(value) is int and value >= 0, "line", item)
        else:
            _expect(isinstance(value, str), name, item)
            check_text(value)


def check_log(log: ReadLog) -> None:
    """Reasons are plain words, and examples can be written."""
    for remarks in (log.rejected, log.doubtful):
        for reason, entry in remarks.to_json().items():
            _expect(not judge_message(reason), "a reason", reason)
            for found in entry["examples"]:
                _expect(found["line"] >= 0, "the line of an example", found)
                check_text(found["text"])
    for reason in log.filtered:
        _expect(not judge_message(reason), "a reason", reason)


def check_document(document: Document) -> None:
    """Offsets slice to the mention, and passages lie in the text."""
    check_texts(document)
    text, n = document.text, len(document.text)
    for mention in document.mentions:
        spans = mention.spans
        _expect(all(0 <= start <= end <= n for start, end in spans), "offsets", mention)
        found = " ".join(text[start:end] for start, end in spans)
        _expect(found == mention.text, "the text at its offsets", mention)
        _expect((mention.start, mention.end) == (spans[0][0], spans[-1][1]), "bounds", mention)
    for passage in document.passages:
        _expect(0 <= passage.start <= passage.end <= n, "a passage", passage)


def _expect(holds: bool, what: str, where: object) -> None:
    if not holds:
        raise UnsoundError(f"{what} of {str(where)[:200]}")


# ---- inputs


def put(folder: Path, data: bytes, name: str = "input") -> Path:
    """Write one file."""
    path = folder / name
    path.write_bytes(data)
    return path


def put_files(folder: Path, data: bytes, known: Iterable[str]) -> Path:
    """Write the files of an input, those with known names, into a new folder; return it."""
    place = folder / "files"
    if place.exists():
        shutil.rmtree(place)
    place.mkdir()
    _, *parts = _MARKER.split(data)
    for name, content in zip(parts[::2], parts[1::2], strict=True):
        if name.decode() in known:
            (place / name.decode()).write_bytes(content)
    return place


def packed(template: Path, member: str, data: bytes) -> bytes:
    """Return a zip archive with one member replaced."""
    out = io.BytesIO()
    with zipfile.ZipFile(template) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, data if entry.filename == member else old.read(entry))
    return out.getvalue()


def _all_of(read: Iterable[Any], check: Callable[[Any], None], log: ReadLog) -> None:
    for item in read:
        check(item)
    check_log(log)


def _bytes(values: Iterable[str | bytes]) -> tuple[bytes, ...]:
    return tuple(value if isinstance(value, bytes) else value.encode() for value in values)


# ---- sources


def _source(form: str, **settings: Any) -> Callable[[Path, bytes], None]:
    def read(folder: Path, data: bytes) -> None:
        path = put(folder, data)
        log = ReadLog(path)
        config = SourceConfig(path=path, format=form, **settings)
        _all_of(read_source(config, log), check_item, log)

    return read


def _source_folder(form: str) -> Callable[[Path, bytes], None]:
    known = tuple(SNIPPETS[form])

    def read(folder: Path, data: bytes) -> None:
        path = put_files(folder, data, known)
        log = ReadLog(path)
        _all_of(read_source(SourceConfig(path=path, format=form), log), check_item, log)

    return read


def _sources() -> dict[str, Reader]:
    readers = {}
    for form in FORMATS:
        given = _bytes(SNIPPETS[form].values())
        if form in ("umls", "snomed"):
            files = {name: text.encode() for name, text in SNIPPETS[form].items()}
            readers[f"source-{form}"] = Reader(_source_folder(form), (seeds.bundle(dict(files)),))
        else:
            readers[f"source-{form}"] = Reader(_source(form), given)
    mapped = {"id": "id", "name": "name", "synonyms": "synonyms"}
    tables = ('id,name,synonyms\nD1,"f""lu",a|b\n', "name\tid\tsynonyms\nflu\tD1\t\n")
    readers["source-table-columns"] = Reader(_source("table", columns=mapped), _bytes(tables))
    shown = (form for form in FORMATS if form != "words")  # which no content shows
    of_all = tuple(d for form in shown for d in _bytes(SNIPPETS[form].values()))
    readers["source-recognised"] = Reader(_source(""), of_all)
    return readers


# ---- documents, tasks, gold, tables


def _document_format(form: str) -> Callable[[Path, bytes], None]:
    def read(folder: Path, data: bytes) -> None:
        from biograft.text.formats import read_documents

        path = put_files(folder, data, ("x.txt", "x.ann")) if form == "brat" else put(folder, data)
        log = ReadLog(path)
        _all_of(read_documents(path, form, log), check_document, log)

    return read


def _inputs(name: str, **settings: Any) -> Callable[[Path, bytes], None]:
    def read(folder: Path, data: bytes) -> None:
        from biograft.text.inputs import InputConfig, Inputs

        path = put(folder, data, name)
        inputs = Inputs([path], InputConfig(**settings), ReadLog(path))
        _all_of(inputs, check_document, inputs.log)

    return read


@functools.cache
def _docx_template(folder: Path) -> Path:
    path = folder / "template.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", seeds.DOCX_BODY)
    return path


@functools.cache
def _xlsx_template(folder: Path) -> Path:
    import openpyxl

    book, path = openpyxl.Workbook(), folder / "template.xlsx"
    for row in (["id", "term"], [1, "flu"], [2, "x"]):
        book.active.append(row)
    book.save(path)
    return path


def _docx_body(folder: Path, data: bytes) -> None:
    member = "word/document.xml"
    _inputs("input.docx")(folder, packed(_docx_template(folder), member, data))


def _table(name: str = "input", member: str = "") -> Callable[[Path, bytes], None]:
    def read(folder: Path, data: bytes) -> None:
        from biograft.text.tables import read_table

        if member:
            data = packed(_xlsx_template(folder), member, data)
        path = put(folder, data, name)
        log = ReadLog(path)
        _all_of(read_table(path, ["term", "id"], log), check_texts, log)

    return read


def _check_example(example: Any) -> None:
    from biograft.text.tasks import RelationExample

    check_texts(example)
    if isinstance(example, RelationExample):
        check_document(Document("", example.text, (example.first, example.second)))


def _task(form: str, **settings: Any) -> Callable[[Path, bytes], None]:
    def read(folder: Path, data: bytes) -> None:
        from biograft.text.tasks import TaskConfig, read_task

        config = TaskConfig(path=put(folder, data), format=form, **settings)
        task = read_task(config)
        _all_of(task.examples, _check_example, task.log)

    return read


def _gold(form: str) -> Callable[[Path, bytes], None]:
    def read(folder: Path, data: bytes) -> None:
        from biograft.evaluation import GoldConfig
        from biograft.evaluation.gold import read_gold

        path = put(folder, data)
        gold = read_gold(path, form, GoldConfig(keep_nil=True))
        _all_of(gold.queries, _check_query, gold.log)

    return read


def _check_query(query: Any) -> None:
    check_texts(query)
    if query.context and query.start is not None:
        _expect(0 <= query.start <= query.end <= len(query.context), "the span", query)


def _biosyn_tar(folder: Path, data: bytes) -> None:
    """The input is an archive of gold."""
    from biograft.evaluation.gold import read_gold

    path = put(folder, data, "gold.tar")
    read_gold(f"{path}::a", "biosyn")


def _ddi_zip(folder: Path, data: bytes) -> None:
    """The input is an archive of a corpus."""
    _document_format("ddi")(folder, data)
    _task("ddi")(folder, data)


def _tar_of(name: str, data: bytes) -> bytes:
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def _zip_of(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


def _corpora() -> dict[str, Reader]:
    readers: dict[str, Reader] = {}
    for form, given in seeds.DOCUMENTS.items():
        readers[f"document-{form}"] = Reader(_document_format(form), _bytes(given))
    inputs, html = _bytes(seeds.INPUTS), (seeds.HTML.encode(),)
    readers |= {
        "input-recognised": Reader(_inputs("input"), inputs),
        "input-lines": Reader(_inputs("input", lines=True), inputs),
        "input-table": Reader(_inputs("input", column="term"), _bytes(seeds.TABLES["csv"])),
        "input-html": Reader(_inputs("input.html"), html),
        "input-docx": Reader(_docx_body, (seeds.DOCX_BODY.encode(),)),
        "input-utf-16": Reader(
            _inputs("input", encoding="utf-16"), tuple(d.decode().encode("utf-16") for d in html)
        ),
        "table-xlsx-sheet": Reader(
            _table("input.xlsx", "xl/worksheets/sheet1.xml"), (seeds.XLSX_SHEET.encode(),)
        ),
    }
    for form, given in seeds.TABLES.items():
        readers[f"table-{form}"] = Reader(_table(), _bytes(given))
    for form, given in seeds.TASKS.items():
        readers[f"task-{form}"] = Reader(_task(form), _bytes(given))
    for kind, given in seeds.TASK_TABLES.items():
        columns = seeds.TASK_COLUMNS[kind]
        readers[f"task-table-{kind}"] = Reader(_task("table", columns=columns), _bytes(given))
    shown = ("cmedir", "hoc", "bioasq", "ddi", "chemprot", "cmeie", "gad", "jsonl")
    of_all = tuple(d for form in shown for d in _bytes(seeds.TASKS[form]))
    readers["task-recognised"] = Reader(_task(""), of_all)
    for form, given in seeds.GOLD.items():
        readers[f"gold-{form}"] = Reader(_gold(form), _bytes(given))
    gold, ddi = _bytes(seeds.GOLD["biosyn"])[0], _bytes(seeds.DOCUMENTS["ddi"])[0]
    readers["gold-biosyn-tar"] = Reader(_biosyn_tar, (_tar_of("a/1.concept", gold),))
    readers["document-ddi-zip"] = Reader(_ddi_zip, (_zip_of("Train/1.xml", ddi),))
    return readers


# ---- decisions, rules, recipes, and other text files


def _sssom(folder: Path, data: bytes) -> None:
    from biograft.mapping import read_earlier

    path = put(folder, data, "input.sssom.tsv")
    check_texts(read_earlier(path))


def _sssom_beside(folder: Path, data: bytes) -> None:
    """The input is the YAML file beside a table without metadata."""
    from biograft.mapping import MappingSet, read_decisions

    text = _bytes(seeds.SSSOM)[0]
    path = put(folder, b"\n".join(each for each in text.split(b"\n") if each[:1] != b"#"), "s.tsv")
    put(folder, data, "s.yml")
    check_texts(read_decisions(path))
    check_texts(MappingSet.read(path))


@functools.cache
def _review_template(folder: Path) -> Path:
    from biograft.mapping import ReviewStore, import_review

    with ReviewStore.open(folder / "template.db", create=True) as store:
        path = put(folder, _bytes(seeds.WORKSHEET)[0], "input.csv")
        import_review(store, path, reviewer="Ada")
    return folder / "template.db"


def _worksheet(folder: Path, data: bytes) -> None:
    from biograft.mapping import ReviewStore, import_review

    shutil.copyfile(_review_template(folder), folder / "review.db")
    with ReviewStore.open(folder / "review.db") as store:
        import_review(store, put(folder, data, "input.csv"), reviewer="Ada")


def _recipe(folder: Path, data: bytes) -> None:
    from biograft.recipe import Recipe

    check_texts(Recipe.load(put(folder, data, "input.toml")).to_json())


def _experiment(folder: Path, data: bytes) -> None:
    from biograft_lab.replication.experiment import Experiment

    Experiment.load(put(folder, data, "input.toml"))


def _rules(folder: Path, data: bytes) -> None:
    from biograft.clinical import RuleAssertions
    from biograft.clinical.rules import AssertionRules

    rules = AssertionRules.load(put(folder, data, "input.toml"))
    RuleAssertions(rules=rules).assert_status(
        "Mother had no flu, absent. 家族史：无发热。", [(14, 17)]
    )


def _lines_read(
    import_reader: Callable[[], Callable[[Path], Any]],
) -> Callable[[Path, bytes], None]:
    def read(folder: Path, data: bytes) -> None:
        found = import_reader()(put(folder, data))
        check_texts(list(found) if not isinstance(found, dict) else found)

    return read


def _text_files() -> dict[str, Callable[[], Callable[[Path], Any]]]:
    def wording() -> Any:
        from biograft_lab.probing.cloze_queries import read_wording

        return read_wording

    def stop_words() -> Any:
        from biograft.text.name_rules import read_stop_words

        return read_stop_words

    def cut_points() -> Any:
        from biograft.text.segmentation.segmenter import read_cut_points

        return read_cut_points

    def phrases() -> Any:
        from biograft.text.segmentation.phrases import read_phrases

        return read_phrases

    def words() -> Any:
        from biograft.text.segmentation.folder import read_words

        return read_words

    def pairs() -> Any:
        from biograft.training.pretraining.alignment import read_pair_file

        return lambda path: read_pair_file(path, len)[0].to_pylist()

    def entities() -> Any:
        from biograft.models.knowledge.entities import read_entities

        return lambda path: read_entities(path.rename(path.with_name("entities.jsonl")).parent, 1)

    def keys() -> Any:
        from biograft.serve.keys import KeyFile

        return lambda path: KeyFile.open(path).keys

    return {
        "wording": wording,
        "stop-words": stop_words,
        "cut-points": cut_points,
        "phrases": phrases,
        "words": words,
        "pairs": pairs,
        "knowledge-entities": entities,
        "api-keys": keys,
    }


def _assertions(folder: Path, data: bytes) -> None:
    from biograft.evaluation.assertion import evaluate_assertions, read_assertions

    documents = list(read_assertions(put(folder, data)))
    check_texts(documents)
    evaluate_assertions(documents)


def _recipe_seeds() -> tuple[bytes, ...]:
    from biograft.recipe import shipped_recipes

    return tuple(path.read_bytes() for path in shipped_recipes().values())


def _experiment_seeds() -> tuple[bytes, ...]:
    from biograft_lab.replication.experiment import shipped_experiments

    return tuple(path.read_bytes() for path in shipped_experiments().values())


def _settings() -> dict[str, Reader]:
    yml = b"".join(line[1:] for line in _bytes(seeds.SSSOM)[0].splitlines(True) if line[:1] == b"#")
    readers = {
        "decisions": Reader(_sssom, _bytes(seeds.SSSOM)),
        "decisions-metadata": Reader(_sssom_beside, (yml,)),
        "review-import": Reader(_worksheet, _bytes([*seeds.WORKSHEET, *seeds.SSSOM])),
        "recipe": Reader(_recipe, _recipe_seeds()),
        "experiment": Reader(_experiment, _experiment_seeds()),
        "rules": Reader(_rules, _bytes(seeds.RULES)),
        "gold-assertions": Reader(_assertions, _bytes(seeds.ASSERTIONS)),
    }
    for name, import_reader in _text_files().items():
        readers[name] = Reader(_lines_read(import_reader), _bytes(seeds.TEXT_FILES[name]))
    return readers


# ---- requests


def _llm_answer(folder: Path, data: bytes) -> None:
    from biograft.linking.choice import _number

    number = _number(data)
    _expect(number is None or type(number) is int, "no number", number)


def _request(folder: Path, data: bytes) -> None:
    """The input is the body of a request, or a query."""
    from fastapi.exceptions import RequestValidationError
    from pydantic import ValidationError

    from biograft.serve.schemas import LinkRequest, MentionsRequest, SearchQuery, describe

    for kind in (LinkRequest, MentionsRequest):
        try:
            kind.model_validate_json(data)
        except ValidationError as error:
            _judge_problems([{**each, "loc": ("body", *each["loc"])} for each in error.errors()])
    try:
        SearchQuery.read(dict(parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True)))
    except RequestValidationError as error:
        _judge_problems(error.errors())
    _expect(callable(describe), "no description", describe)


def _judge_problems(problems: Iterable[Any]) -> None:
    from biograft.serve.schemas import describe

    for each in problems:
        text = describe(each)
        _expect(not judge_message(text), "the message", text)


@functools.cache
def _terminology(folder: Path) -> Any:
    from biograft.kb import BuildConfig, KnowledgeBase, build_store
    from biograft.kb.search import NameSuggestions
    from biograft.serve.fhir import Terminology

    source = put(folder, b"id,name,parent\nD1,flu,\nD2,bird flu,D1\nD3,swine flu,D1\n", "kb.csv")
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), folder / "KB", overwrite=True)
    kb = KnowledgeBase.open(folder / "KB")
    return Terminology(kb, NameSuggestions(kb), {})


def _fhir(folder: Path, data: bytes) -> None:
    """The input is the body of a request: a resource, or a form."""
    from biograft.serve.fhir.parameters import Parameters, parse_json
    from biograft.serve.fhir.routes import _batch, _guarded

    service = _terminology(folder)
    form = "application/x-www-form-urlencoded" if b"=" in data[:40] else "application/fhir+json"

    def asked() -> Any:
        return Parameters.read([], form, data)

    operations: tuple[Callable[[], Any], ...] = (
        lambda: service.lookup(asked()),
        lambda: service.validate_code(asked()),
        lambda: service.validate_batch(asked(), service.validate_member),
        lambda: service.subsumes(asked()),
        lambda: service.expand(asked()),
        lambda: service.validate_member(asked()),
        lambda: service.translate(asked()),
        lambda: _batch(service, parse_json(data), "http://x/fhir", None),
    )
    for operation in operations:
        status, outcome = _guarded(operation)
        _expect(status < 500, "the status", outcome)


def _requests() -> dict[str, Reader]:
    return {
        "request": Reader(_request, _bytes(seeds.REQUESTS)),
        "request-fhir": Reader(_fhir, _bytes(seeds.FHIR)),
        "llm-answer": Reader(_llm_answer, _bytes(seeds.LLM_ANSWERS)),
    }


@functools.cache
def readers() -> dict[str, Reader]:
    """Return all readers by name."""
    from artefact_targets import artefacts

    return {**_sources(), **_corpora(), **_settings(), **_requests(), **artefacts()}


def prepare(limit_gib: float = 0) -> None:
    """Set what holds for a whole process: a limit of memory, as far as the system has one."""
    if limit_gib and sys.platform == "linux":
        import resource

        n_bytes = int(limit_gib * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))

"""Gold standards: linking queries and annotated documents, read by format."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from biograft.errors import ConfigError, FormatError, InputError
from biograft.kb.sources.files import is_empty
from biograft.kb.sources.log import ReadLog
from biograft.registry import Registry, load_object
from biograft.text.documents import Document
from biograft.text.formats import DOCUMENT_FORMATS, read_documents
from biograft.text.input_config import TABLE, TEXT, UTF_8, InputConfig
from biograft.text.inputs import Inputs, read_input
from biograft.text.tasks.rows import DOCUMENT, convert_rows, to_example

NIL_MARKS = frozenset({"", "-1", "cui-less", "-"})
"""Spellings of NIL in benchmark files, ignoring case."""


@dataclass(frozen=True, slots=True)
class LinkQuery:
    """A mention to be linked.

    ``gold`` holds all right ids; it is empty for NIL. ``needed`` groups them: a composite mention
    needs one concept of every group. If the gold consists of names, ``gold_names`` holds them until
    the store resolves them.
    """

    mention: str
    """Text of the mention."""
    gold: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()
    """Texts to look up: the mention, or its parts as the benchmark splits it."""
    needed: tuple[frozenset[str], ...] = ()
    gold_names: tuple[str, ...] = ()
    document: str = ""
    """Id of its document; empty if unknown."""
    start: int | None = None
    """Offset of its first character, in ``context`` if there is one; None if unknown."""
    end: int | None = None
    """Character offset behind its last character; None if unknown."""
    context: str = ""
    """The text that ``start`` and ``end`` refer to, if the format has it."""
    type: str = ""
    """Entity type by the gold standard; empty if it has none."""

    def __post_init__(self) -> None:
        if not self.parts:
            object.__setattr__(self, "parts", (self.mention,))
        if self.gold and not self.needed:
            object.__setattr__(self, "needed", tuple(frozenset({i}) for i in sorted(self.gold)))

    @property
    def is_nil(self) -> bool:
        """Whether the gold is NIL."""
        return not self.gold and not self.gold_names

    @property
    def is_composite(self) -> bool:
        """Whether the mention has several concepts."""
        return len(self.needed) > 1 or len(self.gold_names) > 1


def queries_of(document: Document) -> Iterator[LinkQuery]:
    """Yield a query for each mention; all its gold ids are needed."""
    for mention in document.mentions:
        ids = gold_ids(mention.concepts)
        yield LinkQuery(
            mention.text,
            frozenset(ids),
            needed=tuple(frozenset({i}) for i in ids),
            document=document.id,
            start=mention.start,
            end=mention.end,
            context=document.text,
            type=mention.type,
        )


def to_queries(data: Any, where: str = "gold") -> list[LinkQuery]:
    """Return the queries of a list, a frame of pandas or polars, or a ``datasets.Dataset``.

    A row is a mention and its concept: a pair, or a dictionary with ``mention`` and ``concept``
    (an id; none: NIL) or ``concepts``; where it has a ``text``, ``start`` and ``end`` say where the
    mention stands in it. Or a row is an annotated document: ``text`` and ``mentions``.

    Args:
        data: The rows.
        where: Name of the data in errors.

    >>> to_queries([("heart attack", "D009203")])[0].gold
    frozenset({'D009203'})
    """
    found = convert_rows(data, _row_queries, "mention and concept, or text and mentions", where)
    return [query for of_row in found for query in of_row]


def _row_queries(row: Any, number: int) -> list[LinkQuery]:
    if isinstance(row, LinkQuery):
        return [row]
    if isinstance(row, tuple | list) and [*map(type, row)] == [str, str]:
        row = dict(zip(("mention", "concept"), row, strict=True))
    if isinstance(row, Mapping) and "mentions" not in row:
        return [_row_query(row)]
    if not isinstance(row, Mapping | Document):
        raise ValueError(f"found {type(row).__name__}")
    document = to_example(DOCUMENT, row, number)
    return [*queries_of(replace(document, id=document.id or f"document {number}"))]


def _row_query(row: Mapping[str, Any]) -> LinkQuery:
    concepts = row.get("concepts", row.get("concept", ()))
    listed = concepts if isinstance(concepts, list | tuple) else [concepts]
    if any(isinstance(concept, float) for concept in listed):
        raise ValueError("found an id with decimals, read ids as text")
    text, mention, start = row.get("text", ""), row.get("mention", ""), row.get("start")
    if mention and text and start is None:
        start = text.find(mention)
    if not mention:
        mention = text if start is None else text[int(start) : int(row.get("end", 0))]
        text = "" if start is None else text
    if not mention or (start is not None and start < 0):
        raise ValueError("found no mention" + " in the text" * bool(text))
    return LinkQuery(
        mention,
        frozenset(gold_ids(map(str, listed))),
        document=str(row.get("document", "")),
        start=None if start is None else int(start),
        end=None if start is None else int(row.get("end", int(start) + len(mention))),
        context=text,
        type=row.get("type", ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldConfig:
    """Selection of gold queries, and handling of composites."""

    types: tuple[str, ...] = ()
    """Types of mentions to keep; none: all."""
    keep_nil: bool = False
    """Keep queries whose gold is NIL."""
    split_composites: bool = True
    """Split mentions where the benchmark marks parts (BioSyn files); the published fast path
    does not, and keeps ``+``."""
    drop_composites: bool = False
    """Leave out mentions that name several concepts."""
    drop_duplicates: bool = False
    """Keep each mention with the same gold once (case-insensitive)."""


class GoldReader(Protocol):
    """Reads the queries of one format; rejected rows go to the log."""

    def __call__(self, path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
        """Read queries in the order of the file.

        Args:
            path: File, or folder, of the gold standard.
            config: Settings of reading.
            log: Counts rows read, and rejected by reason.
        """


def gold_ids(id_texts: Iterable[str]) -> tuple[str, ...]:
    """Clean the ids of a field: strip whitespace, drop NIL marks and duplicates."""
    stripped = (id_text.strip() for id_text in id_texts)
    return tuple(dict.fromkeys(id_text for id_text in stripped if id_text.lower() not in NIL_MARKS))


_HOME = "biograft.evaluation.gold_formats"
_PUBTATOR = "PubTator documents with mentions, plain or gz"
_SAMPLE = "JSON lines of documents with mentions; 'starter' is the built-in sample"

GOLD_FORMATS: Registry[GoldReader] = Registry(
    "gold format",
    {
        "biosyn": (
            f"{_HOME}:read_biosyn",
            "*.concept files: doc||start|end||type||mention||id; folder, file, or TAR::FOLDER",
        ),
        "pubtator": (f"{_HOME}:read_pubtator_queries", _PUBTATOR),
        "aap": (f"{_HOME}:read_aap", "AskAPatient: id, concept name, phrase; tab-separated"),
        "xlbel": (f"{_HOME}:read_xlbel", "XL-BEL: ids||mention||sentence with <tgt> marks"),
        "cometa": (
            f"{_HOME}:read_cometa",
            "COMETA: Term, Example, General SNOMED ID; tab-separated with a header",
        ),
        "cometa-specific": (f"{_HOME}:read_cometa_specific", "the same with Specific SNOMED ID"),
        "procedures": (
            f"{_HOME}:read_procedures",
            "terms and their standard names (joined by ##): a table with tabs, or CHIP-CDN's JSON",
        ),
        "babelon": (
            f"{_HOME}:read_babelon",
            "Babelon: translated names of an ontology's concepts; tab-separated with a header",
        ),
        "documents": (
            f"{_HOME}:read_document_queries",
            "annotated documents with concepts: BioC, brat, JSON lines, ... (`corpus formats`)",
        ),
        "sample": (f"{_HOME}:read_sample", _SAMPLE),
    },
    group="biograft.gold_formats",
)


@dataclass(frozen=True, slots=True)
class Gold:
    """The queries of a gold standard, and the log of rejected and filtered rows."""

    queries: tuple[LinkQuery, ...]
    """Queries in the order of the file."""
    log: ReadLog
    """Number of rejected and filtered rows, by reason, with examples."""

    @property
    def n_without_text(self) -> int:
        """Number of queries whose text is not known."""
        return sum(not query.context for query in self.queries)


def read_gold(
    path: Any,
    form: str = "",
    config: GoldConfig | None = None,
    texts: TextIndex | None = None,
) -> Gold:
    """Read the queries of a gold standard; refuse a file without queries.

    Args:
        path: File, or folder, of the gold standard; or rows (:func:`to_queries`).
        form: Name of the format of a file, one of ``GOLD_FORMATS``.
        config: Settings of reading, such as the types kept.
        texts: Documents of a gold standard that has only ids and offsets, as BioSyn's.
    """
    config = config or GoldConfig()
    if isinstance(path, str | Path):
        log = ReadLog(Path(path))
        read: Iterable[LinkQuery] = GOLD_FORMATS.load(form)(str(path), config, log)
    else:
        log, read = ReadLog(Path("rows")), to_queries(path)
    queries = tuple(_filter(read, config, log))
    if not queries:
        raise empty_gold_error(
            f"no query of format {form!r} is left of {log.n_read:,} rows", log, log.path
        )
    return Gold(queries if texts is None else texts.join(queries, form), log)


class TextIndex:
    """The texts of documents by id, to be joined to queries by document and offsets."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents: defaultdict[str, list[Document]] = defaultdict(list)
        for document in documents:
            self._documents[document.id].append(document)

    @classmethod
    def read(cls, paths: Sequence[str | Path]) -> TextIndex | None:
        """Read the documents of files, of any format that is recognised; None if there are none."""
        if not paths:
            return None
        return cls(document for path in paths for document in read_documents(path))

    def join(self, queries: Sequence[LinkQuery], form: str) -> tuple[LinkQuery, ...]:
        """Add the text of its document to each query; one without a match stays as it is.

        Args:
            queries: Queries without a text.
            form: Format of the gold standard, for errors.
        """
        if any(query.context for query in queries):
            raise ConfigError(f"text: gold of format {form!r} has texts of its own; leave it out")
        joined = tuple(replace(query, context=self._text_of(query)) for query in queries)
        if not any(query.context for query in joined):
            first = queries[0]
            raise ConfigError(
                f"text: holds none of the {len(queries):,} mentions, such as that from "
                f"{first.start} to {first.end} of document {first.document!r}; give the documents "
                "that the gold standard was made from"
            )
        return joined

    def _text_of(self, query: LinkQuery) -> str:
        """Return the text with a mention at the offsets of a query; empty if there is none.

        BioSyn rewrites mentions, so that only offsets can be compared. They must be those of an
        annotated mention; in a document without annotations they only have to lie in the text.
        """
        if query.start is None or query.end is None:
            return ""
        span = (query.start, query.end)
        for document in self._documents.get(query.document, ()):
            spans = [(mention.start, mention.end) for mention in document.mentions]
            within = query.end <= len(document.text) and document.text[slice(*span)].strip()
            if span in spans or (within and not spans):
                return document.text
        return ""


def empty_gold_error(message: str, log: ReadLog, path: str | Path) -> FormatError:
    """Return the error for a gold standard without rows left, with the reasons.

    Args:
        message: What is missing.
        log: Counts of rows rejected and filtered.
        path: File of the gold standard.
    """
    left_out = {**log.rejected.counts, **log.filtered}
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in left_out.items())
    message = f"{message} ({reasons})" if reasons else message
    return FormatError(message, path=path, remedy="check the format and the filters")


def _filter(queries: Iterable[LinkQuery], config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Apply the filters of the configuration, and count what they drop."""
    seen: set[tuple[str, frozenset[str], tuple[str, ...]]] = set()
    for query in queries:
        if config.types and query.type not in config.types:
            log.filter("of another type")
        elif query.is_nil and not config.keep_nil:
            log.filter("without gold concept (NIL)")
        elif query.is_composite and config.drop_composites:
            log.filter("composite")
        else:
            key = (query.mention.lower(), query.gold, query.gold_names)
            if config.drop_duplicates and key in seen:
                log.filter("duplicate")
                continue
            seen.add(key)
            yield query


TEXT_FORMATS = ("pubtator", "sample")
"""Gold formats that are texts with all their mentions, besides the other document formats."""


@dataclass(frozen=True, slots=True)
class GoldTexts:
    """The documents of a gold standard, and the log of rejected and filtered mentions."""

    documents: tuple[Document, ...]
    """Documents with their gold mentions."""
    log: ReadLog
    """Number of rejected and filtered mentions, by reason, with examples."""


def read_gold_texts(
    path: str | Path,
    form: str = "",
    *,
    types: Collection[str] = (),
    limit: int = 0,
    encoding: str = UTF_8,
) -> GoldTexts:
    """Read the documents of a gold standard, the first ``limit`` of them if that is not 0.

    Documents without mentions are kept, too, since answers in them are wrong.

    Args:
        path: File, or folder, of the gold standard.
        form: Name of its document format; default: recognised by content.
        types: Types of mentions that are kept; empty keeps all.
        limit: Number of documents read, the first ones; 0 reads all.
        encoding: Encoding of its files.
    """
    if form not in TEXT_FORMATS and (form in GOLD_FORMATS or form in (TEXT, TABLE)):
        raise ConfigError(
            f"format: {form!r} has no texts with all their mentions marked; expected one that "
            f"has: {', '.join(sorted({*TEXT_FORMATS, *DOCUMENT_FORMATS}))}"
        )
    log = ReadLog(Path(path))
    if form == "sample" or str(path) == "starter":
        read = load_object(f"{_HOME}:read_sample_documents")(str(path), log)
    else:
        read = read_annotated(path, log, form, encoding)
    documents_read = islice(read, limit or None)
    documents = tuple(_of_types(documents_read, types, log))
    if not any(document.mentions for document in documents):
        message = f"no mention is left of {len(documents):,} documents of format {form!r}"
        raise empty_gold_error(message, log, path)
    return GoldTexts(documents, log)


def read_annotated(
    path: str | Path, log: ReadLog, form: str = "", encoding: str = UTF_8
) -> Iterator[Document]:
    """Read annotated documents of any format; refuse plain text.

    Args:
        path: File, or folder, of documents.
        log: Counts records read, and rejected by reason.
        form: Name of the document format; default: recognised by content.
        encoding: Encoding of the files.
    """
    inputs = Inputs([path], InputConfig(format=form, encoding=encoding), log)
    for file in inputs.files():
        if not file.path.is_dir() and is_empty(file.path):
            raise InputError("is empty", path=file.path, remedy="check the path")
        if file.form == TEXT:
            raise FormatError(
                "no reader of documents knows this content",
                path=file.path,
                remedy=f"expected one of {', '.join(DOCUMENT_FORMATS)}",
            )
        yield from read_input(file, log)


def _of_types(
    documents: Iterable[Document], types: Collection[str], log: ReadLog
) -> Iterator[Document]:
    """Drop the mentions of other types, and count them."""
    for document in documents:
        mentions = tuple(m for m in document.mentions if not types or m.type in types)
        log.filter("of another type", len(document.mentions) - len(mentions))
        yield replace(document, mentions=mentions)

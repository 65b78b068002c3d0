"""Registry of source formats; read a source of any format with the filters common to all."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from importlib import resources
from pathlib import Path

from biograft.artifacts import MANIFEST, peek
from biograft.errors import InputError, UnrecognisedError
from biograft.kb.names import language_code
from biograft.kb.records import DefinitionRecord, NameRecord, RelationRecord
from biograft.kb.sources.files import exists
from biograft.kb.sources.format import Block, Format, Item, SourceConfig, find_format, look_at
from biograft.kb.sources.log import ReadLog
from biograft.registry import Registry

STARTER = "starter"
BUILT_IN = {STARTER: "concepts", "clinical-findings": "findings"}
"""Sources that ship with biograft, and their folders in the package."""

FORMATS: Registry[Format] = Registry(
    "source format",
    {
        # tried in this order when a file is recognised, the most specific first
        "umls": ("umls_rrf:FORMAT", "UMLS RRF: a META folder or single files"),
        "snomed": ("snomed:FORMAT", "SNOMED CT RF2: a release folder"),
        "mesh": ("mesh:FORMAT", "MeSH descriptor or supplementary XML"),
        "obo": ("obo:FORMAT", "OBO 1.2 and 1.4"),
        "owl": ("owl:FORMAT", "OWL ontologies and SKOS in RDF/XML, Turtle, ..."),
        "obograph": ("obograph:FORMAT", "OBO Graphs JSON"),
        "medic": ("medic:FORMAT", "MEDIC: CTD's TSV or CSV, or the 2012 form"),
        "babelon": ("babelon:FORMAT", "Babelon: translations of an ontology, TSV"),
        "zh-disease": ("chinese:DISEASE_PAGES", "Chinese disease pages, JSON lines"),
        "zh-alias": ("chinese:DISEASE_TABLE", "Chinese disease table with aliases, CSV"),
        "scispacy": ("scispacy:FORMAT", "scispaCy's JSON and JSONL concepts"),
        "jsonl": ("jsonl:FORMAT", "biograft's own JSON lines, one concept each"),
        "biosyn": ("biosyn:FORMAT", "BioSyn dictionary, id||name"),
        "triples": ("triples:FORMAT", "head, relation, tail in a TSV"),
        "table": ("table:FORMAT", "any CSV or TSV with a column mapping"),
    },
    group="biograft.sources",
    home="biograft.kb.sources",
)


_HOW_TO_NAME = (
    "head, relation, tail without a header are `--format triples`; any other table needs "
    "`--columns`"
)
_STORE_FORMAT = "biograft-kb"


def sniff(path: Path) -> str:
    """Name the format of a file or folder by its content."""
    probe = look_at(path)
    problem = f"no reader knows this {'content' if probe.head else 'folder'}"
    return find_format(probe, FORMATS, problem, _HOW_TO_NAME)


def resolve(config: SourceConfig) -> SourceConfig:
    """Complete a configuration: path of the starter, format by content, language codes."""
    languages = tuple(language_code(tag) for tag in config.languages)
    is_there = exists(config.path)
    if str(config.path) in BUILT_IN and not is_there:
        folder = built_in_folder(str(config.path))
        return replace(config, path=folder, format="jsonl", languages=languages)
    if not is_there:
        raise InputError("does not exist", path=config.path, remedy="check the path")
    _refuse_store(config.path)
    name = config.format or (_sniff_table(config.path) if config.columns else sniff(config.path))
    FORMATS.load(name)
    return replace(config, format=name, languages=languages)


def read_source(config: SourceConfig, log: ReadLog | None = None) -> Generator[Item, None, None]:
    """Read a source as a stream of records, or of blocks of records if it is huge."""
    config = resolve(config)
    log = log or ReadLog(config.path)
    unnamed: set[str] = set()
    for item in FORMATS.load(config.format).read(config, log):
        accepted = _keep(item, config, log, unnamed)
        if accepted is not None:
            yield accepted
    if unnamed:
        log.leave_out(unnamed)


def _sniff_table(path: Path) -> str:
    """Return the format of a source with a column mapping: a table, unless it cannot be one."""
    try:
        name = sniff(path)
    except UnrecognisedError:
        return "table"
    return "table" if FORMATS.load(name).tabular else name


def _refuse_store(path: Path) -> None:
    """Raise an ``InputError`` for a folder that is a built store."""
    if peek(path / MANIFEST).get("format") == _STORE_FORMAT:
        raise InputError(
            "is a built knowledge base, not a source",
            path=path,
            remedy="export it with `biograft kb export` and name that file",
        )


def built_in_folder(name: str) -> Path:
    """Return the folder of a source that ships with biograft."""
    return Path(str(resources.files("biograft.starter"))) / BUILT_IN[name]


def _keep(item: Item, config: SourceConfig, log: ReadLog, unnamed: set[str]) -> Item | None:
    """Apply the filters on languages and relations, which are common to all readers."""
    if isinstance(item, Block):
        return _keep_rows(item, config, log)
    if isinstance(item, NameRecord | DefinitionRecord):
        if config.languages and item.language not in config.languages:
            log.filter("language")
            if isinstance(item, NameRecord):
                unnamed.add(item.concept)
            return None
    elif (
        isinstance(item, RelationRecord)
        and config.relations
        and item.relation not in config.relations
    ):
        log.filter("relation")
        return None
    return item


def _keep_rows(block: Block, config: SourceConfig, log: ReadLog) -> Block:
    wanted: tuple[str, ...] = ()
    column = ""
    if block.record in (NameRecord, DefinitionRecord):
        wanted, column = config.languages, "language"
    elif block.record is RelationRecord:
        wanted, column = config.relations, "relation"
    if not wanted:
        return block
    frame = block.frame.filter(block.frame[column].is_in(wanted))
    log.filter(column, block.frame.height - frame.height)
    if block.record is NameRecord and frame.height < block.frame.height:
        from biograft.kb.sources.delimited import ids_lost

        log.leave_out(ids_lost(block.frame["concept"], frame["concept"]))
    return Block(block.record, frame)

"""Readers of ontology files: any of the registered formats in, one stream of records out.

>>> from biograft.sources import SourceConfig, read_source
>>> records = list(read_source(SourceConfig(path=Path("hp.obo.gz"))))  # doctest: +SKIP
"""

from biograft.records import (
    ConceptRecord as ConceptRecord,
    DefinitionRecord as DefinitionRecord,
    IdKind as IdKind,
    IdRecord as IdRecord,
    NameKind as NameKind,
    NameRecord as NameRecord,
    Record as Record,
    RelationRecord as RelationRecord,
    TypeRecord as TypeRecord,
)
from biograft.sources.files import read_lines as read_lines
from biograft.sources.format import (
    Block as Block,
    Format as Format,
    Item as Item,
    Probe as Probe,
    SourceConfig as SourceConfig,
)
from biograft.sources.log import (
    KEPT_EXAMPLES as KEPT_EXAMPLES,
    ReadLog as ReadLog,
    RejectionExample as RejectionExample,
    Rejections as Rejections,
)
from biograft.sources.reader import (
    FORMATS as FORMATS,
    STARTER as STARTER,
    read_source as read_source,
    resolve as resolve,
    sniff as sniff,
)

"""Readers of ontology files: any of the registered formats in, one stream of records out.

>>> from biograft.kb.sources import SourceConfig, read_source
>>> records = list(read_source(SourceConfig(path=Path("hp.obo.gz"))))  # doctest: +SKIP
"""

from biograft.kb.iris import short_id as short_id
from biograft.kb.records import (
    ConceptRecord as ConceptRecord,
    DefinitionRecord as DefinitionRecord,
    Facts as Facts,
    IdKind as IdKind,
    IdRecord as IdRecord,
    NameKind as NameKind,
    NameRecord as NameRecord,
    Record as Record,
    RelationRecord as RelationRecord,
    TypeRecord as TypeRecord,
)
from biograft.kb.sources.files import (
    max_expansion as max_expansion,
    max_value as max_value,
    open_bytes as open_bytes,
    open_stored as open_stored,
    raise_limit as raise_limit,
    read_head as read_head,
    read_lines as read_lines,
    read_text as read_text,
)
from biograft.kb.sources.format import (
    FORMATS as FORMATS,
    STARTER as STARTER,
    Block as Block,
    Format as Format,
    Item as Item,
    Probe as Probe,
    SourceConfig as SourceConfig,
    find_format as find_format,
    look_at as look_at,
    read_source as read_source,
    resolve as resolve,
    sniff as sniff,
)
from biograft.kb.sources.log import (
    KEPT_EXAMPLES as KEPT_EXAMPLES,
    ReadLog as ReadLog,
    RejectionExample as RejectionExample,
    Rejections as Rejections,
)

"""Readers of ontology files: any of the registered formats in, one stream of records out.

>>> from biograft.sources import SourceConfig, read_source
>>> records = list(read_source(SourceConfig(path=Path("hp.obo.gz"))))  # doctest: +SKIP
"""

from biograft.sources.format import Block, Format, Item, Probe, SourceConfig
from biograft.sources.log import KEPT_EXAMPLES, Example, ReadLog, Rejections
from biograft.sources.reading import FORMATS, STARTER, read_source, resolve, sniff

__all__ = [
    "FORMATS",
    "KEPT_EXAMPLES",
    "STARTER",
    "Block",
    "Example",
    "Format",
    "Item",
    "Probe",
    "ReadLog",
    "Rejections",
    "SourceConfig",
    "read_source",
    "resolve",
    "sniff",
]

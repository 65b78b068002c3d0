"""Which types of synonym say that a name is an abbreviation.

Ontologies either name the type so (``ABBREVIATION``, ``hp#abbreviation``) or take it from the
OBO Metadata Ontology, by number and often without declaring it.
"""

from __future__ import annotations

from functools import lru_cache

_WORDS = ("abbreviation", "acronym")
_NUMBERS = ("OMO:0003000", "OMO_0003000", "OMO:0003012", "OMO_0003012")  # abbreviation, acronym


@lru_cache(maxsize=1024)
def is_abbreviation(synonym_type: str) -> bool:
    """Whether a synonym type, by id, IRI or label, means abbreviation or acronym."""
    lowered = synonym_type.lower()
    return synonym_type.endswith(_NUMBERS) or any(word in lowered for word in _WORDS)

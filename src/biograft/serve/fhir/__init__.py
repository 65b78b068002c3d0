"""The FHIR R4 terminology service under ``/fhir``: code systems, value sets, translation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.kb.code_systems import (
        CodeSystems as CodeSystems,
        parse_systems as parse_systems,
    )
    from biograft.serve.fhir.terminology import Terminology as Terminology


__getattr__, __dir__, __all__ = lazify(__name__)

"""Outputs of linked documents: tables, JSON lines, a page, FHIR, OMOP, annotation formats.

An output is one file here and one entry of ``OUTPUTS``. :func:`write_linked` writes any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.linking.outputs.findings import COLUMNS as COLUMNS, finding_rows as finding_rows
    from biograft.linking.outputs.output import (
        ConceptIds as ConceptIds,
        Output as Output,
        OutputRun as OutputRun,
        link_chunks as link_chunks,
        write_linked as write_linked,
    )
    from biograft.linking.outputs.registry import (
        OUTPUTS as OUTPUTS,
        output_of_ending as output_of_ending,
    )


__getattr__, __dir__, __all__ = lazify(__name__)

"""Import of published checkpoints, and export of models in formats that other tools read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify as lazify

if TYPE_CHECKING:
    from biograft.models.checkpoints.conversion import (
        ImportReport as ImportReport,
        export_checkpoint as export_checkpoint,
        import_checkpoint as import_checkpoint,
    )
    from biograft.models.checkpoints.kebiolm import KEBIOLM as KEBIOLM
    from biograft.models.checkpoints.layouts import FORMS as FORMS, LAYOUTS as LAYOUTS
    from biograft.models.checkpoints.published import read_published as read_published


__getattr__, __dir__, __all__ = lazify(__name__)

"""Import of published checkpoints, and export of models in formats that other tools read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify as lazify

if TYPE_CHECKING:
    from biograft.checkpoints.conversion import (
        ImportReport as ImportReport,
        export_checkpoint as export_checkpoint,
        import_checkpoint as import_checkpoint,
    )
    from biograft.checkpoints.kebiolm import KEBIOLM as KEBIOLM
    from biograft.checkpoints.layouts import FORMS as FORMS, LAYOUTS as LAYOUTS
    from biograft.checkpoints.published import read_published as read_published


__getattr__, __dir__, __all__ = lazify(__name__)

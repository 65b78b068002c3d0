"""Published checkpoints brought in, and our models given away as others read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.checkpoints.export import export_checkpoint as export_checkpoint
    from biograft.checkpoints.importer import (
        ImportReport as ImportReport,
        import_checkpoint as import_checkpoint,
    )
    from biograft.checkpoints.layouts import FORMS as FORMS, LAYOUTS as LAYOUTS


__getattr__, __dir__, __all__ = lazify(__name__)

"""Published checkpoints brought in, and our models given away as others read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.checkpoints.exporting import export_checkpoint
    from biograft.checkpoints.importing import ImportReport, import_checkpoint
    from biograft.checkpoints.layouts import FORMS, LAYOUTS

__all__ = ["FORMS", "LAYOUTS", "ImportReport", "export_checkpoint", "import_checkpoint"]

_HOMES = {
    "FORMS": "biograft.checkpoints.layouts",
    "ImportReport": "biograft.checkpoints.importing",
    "LAYOUTS": "biograft.checkpoints.layouts",
    "export_checkpoint": "biograft.checkpoints.exporting",
    "import_checkpoint": "biograft.checkpoints.importing",
}

__getattr__ = load_on_use(__name__, _HOMES)

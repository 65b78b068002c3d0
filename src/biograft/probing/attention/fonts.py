"""Which installed fonts have the signs of some texts: matplotlib's own has no Chinese ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from biograft.errors import MissingExtraError

try:
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font
except ImportError as error:
    raise MissingExtraError("report", "drawing figures") from error

OWN = "DejaVu Sans"
"""Comes with matplotlib."""
UNKNOWN = "\ufffd"
"""Stands for a sign that cannot be shown."""
_FIRST = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei", "PingFang SC"),
    *("Hiragino Sans GB", "Droid Sans Fallback", "Arial Unicode MS"),
)
_HOLLOW = "Last Resort"
"""Has a box for every sign and a shape for none."""


def choose_fonts(texts: Iterable[str]) -> list[str] | None:
    """Name fonts that together have all signs of the texts; none if no installed one helps."""
    lacking = {sign for text in texts for sign in text if not sign.isspace()} - _signs(OWN)
    if not lacking:
        return [OWN]
    with quiet_fonts():
        return next(([OWN, name] for name in _installed() if lacking <= _signs(name)), None)


def drawable(text: str) -> str:
    """Write a text with the signs of matplotlib's own font."""
    return "".join(sign if sign.isspace() or sign in _signs(OWN) else UNKNOWN for sign in text)


@contextmanager
def quiet_fonts() -> Iterator[None]:
    """Keep matplotlib from telling of fonts that are there in other weights only."""
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _installed() -> list[str]:
    """Give the names of installed fonts, well-known ones with Chinese signs first."""
    names = {font.name for font in font_manager.fontManager.ttflist if font.style == "normal"}
    known = [name for name in _FIRST if name in names]
    return known + sorted(name for name in names.difference(known) if not name.startswith(_HOLLOW))


@cache
def _signs(name: str) -> frozenset[str]:
    """Read which signs the file has that matplotlib takes for a font's name."""
    try:
        file = font_manager.findfont(font_manager.FontProperties(family=name))
        return frozenset(map(chr, FT2Font(file).get_charmap()))
    except (OSError, RuntimeError, ValueError):  # a font that FreeType cannot draw
        return frozenset()

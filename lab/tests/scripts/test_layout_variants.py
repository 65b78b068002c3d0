"""The second generator of layouts: every character knows where it stood."""

from __future__ import annotations

import random

import pytest

from biograft_lab.scripts.layout_variants import KINDS, moved

TEXT = (
    "CLINICAL NOTE\nHistory: asthma & fits\nFever: none\n\nPlan:\n- 'rest' - fluids ...\n"
    "- Rx: flu shot; return to the clinic if there is a fever, a cough, or chest pain at night.\n\n"
    "No fever was seen. The patient's mother had gout, and her uncle has asthma, she said.\nEnd.\n"
)
CHANGED = ("ligatures", "capitals", "typography")
"""Kinds that put another sign in the place of one."""


@pytest.mark.parametrize("kind", KINDS)
def test_characters_keep_their_offsets(kind):
    seen = set()
    for seed in range(12):
        chars = KINDS[kind](TEXT, random.Random(seed))
        seen.add("".join(char for char, _ in chars))
        kept = [(char, at) for char, at in chars if at >= 0]
        assert [at for _, at in kept] == sorted({at for _, at in kept})
        if kind not in CHANGED:
            assert all(TEXT[at] == char for char, at in kept)
            assert "".join(TEXT.split()) == "".join(
                char for char, at in kept if not char.isspace()
            ) or kind in ("bullets", "html", "cells")
        start = TEXT.index("chest pain")
        (place,) = moved({(start, start + 10, "X", "present")}, chars, kind)
        piece = "".join(char for char, _ in chars)[place[0] : place[1]]
        assert piece[0].lower() == "c"
        assert piece[-1].lower() == "n"
    assert seen - {TEXT}

"""Figures: a PNG for texts of any characters, the same for the same values."""

import numpy as np
import pytest

from biograft_lab.probing.attention import Curves, InsideEntity, ReplacedSentence

SENTENCE = ReplacedSentence("he has $fever$ now", 7, 14, "heat", "gout")


def pictures():
    pytest.importorskip("matplotlib")
    from biograft_lab.probing.attention import draw_curves, draw_insides

    rng = np.random.default_rng(0)
    values = {name: rng.random(3) for name in ("entity", "synonym", "random")}
    curves = [Curves(name, 11, ("he", "has", "now"), 2, values) for name in "ab"]
    insides = [InsideEntity(name, 10, ("high", "<fever>"), rng.random((2, 2))) for name in "ab"]
    nothing = [InsideEntity("x", 1, ("a", "b"), np.zeros((2, 2)))]
    return draw_curves(curves, SENTENCE, "attention"), draw_insides(insides), draw_insides(nothing)


def test_equal_results_give_equal_pictures():
    drawn = pictures()
    assert all(picture.startswith(b"\x89PNG") for picture in drawn)
    assert pictures() == drawn
    assert len(set(drawn)) == 3

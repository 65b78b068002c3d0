"""Chinese characters that are mistaken for each other: of the same sound, or of similar shape.

The table is made of the Unihan database by ``benchmarks/ordinary_words.py``: a line for each
character, with its readings without tones, and the characters of similar shape. SOURCES.txt of
:mod:`biograft.text.spelling` has the licence.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

CHARACTERS = "chinese_characters.txt.gz"
CONTRASTS = (
    *("左右双单两侧", "上下前后内外中浅深", "阴阳", "有无非未不否", "正反负", "真假", "良恶"),
    *("高低", "多少", "大小", "轻重", "急慢快缓", "增减升降", "长短", "粗细", "先后", "原继"),
    *("一二三四五六七八九十百千", "甲乙丙丁戊己庚", "男女父母", "可疑确"),
)
"""Characters of sides, polarity, degree, number and type: none is an error for one beside it."""
KINDS = (
    "头脑颅额颞枕面颌眼睑眶睛耳鼻口唇舌龈齿牙咽喉扁颈项肩腋臂肘腕手掌指胸乳肋胁背腰腹脐脘骶髋臀"
    "股腿膝腘踝足趾跟心肺肝胆脾胃肠肾胱胰脊椎骨髓筋肌皮肤腺血尿精便痰脉膜气管子宫巢睾肛门胞",
    "病炎癌瘤囊肿痛痒疼胀麻酸疮疹疱疣痔疖痈疽疝痢疟痘斑疤瘘瘫痪痉痹石",
    "钠钾钙镁磷氯铁铜锌铅锂锰汞砷碘氟溴硫硝硼铋苯苄氨酮醇酸酯烷酚醚",
)
"""Characters of parts of the body, kinds of disease, and substances."""
_MEANINGFUL = frozenset("".join((*CONTRASTS, *KINDS)))


@cache
def similar_characters() -> dict[str, tuple[str, str]]:
    """Return the characters of the same sound and of similar shape of each character."""
    table = gzip.decompress((files(__package__) / CHARACTERS).read_bytes()).decode()
    rows = [line.split("\t") for line in table.splitlines()]
    readings = {char: own.split() for char, own, _ in rows}
    by_sound: dict[str, list[str]] = {}
    for char, own in readings.items():
        for reading in own:
            by_sound.setdefault(reading, []).append(char)
    shapes: dict[str, dict[str, None]] = {char: dict.fromkeys(near) for char, _, near in rows}
    for char, _, near in rows:
        for other in near:
            shapes[other][char] = None
    return {
        char: (
            "".join(dict.fromkeys(c for r in own for c in by_sound[r] if c != char)),
            "".join(shapes[char]),
        )
        for char, own in readings.items()
    }


def is_contrast(one: str, other: str) -> bool:
    """Return whether two characters are of sides, numbers, parts of the body and the like.

    Args:
        one: A character.
        other: Another one.
    """
    return one in _MEANINGFUL and other in _MEANINGFUL


def similar_spellings(text: str, places: Iterable[int]) -> Iterator[str]:
    """Yield a text with one character replaced by one of the same sound or of similar shape.

    Args:
        text: A name.
        places: Offsets of the characters that may be wrong.

    >>> "心肌梗死" in similar_spellings("心机梗死", [1])
    True
    """
    for at in places:
        for other in dict.fromkeys("".join(similar_characters().get(text[at], ()))):
            if not is_contrast(text[at], other):
                yield text[:at] + other + text[at + 1 :]

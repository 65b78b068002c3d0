"""CMDD, dialogues of patients and doctors: replies to rank, and symptoms to normalise.

Both become questions with one right answer among ten candidates. The others are sampled from the
same file, the same in every run, so that chance is 10 %.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from biograft.text.documents import Document
from biograft.text.formats.cmdd import read
from biograft.text.tasks.registry import Answer, RankingExample, TaskConfig, TaskFormat

if TYPE_CHECKING:
    from biograft.kb.sources.log import ReadLog

N_CANDIDATES = 10
_PER_DIALOGUE = 2
"""Replies of one dialogue are much alike."""
_MIN_QUESTION, _MIN_REPLY = 6, 8
"""Characters; shorter ones, such as "yes", fit many dialogues."""
_PATIENT = "患者"


def read_replies(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read which of ten sentences of doctors is the reply; at most two questions a dialogue.

    A reply that occurs elsewhere in the file is none, nor is a very short one.

    Args:
        config: File, and how it is read.
        log: Counts records read, and rejected by reason.
    """
    dialogues = read(config.path, log, config.encoding)
    found = [(each, list(_replies(each))) for each in dialogues]
    counts = Counter(reply for _, pairs in found for _, reply in pairs)
    pool = sorted(reply for reply in counts if len(reply) >= _MIN_REPLY)
    for dialogue, pairs in found:
        own = {dialogue.text[turn.start : turn.end] for turn in dialogue.passages}
        usable = [
            (said, reply)
            for said, reply in pairs
            if len(said) >= _MIN_QUESTION and len(reply) >= _MIN_REPLY and counts[reply] == 1
        ]
        for said, reply in _spaced(usable, _PER_DIALOGUE):
            others = [text for text in _sample(pool, f"{dialogue.id} {said}") if text not in own]
            yield _question(said, reply, others, dialogue.id)


def _replies(dialogue: Document) -> Iterator[tuple[str, str]]:
    """Yield what a patient said since the last reply, and the doctor's next sentence."""
    said: list[str] = []
    for turn in dialogue.passages:
        text = dialogue.text[turn.start : turn.end]
        if turn.kind == _PATIENT:
            said.append(text)
        elif said:
            yield "，".join(said), text
            said = []


def read_symptoms(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read which of ten standard names is that of a symptom in a patient's or doctor's words.

    Words that are a standard name themselves are left out; others are asked once, in their first
    sentence.

    Args:
        config: File, and how it is read.
        log: Counts records read, and rejected by reason.
    """
    symptoms = [
        (mention.text, mention.concepts[0], dialogue.text[turn.start : turn.end], dialogue.id)
        for dialogue in read(config.path, log, config.encoding)
        for turn in dialogue.passages
        for mention in dialogue.mentions
        if mention.concepts and turn.start <= mention.start < turn.end
    ]
    names = sorted({name for _, name, _, _ in symptoms})
    asked: set[tuple[str, str]] = set()
    for words, name, sentence, identifier in symptoms:
        if words in names or (words, name) in asked:
            continue
        asked.add((words, name))
        others = [each for each in _sample(names, f"{words} {name}") if each != name]
        yield _question(f"{words}：{sentence}", name, others, identifier)


def _spaced(pairs: Sequence[tuple[str, str]], limit: int) -> Sequence[tuple[str, str]]:
    return pairs[:: -(-len(pairs) // limit)] if len(pairs) > limit else pairs


def _sample(pool: Sequence[str], key: str) -> list[str]:
    """Return texts of a pool in random order, more than are needed; the same for equal keys."""
    rng = np.random.default_rng(zlib.crc32(key.encode()))
    rows = rng.integers(0, len(pool), 4 * N_CANDIDATES).tolist()
    return [pool[row] for row in dict.fromkeys(rows)]


def _question(query: str, right: str, others: Sequence[str], identifier: str) -> RankingExample:
    """Place the right answer among the others, at a place that depends on the question alone."""
    answers = [Answer(text) for text in others[: N_CANDIDATES - 1]]
    place = zlib.crc32(query.encode()) % (len(answers) + 1)
    answers.insert(place, Answer(right, 1))
    return RankingExample(query, tuple(answers), identifier)


REPLIES = TaskFormat("ranking", read_replies)
SYMPTOMS = TaskFormat("ranking", read_symptoms)

"""CMDD, dialogues of patients and doctors: replies to rank, and symptoms to normalise.

Both become questions with one right answer among ten candidates. The others are sampled from the
same file, the same in every run, so that chance is 10 %.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from biograft.kb.sources.json_files import read_objects
from biograft.text.tasks.registry import Answer, RankingExample, TaskConfig, TaskFormat

if TYPE_CHECKING:
    from biograft.kb.sources.log import ReadLog

N_CANDIDATES = 10
_PER_DIALOGUE = 2
"""Replies of one dialogue are much alike."""
_MIN_QUESTION, _MIN_REPLY = 6, 8
"""Characters; shorter ones, such as "yes", fit many dialogues."""
_PATIENT, _DOCTOR = "患者", "医生"
_SYMPTOM = re.compile("BI*")


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a dialogue and its symptoms: the words, and their standard name."""

    speaker: str
    text: str
    symptoms: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns of a dialogue."""

    id: str
    turns: tuple[Turn, ...]

    def replies(self) -> Iterator[tuple[str, str]]:
        """Yield what a patient said since the last reply, and the doctor's next sentence."""
        said: list[str] = []
        for turn in self.turns:
            if turn.speaker == _PATIENT:
                said.append(turn.text)
            elif said:
                yield "，".join(said), turn.text
                said = []


def read_dialogues(config: TaskConfig, log: ReadLog) -> Iterator[Dialogue]:
    """Read the dialogues of a file; symptoms whose labels do not fit the text are left out."""
    for row in read_objects(config.path, log, config.encoding):
        turns = row.value.get("dialogue-content")
        if not isinstance(turns, list) or not all(map(_is_turn, turns)):
            log.reject("not of the form dialogue-content: speaker, sentence", row.line, row.text)
            continue
        yield Dialogue(str(row.value.get("example-id", row.line)), tuple(map(_turn, turns)))


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("speaker", "sentence")
    )


def _turn(value: dict[str, Any]) -> Turn:
    text, label = value["sentence"], str(value.get("label", ""))
    spans = [text[m.start() : m.end()] for m in _SYMPTOM.finditer(label)]
    names = value.get("normalized")
    fits = isinstance(names, list) and len(names) == len(spans) and len(label) == len(text)
    pairs = zip(spans, map(str, names or ()), strict=True) if fits else ()
    return Turn(value["speaker"], text, tuple(pairs))


def read_replies(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read which of ten sentences of doctors is the reply; at most two questions a dialogue.

    A reply that occurs elsewhere in the file is none, nor is a very short one.
    """
    dialogues = list(read_dialogues(config, log))
    found = [(each, list(each.replies())) for each in dialogues]
    counts = Counter(reply for _, pairs in found for _, reply in pairs)
    pool = sorted(reply for reply in counts if len(reply) >= _MIN_REPLY)
    for dialogue, pairs in found:
        own = {turn.text for turn in dialogue.turns}
        usable = [
            (said, reply)
            for said, reply in pairs
            if len(said) >= _MIN_QUESTION and len(reply) >= _MIN_REPLY and counts[reply] == 1
        ]
        for said, reply in _spaced(usable, _PER_DIALOGUE):
            others = [text for text in _sample(pool, f"{dialogue.id} {said}") if text not in own]
            yield _question(said, reply, others, dialogue.id)


def read_symptoms(config: TaskConfig, log: ReadLog) -> Iterator[RankingExample]:
    """Read which of ten standard names is that of a symptom in a patient's or doctor's words.

    Words that are a standard name themselves are left out; others are asked once, in their first
    sentence.
    """
    dialogues = list(read_dialogues(config, log))
    turns = [(each.id, turn) for each in dialogues for turn in each.turns]
    names = sorted({name for _, turn in turns for _, name in turn.symptoms})
    asked: set[tuple[str, str]] = set()
    for identifier, turn in turns:
        for words, name in turn.symptoms:
            if words in names or (words, name) in asked:
                continue
            asked.add((words, name))
            others = [each for each in _sample(names, f"{words} {name}") if each != name]
            yield _question(f"{words}：{turn.text}", name, others, identifier)


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

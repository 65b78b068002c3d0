"""What ``biograft probe attention`` is given: encoders, sentences, names to put in them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.cli.gold_warnings import warn_left_out
from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.probing.attention import ReplacedSentence, SubstituteConfig


def refuse_unfit(alone: Mapping[str, object], replacing: Mapping[str, object]) -> None:
    """Refuse options that another one leaves without a meaning."""
    for name, value in alone.items():
        if value not in ("", None):
            raise ConfigError(f"{name}: goes with a single sentence, not with --file")
    for name, value in replacing.items():
        if value not in ("", None):
            raise ConfigError(f"{name}: goes with --replace")


def refuse_damaged(given: Mapping[str, object]) -> None:
    """Refuse texts that came with bytes of another encoding."""
    for name, value in given.items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"{name}: is not UTF-8; write it so, or give a file") from error


def different_encoders(encoders: Sequence[str]) -> Sequence[str]:
    """Give the encoders; there must be one, and none twice."""
    if not encoders:
        raise ConfigError("--encoder: expected the folder or the name of an encoder, found none")
    for place, name in enumerate(encoders):
        if name in encoders[:place]:
            raise ConfigError(f"--encoder: {name} stands there twice")
    return encoders


def sentence_of(given: str, entity: str, at: int | None, *, alone: bool) -> ReplacedSentence:
    """Find the entity in the sentence; without any sentence it stands alone."""
    from biograft.probing.attention import ReplacedSentence, find_entity
    from biograft.sources.files import decode

    if not entity:
        raise ConfigError("--entity: expected the entity as it stands in TEXT, found none")
    text = given
    if given == "-":
        text = decode(sys.stdin.buffer.read(), Path("stdin"), 1, "utf-8").strip()
    elif not given and alone:
        text = entity
    return ReplacedSentence(text, *find_entity(text, entity, at))


def with_names(
    sentence: ReplacedSentence, synonym: str, random: str, kb: Path | None
) -> ReplacedSentence:
    """Put in the names that were given; what is missing must come from a store."""
    if kb is None and not (synonym and random):
        raise ConfigError("--replace needs --synonym and --random, or --kb to draw them from")
    return replace(sentence, synonym=synonym, random=random)


def read_file(path: Path, form: str, limit: int, seed: int) -> list[ReplacedSentence]:
    """Read the sentences of a file, and warn of what could not be read."""
    from biograft.probing.attention import read_sentences
    from biograft.sources.log import ReadLog

    log = ReadLog(path)
    sentences = read_sentences(path, form, limit=limit, seed=seed, log=log)
    warn_left_out(log.rejected.counts, "rows", f"{path}: ")
    return sentences


def drawer_of(
    kb: Path | None, config: SubstituteConfig
) -> Callable[[ReplacedSentence], ReplacedSentence]:
    """Give what fills in the names that a sentence lacks; without a store, nothing does."""
    if kb is None:
        return lambda sentence: sentence
    from biograft.kb import KnowledgeBase
    from biograft.probing.attention import Substitutes

    return Substitutes(KnowledgeBase.open(kb), config).fill

"""The choice of a detector by the settings of a linker."""

from __future__ import annotations

from pathlib import Path

from biograft.errors import ConfigError
from biograft.linking.config import LinkerConfig
from biograft.linking.detection.detector import GivenMentions, MentionDetector
from biograft.linking.detection.model import ModelDetector
from biograft.linking.detection.union import UnionDetector


def open_detector(folder: str | Path | None, config: LinkerConfig) -> MentionDetector | None:
    """Open what finds mentions besides names: a trained detector, the given mentions, or both."""
    trained = None
    if folder is not None:
        trained = ModelDetector.open(folder, config.mention_types)
    elif config.mention_types:
        raise ConfigError("mention_types: only a trained detector finds mentions of some types")
    if config.mentions not in ("given", "both"):
        return trained
    if config.mentions == "both":
        return GivenMentions() if trained is None else UnionDetector(GivenMentions(), trained)
    if trained is not None:
        raise ConfigError("mentions: 'given' are those of the documents; leave the detector out")
    return GivenMentions()

"""Every name of a knowledge base as something to learn, in a sentence about its concept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from biograft.corpus.mention_text import clean_name, clean_text, prompt_of
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.streams.naming import NamingExample
from biograft.streams.templates.config import NameTemplatesConfig
from biograft.streams.templates.groups import group
from biograft.streams.templates.wording import DEFINED, SEVERAL, SINGLE, Wording


@dataclass(frozen=True, slots=True)
class TemplateCounts:
    """What there is to learn from."""

    n_names: int
    """Names of all concepts, each text once in a concept: one example each."""
    n_concepts: int
    n_defined: int
    """Concepts with a definition."""
    n_several: int
    """Concepts without one, with several names."""
    n_single: int
    """Concepts of which only a name is known."""
    n_definitions: int

    def to_json(self) -> dict[str, int]:
        """Give the counts as plain values."""
        return asdict(self)


class NameTemplates:
    """Examples made when they are asked for: the target is the name of that number.

    Another name of the concept, drawn, is the mention; a concept's only name is both. What is said
    of the concept is drawn anew each epoch.
    """

    def __init__(self, kb: KnowledgeBase, config: NameTemplatesConfig | None = None) -> None:
        self.kb, self.config = kb, config or NameTemplatesConfig()
        self.groups = group(kb, self.config)
        if not len(self.groups.names):
            raise ConfigError("stream: the knowledge base has no name to learn")
        self._definitions = kb.table("definitions").column("text")
        self.counts = self._count()

    def __len__(self) -> int:
        return len(self.groups.names)

    def example(self, epoch: int, number: int) -> NamingExample:
        """Give an example as it is in an epoch."""
        draw = np.random.default_rng([self.config.seed, epoch, 1 + number])
        concept = self.groups.of_name(number)
        others = [place for place in self.groups.names_of(concept) if place != number]
        mention = others[int(draw.integers(len(others)))] if others else number
        definitions = self.groups.definitions_of(concept)
        wordings = DEFINED if definitions else SEVERAL if others else SINGLE
        wording = wordings[int(draw.integers(len(wordings)))]
        if definitions:
            known = self._define(definitions, wording, draw)
        else:
            unused = [place for place in others if place != mention]
            known = self._list(unused or [number], draw)  # of two names the other is to be given
        written = self._name(mention)
        return NamingExample(
            source=wording.write(written, known),
            prompt=prompt_of(written) if self.config.prompt else "",
            target=self._name(number),
        )

    def texts(self, most: int) -> Iterator[str]:
        """Give what is read and written in the first epoch, for a tokenizer to learn from.

        Of more than ``most`` examples, some evenly among all.
        """
        for number in np.linspace(0, len(self) - 1, min(most, len(self)), dtype=np.int64):
            example = self.example(0, int(number))
            yield example.source
            yield f"{example.prompt} {example.target}".strip()

    def _list(self, names: list[int], draw: np.random.Generator) -> str:
        """Write some of the names, drawn, one after the other."""
        n_chosen = min(self.config.max_synonyms, len(names))
        chosen = draw.choice(names, n_chosen, replace=False)
        return ", ".join(self._name(int(number)) for number in chosen)

    def _define(self, numbers: range, wording: Wording, draw: np.random.Generator) -> str:
        """Write some of the definitions, drawn; of long ones the words nearest the mention."""
        n_chosen = min(self.config.max_definitions, len(numbers))
        chosen = draw.choice(np.array(numbers), n_chosen, replace=False)
        words = " ".join(self._definition(int(number)) for number in chosen).split()
        most = self.config.definition_words
        return " ".join(words[:most] if wording.name_first else words[-most:])

    def _name(self, number: int) -> str:
        text = self.kb.name(int(self.groups.names[number])).text
        return clean_name(text, lower=self.config.lower)

    def _definition(self, number: int) -> str:
        text = self._definitions[int(self.groups.definitions[number])].as_py()
        return clean_text(text, lower=self.config.lower)

    def _count(self) -> TemplateCounts:
        n_names = np.diff(self.groups.name_ends, prepend=0)
        defined = np.diff(self.groups.definition_ends, prepend=0) > 0
        several = ~defined & (n_names > 1)
        return TemplateCounts(
            n_names=len(self),
            n_concepts=len(n_names),
            n_defined=int(defined.sum()),
            n_several=int(several.sum()),
            n_single=int((~defined & ~several).sum()),
            n_definitions=len(self.groups.definitions),
        )

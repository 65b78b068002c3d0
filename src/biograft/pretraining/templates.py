"""The sentences themselves, in the words of the paper (its Table 1).

Each says something of a concept: ``c`` is what is known of it, its marked name stands before or
behind that. Which one is written is drawn, all of a kind alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from biograft.corpus.mention_text import END, PUNCTUATION, START, clean_name, clean_text, prompt_of
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.objectives.name_examples import NameExample
from biograft.pretraining.stream_configs import NameTemplatesConfig
from biograft.pretraining.synonym_pairs import language_codes


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence with a gap: ``words`` between the name and what is known of it."""

    words: str
    name_first: bool

    def write(self, name: str, known: str) -> str:
        """Fill the gaps."""
        marked = f"{START} {name} {END}"
        first, last = (marked, known) if self.name_first else (known, marked)
        return f"{first} {self.words} {last}"


DEFINED = (
    Template("is defined as", name_first=True),
    Template("is described as", name_first=True),
    Template("are the definitions of", name_first=False),
    Template("describe", name_first=False),
)
"""Of concepts with a definition."""

SEVERAL = (
    Template("are the synonyms of", name_first=False),
    Template("indicate the same concept as", name_first=False),
    Template("has synonyms such as", name_first=True),
    Template("refers to the same concepts as", name_first=True),
)
"""Of concepts without a definition but with several names."""

SINGLE = (
    Template("is", name_first=False),
    Template("is the same as", name_first=False),
    Template("is", name_first=True),
    Template("is the same as", name_first=True),
)
"""Of concepts of which nothing but one name is known."""


Rows = npt.NDArray[np.uint32]
Ends = npt.NDArray[np.int64]

_SIGNS = rf"[{re.escape(PUNCTUATION)}\s]+"


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows of the tables of names and of definitions, those of one concept together."""

    names: Rows
    name_ends: Ends
    """Where the names of each concept end; only concepts with names are here."""
    definitions: Rows
    definition_ends: Ends
    """The same of the same concepts."""

    def of_name(self, number: int) -> int:
        """Find the concept of a name, both by their numbers here."""
        return int(np.searchsorted(self.name_ends, number, side="right"))

    def names_of(self, concept: int) -> range:
        """Give the numbers of a concept's names."""
        return _range(self.name_ends, concept)

    def definitions_of(self, concept: int) -> range:
        """Give the numbers of a concept's definitions."""
        return _range(self.definition_ends, concept)


def group(kb: KnowledgeBase, config: NameTemplatesConfig) -> Groups:
    """Group what a store has in the languages wanted; a concept has each text once."""
    codes = language_codes(kb, config.languages) if config.languages else None
    names = _texts(kb, "names", codes)
    names = _each_once(names, _cleaned(pl.col("text"), lower=config.lower))
    definitions = _each_once(
        _texts(kb, "definitions", codes),
        _lowered(pl.col("text").str.strip_chars(), lower=config.lower),
    )
    concepts, name_ends = _ends(names["concept"].to_numpy())
    of_definitions = definitions["concept"].to_numpy()
    known = np.isin(of_definitions, concepts)
    return Groups(
        names["row"].to_numpy(),
        name_ends,
        definitions["row"].to_numpy()[known],
        np.searchsorted(of_definitions[known], concepts, side="right").astype(np.int64),
    )


def _texts(kb: KnowledgeBase, table: str, codes: list[int] | None) -> pl.DataFrame:
    """Give ``row, concept, text`` of a table, sorted by concept, which is the store's own order."""
    columns = kb.table(table).select(["concept", "language", "text"])
    texts = pl.DataFrame(pl.from_arrow(columns)).with_row_index("row")
    return texts if codes is None else texts.filter(pl.col("language").is_in(codes))


def _each_once(texts: pl.DataFrame, written: pl.Expr) -> pl.DataFrame:
    """Keep the first of equal texts of a concept, and none that is empty."""
    kept = texts.select("row", "concept", text=written).filter(pl.col("text") != "")
    kept = kept.unique(["concept", "text"], keep="first", maintain_order=True)
    return kept.select("row", "concept")


def _cleaned(text: pl.Expr, *, lower: bool) -> pl.Expr:
    """Write names as ``clean_name`` does, a whole column at once; to find equal ones."""
    cased = _lowered(text, lower=lower)
    cleaned = cased.str.replace_all(_SIGNS, " ").str.strip_chars()
    return pl.when(cleaned == "").then(cased.str.strip_chars()).otherwise(cleaned)


def _lowered(text: pl.Expr, *, lower: bool) -> pl.Expr:
    return text.str.to_lowercase() if lower else text


def _ends(concepts: Rows) -> tuple[Rows, Ends]:
    """Give the concepts, ascending, and where the rows of each end."""
    found, counts = np.unique(concepts, return_counts=True)
    return found, np.cumsum(counts, dtype=np.int64)


def _range(ends: Ends, row: int) -> range:
    return range(int(ends[row - 1]) if row else 0, int(ends[row]))


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

    def example(self, epoch: int, number: int) -> NameExample:
        """Give an example as it is in an epoch."""
        rng = np.random.default_rng([self.config.seed, epoch, 1 + number])
        concept = self.groups.of_name(number)
        others = [place for place in self.groups.names_of(concept) if place != number]
        mention = others[int(rng.integers(len(others)))] if others else number
        definitions = self.groups.definitions_of(concept)
        wordings = DEFINED if definitions else SEVERAL if others else SINGLE
        wording = wordings[int(rng.integers(len(wordings)))]
        if definitions:
            known = self._define(definitions, wording, rng)
        else:
            unused = [place for place in others if place != mention]
            known = self._list(unused or [number], rng)  # of two names the other is to be given
        written = self._name(mention)
        return NameExample(
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

    def _list(self, names: list[int], rng: np.random.Generator) -> str:
        """Write some of the names, drawn, one after the other."""
        n_chosen = min(self.config.max_synonyms, len(names))
        chosen = rng.choice(names, n_chosen, replace=False)
        return ", ".join(self._name(int(number)) for number in chosen)

    def _define(self, numbers: range, wording: Template, rng: np.random.Generator) -> str:
        """Write some of the definitions, drawn; of long ones the words nearest the mention."""
        n_chosen = min(self.config.max_definitions, len(numbers))
        chosen = rng.choice(np.array(numbers), n_chosen, replace=False)
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

"""The data sets of entity linking: gold mentions, and the dictionary that is searched.

A dictionary holds nothing of a test split except what its publishers put there. Paths are relative
to the folder of real data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from biograft.errors import ConfigError, nearest
from biograft.evaluation import Gold, GoldConfig, TextIndex, read_gold
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft_lab.replication.linking_dictionaries import (
    HPO_TRANSLATIONS,
    IDS,
    LINKING,
    MENTIONS,
    NAMES,
    OF_SPLIT,
    ONTOLOGY,
    PUBLISHED,
    TRANSLATIONS,
    MakeSource,
    askapatient_file,
    biosyn_file,
    chemicals,
    chemicals_extended,
    chemicals_with_mentions,
    diseases_extended,
    hpo,
    hpo_of_split,
    hpo_translated,
    medic_file,
    open_umls,
    part_of,
    procedures,
    procedures_with_terms,
)

SPLITS = ("train", "dev", "test")
N_FOLDS = 5
_IN_TAR = "::"
_CDR = {
    "train": "bc5cdr/pubtator/CDR_TrainingSet.PubTator.txt.gz",
    "dev": "bc5cdr/pubtator/CDR_DevelopmentSet.PubTator.txt.gz",
    "test": "bc5cdr/pubtator/CDR_TestSet.PubTator.txt.gz",
}
_NCBI = {
    "train": "ncbi_disease/original/NCBItrainset_corpus.txt.gz",
    "dev": "ncbi_disease/original/NCBIdevelopset_corpus.txt",
    "test": "ncbi_disease/original/NCBItestset_corpus.txt",
}


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Recipe of a dictionary, and whether each split has its own."""

    source: MakeSource
    by_split: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingSet:
    """Gold mentions with their dictionaries."""

    name: str
    format: str
    gold: Mapping[str, str]
    """Split -> path of its gold mentions."""
    dictionaries: Mapping[str, Dictionary]
    """By name; the published one is used unless another is named."""
    config: GoldConfig = field(default_factory=GoldConfig)
    note: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Split -> path of its documents, where the gold mentions have only offsets."""
    raw: str = ""
    """The set with the mentions as annotated in texts, where these were edited; else itself."""
    by_concept: bool = False
    """All splits are in one file; a mention belongs to the split of its concept."""
    shared: str = ""
    """The name of its dictionaries, where several sets have the same ones; else its own name."""
    drops: tuple[str, ...] = ()
    """Kinds of queries that are left out, and counted, before a linker is judged (``DROPS``)."""

    @property
    def own_dictionaries(self) -> bool:
        """Whether each split has a published dictionary of its own."""
        return self.dictionaries[PUBLISHED].by_split

    def read_gold(self, data: Path, split: str, *, with_texts: bool = False) -> Gold:
        """Read the gold mentions of a split, with their texts if those are in other files."""
        paths = [data / self.texts[split]] if with_texts and self.texts else ()
        path = str(data / self.gold[split])
        gold = read_gold(path, self.format, self.config, TextIndex.read(paths))
        if not self.by_concept:
            return gold
        chosen = [query for query in gold.queries if split in map(part_of, query.gold)]
        gold.log.filter("of another split", len(gold.queries) - len(chosen))
        return replace(gold, queries=tuple(chosen))

    def exists(self, data: Path, split: str) -> bool:
        """Return whether the files of a split exist."""
        return (data / self.gold[split].partition(_IN_TAR)[0]).exists()

    def open_store(
        self, data: Path, split: str, work: Path, dictionary: str = PUBLISHED
    ) -> KnowledgeBase:
        """Open the store of a dictionary, building it first if needed."""
        folder = self.folder(work, split, dictionary)
        if not (folder / "kb").exists():
            folder.mkdir(parents=True, exist_ok=True)
            source = self.dictionaries[dictionary].source(data, split, folder)
            build_store(BuildConfig(sources=(source,)), folder / "kb")
        return KnowledgeBase.open(folder / "kb")

    def folder(self, work: Path, split: str, dictionary: str = PUBLISHED) -> Path:
        """Return the folder of everything made from a dictionary."""
        if dictionary not in self.dictionaries:
            known = nearest(dictionary, self.dictionaries)
            raise ConfigError(f"{self.name}: has no dictionary {dictionary!r}; {known}")
        parts = [self.shared or self.name]
        parts += [dictionary] if dictionary != PUBLISHED else []
        parts += [split] if self.dictionaries[dictionary].by_split else []
        return work / "-".join(parts)


def _diseases(
    name: str, folder: str, texts: Mapping[str, str], config: GoldConfig
) -> tuple[LinkingSet, LinkingSet]:
    """A set as BioSyn has edited it, and the mentions as they are in their texts.

    BioSyn's mentions are in an archive, with a dictionary for each split.
    """
    published, ontology = biosyn_file(folder), medic_file(folder)
    dictionaries = {
        ONTOLOGY: Dictionary(ontology),
        ONTOLOGY + NAMES: Dictionary(diseases_extended(ontology)),
        PUBLISHED: Dictionary(published, by_split=True),
        PUBLISHED + NAMES: Dictionary(diseases_extended(published), by_split=True),
    }
    archive = f"{LINKING}/{folder}/concept_files.tar.gz{_IN_TAR}processed_"
    paths = {split: f"{LINKING}/{path}" for split, path in texts.items()}
    edited = LinkingSet(
        name=name,
        format="biosyn",
        gold={split: f"{archive}{split}" for split in SPLITS},
        dictionaries=dictionaries,
        texts=paths,
        raw=f"{name}-text",
    )
    raw = LinkingSet(
        name=f"{name}-text",
        format="pubtator",
        gold=paths,
        dictionaries=dictionaries,
        config=config,
    )
    return edited, raw


def _bc5cdr_chemical() -> LinkingSet:
    gold = {split: f"{LINKING}/{path}" for split, path in _CDR.items()}
    mentions = chemicals_with_mentions(gold.__getitem__)
    extended = chemicals_with_mentions(gold.__getitem__, extended=True)
    joined = chemicals_with_mentions(gold.__getitem__, extended=True, join=True)
    return LinkingSet(
        name="bc5cdr-chemical",
        format="pubtator",
        gold=gold,
        dictionaries={
            ONTOLOGY: Dictionary(chemicals),
            ONTOLOGY + NAMES: Dictionary(chemicals_extended),
            PUBLISHED: Dictionary(mentions, by_split=True),
            PUBLISHED + NAMES: Dictionary(extended, by_split=True),
            PUBLISHED + NAMES + IDS: Dictionary(joined, by_split=True),
        },
        config=GoldConfig(types=("Chemical",)),
        note="dictionary derived from open MeSH tables, smaller than the published one",
    )


def _askapatient(fold: int) -> LinkingSet:
    prefix = f"{LINKING}/askapatient/AskAPatient.fold-{fold}"
    train = f"{prefix}.train.txt"
    return LinkingSet(
        name=f"askapatient-{fold}",
        format="aap",
        gold={"train": train, "dev": f"{prefix}.validation.txt", "test": f"{prefix}.test.txt"},
        dictionaries={
            ONTOLOGY: Dictionary(askapatient_file(train, phrases=False)),
            PUBLISHED: Dictionary(askapatient_file(train, phrases=True)),
        },
        note="dictionary: concept names and phrases of the train split, which recur in the others",
    )


def _procedures() -> LinkingSet:
    gold = {split: f"zh/term_normalisation/procedures_{split}.tsv" for split in SPLITS}
    with_terms = procedures_with_terms(gold.__getitem__)
    return LinkingSet(
        name="zh-procedures",
        format="procedures",
        gold=gold,
        dictionaries={
            ONTOLOGY: Dictionary(procedures),
            PUBLISHED: Dictionary(procedures),
            PUBLISHED + MENTIONS: Dictionary(with_terms, by_split=True),
        },
    )


def _hpo(language: str) -> LinkingSet:
    return LinkingSet(
        name=f"hpo-{language}",
        format="babelon",
        gold=dict.fromkeys(SPLITS, f"ontologies/{HPO_TRANSLATIONS[language]}"),
        dictionaries={
            PUBLISHED: Dictionary(hpo),
            OF_SPLIT: Dictionary(hpo_of_split, by_split=True),
            PUBLISHED + TRANSLATIONS: Dictionary(hpo_translated),
        },
        note="translated labels of HPO, linked to its English names of 2013 (dictionary 'split': "
        "of the concepts of the split alone); labels of newer concepts are left out",
        by_concept=True,
        shared="hpo",
        drops=("unknown-ids",),
    )


def _xlbel(language: str) -> LinkingSet:
    gold = {"test": f"{LINKING}/xl_bel/{language}_1k_test_query_with_context.txt"}
    return LinkingSet(
        name=f"xlbel-{language}",
        format="xlbel",
        gold=gold,
        dictionaries={PUBLISHED: Dictionary(open_umls)},
        shared="xlbel",
        note="without UMLS: dictionary of the UMLS ids in HPO, DO and Mondo with translations; "
        "a query whose concept is not in it counts as wrong, so coverage is the ceiling",
    )


def _by_name(sets: Iterable[LinkingSet]) -> dict[str, LinkingSet]:
    return {each.name: each for each in sets}


SETS = _by_name(
    [
        *_diseases("ncbi-disease", "ncbi_disease/biosyn", _NCBI, GoldConfig()),
        *_diseases("bc5cdr-disease", "bc5cdr/biosyn_disease", _CDR, GoldConfig(types=("Disease",))),
        _bc5cdr_chemical(),
        *map(_askapatient, range(N_FOLDS)),
        _procedures(),
        *map(_hpo, HPO_TRANSLATIONS),
        *map(_xlbel, ("en", "es", "zh")),
    ]
)

"""The data sets of entity linking: gold mentions, and the dictionary that is searched.

A dictionary holds nothing of a test split except what its publishers put there. Paths are relative
to the folder of real data.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from biograft.artifacts import new_file
from biograft.errors import ConfigError
from biograft.evaluation import Gold, GoldConfig, LinkQuery, TextIndex, read_gold
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.linking.queries import is_name_of
from biograft.sources import SourceConfig
from biograft.sources.files import read_lines

LINKING = "entity_linking"
SPLITS = ("train", "dev", "test")
N_FOLDS = 5
MAX_ADDED = 0.01
"""BioSyn's dictionary of dev joins parts of train mentions to names of dev mentions (0.1 %)."""
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
_UMLS = ("UMLS:", "UMLS_CUI:")

MakeSource = Callable[[Path, str, Path], SourceConfig]
"""Returns the dictionary, given the folder of data, the split, and a folder to write in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingSet:
    """Gold mentions with their dictionary."""

    name: str
    format: str
    gold: Mapping[str, str]
    """Split -> path of its gold mentions."""
    source: MakeSource
    own_dictionaries: bool = False
    """Whether each split has a dictionary of its own."""
    config: GoldConfig = field(default_factory=GoldConfig)
    note: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Split -> path of its documents, where the gold mentions have only offsets."""

    def read_gold(self, data: Path, split: str, *, with_texts: bool = False) -> Gold:
        """Read the gold mentions of a split, with their texts if those are in other files."""
        paths = [data / self.texts[split]] if with_texts and self.texts else ()
        path = str(data / self.gold[split])
        return read_gold(path, self.format, self.config, TextIndex.read(paths))

    def exists(self, data: Path, split: str) -> bool:
        """Return whether the files of a split exist."""
        return (data / self.gold[split].partition(_IN_TAR)[0]).exists()

    def open_store(self, data: Path, split: str, work: Path) -> KnowledgeBase:
        """Open the store of the dictionary, building it first if needed."""
        folder = self.folder(work, split)
        if not (folder / "kb").exists():
            folder.mkdir(parents=True, exist_ok=True)
            build_store(BuildConfig(sources=(self.source(data, split, folder),)), folder / "kb")
        return KnowledgeBase.open(folder / "kb")

    def folder(self, work: Path, split: str) -> Path:
        """Return the folder of everything made from the dictionary."""
        return work / (f"{self.name}-{split}" if self.own_dictionaries else self.name)

    def check_fitting(
        self, data: Path, split: str, kb: KnowledgeBase, queries: Sequence[LinkQuery], work: Path
    ) -> None:
        """Refuse to fit on mentions of a split that the dictionary has as names because of it.

        Such a name is neither in the dictionary of the train split, which is the ontology alone,
        nor a mention of an earlier split.
        """
        earlier = {
            part.lower()
            for name in SPLITS[: SPLITS.index(split)]
            for query in self.read_gold(data, name).queries
            for part in query.parts
        }
        added = names_added(kb, self.open_store(data, "train", work), queries, earlier)
        if len(added) > MAX_ADDED * len(queries):
            raise ConfigError(
                f"{self.name}: {len(added):,} {split} mentions, such as {added[0]!r}, are names of "
                "the dictionary only because they are mentions; fit with the dictionary of that "
                "split"
            )


def names_added(
    kb: KnowledgeBase,
    ontology: KnowledgeBase,
    queries: Iterable[LinkQuery],
    known: Collection[str] = (),
) -> list[str]:
    """Return mentions that are names of their concept in a store, but not in its ontology.

    Mentions that are ``known``, in lower case, are allowed.
    """
    return [
        part
        for query in queries
        for part in query.parts
        if part.lower() not in known
        and is_name_of(kb, part, query.gold)
        and not is_name_of(ontology, part, query.gold)
    ]


def _biosyn(name: str, folder: str, texts: Mapping[str, str]) -> LinkingSet:
    """A set in the layout of BioSyn: mentions in an archive, a dictionary for each split."""

    def source(data: Path, split: str, work: Path) -> SourceConfig:
        del work  # the dictionary is used as it is
        path = data / LINKING / folder / f"{split}_dictionary.txt.gz"
        return SourceConfig(path=path, format="biosyn")

    archive = f"{LINKING}/{folder}/concept_files.tar.gz{_IN_TAR}processed_"
    gold = {split: f"{archive}{split}" for split in SPLITS}
    return LinkingSet(
        name=name,
        format="biosyn",
        gold=gold,
        source=source,
        own_dictionaries=True,
        texts={split: f"{LINKING}/{path}" for split, path in texts.items()},
    )


def _in_text(name: str, biosyn: str, gold: Mapping[str, str], config: GoldConfig) -> LinkingSet:
    """The mentions of a set in their texts, with BioSyn's dictionaries."""
    return LinkingSet(
        name=name,
        format="pubtator",
        gold={split: f"{LINKING}/{path}" for split, path in gold.items()},
        source=_biosyn(name, biosyn, gold).source,
        own_dictionaries=True,
        config=config,
    )


def _chemicals(data: Path, split: str, work: Path) -> SourceConfig:
    del split, work  # one dictionary, used as it is
    path = data / LINKING / "mesh" / "mesh_chemical_names_derived.tsv.gz"
    return SourceConfig(path=path, format="table", columns={"id": "mesh_id", "name": "name"})


def _procedures(data: Path, split: str, work: Path) -> SourceConfig:
    del split, work  # one code table, used as it is
    path = data / "zh" / "term_normalisation" / "procedure_codes.tsv"
    return SourceConfig(
        path=path, format="table", language="zh", columns={"id": "#1", "name": "#2"}
    )


def _askapatient(fold: int) -> LinkingSet:
    prefix = f"{LINKING}/askapatient/AskAPatient.fold-{fold}"

    def source(data: Path, split: str, work: Path) -> SourceConfig:
        del split  # one dictionary, of the train split
        write_train_dictionary(data / f"{prefix}.train.txt", work / "dictionary.txt")
        return SourceConfig(path=work / "dictionary.txt", format="biosyn")

    return LinkingSet(
        name=f"askapatient-{fold}",
        format="aap",
        gold={
            "train": f"{prefix}.train.txt",
            "dev": f"{prefix}.validation.txt",
            "test": f"{prefix}.test.txt",
        },
        source=source,
        note="dictionary: concept names and phrases of the train split, which recur in the others",
    )


def write_train_dictionary(train: Path, path: Path) -> None:
    """Write the concepts of an AskAPatient file as ``id||name``: their own names, then phrases."""
    names: dict[str, None] = {}
    phrases: dict[str, None] = {}
    for _, line in read_lines(train, "cp1252"):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) == 3 and all(cells):
            names[f"{cells[0]}||{cells[1]}"] = None
            phrases[f"{cells[0]}||{cells[2]}"] = None
    with new_file(path, overwrite=True) as file:
        file.writelines(f"{line}\n".encode() for line in {**names, **phrases})


def _xlbel(language: str) -> LinkingSet:
    gold = {"test": f"{LINKING}/xl_bel/{language}_1k_test_query_with_context.txt"}
    return LinkingSet(
        name=f"xlbel-{language}",
        format="xlbel",
        gold=gold,
        source=_open_umls,
        note="without UMLS: dictionary of the UMLS ids in HPO, DO and Mondo with translations; "
        "a query whose concept is not in it counts as wrong, so coverage is the ceiling",
    )


def _open_umls(data: Path, split: str, work: Path) -> SourceConfig:
    del split  # one dictionary
    ontologies, path = data / "ontologies", work / "dictionary.tsv"
    folder, columns = ontologies / "translations", ("subject_id", "translation_value")
    translations = [
        _translation(folder / f"hp-{language}.babelon.tsv.gz", *columns, language)
        for language in ("zh", "es")
    ]
    spanish = folder / "doid-es-translated.tsv.gz"
    translations.append(_translation(spanish, "source_id", "translation_text", "es"))
    obo = [
        SourceConfig(path=ontologies / "obo" / name, format="obo")
        for name in ("hp.obo.gz", "HumanDO_2015.obo.gz")
    ]
    if not (work / "ontologies").exists():
        build_store(BuildConfig(sources=(*obo, *translations)), work / "ontologies")
    mondo = ontologies / "sssom" / "mondo_exactmatch_umls.sssom.tsv.gz"
    lines = dict.fromkeys([*names_by_cui(KnowledgeBase.open(work / "ontologies")), *_mondo(mondo)])
    with new_file(path, overwrite=True) as file:
        file.writelines(
            "\t".join(line).encode() + b"\n" for line in [("id", "name", "language"), *lines]
        )
    return SourceConfig(path=path, format="table")


def _translation(path: Path, concept: str, name: str, language: str) -> SourceConfig:
    columns = {"id": concept, "name": name}
    return SourceConfig(path=path, format="table", language=language, columns=columns)


def names_by_cui(base: KnowledgeBase) -> Iterator[tuple[str, str, str]]:
    """Return UMLS id, name and language for every name of a concept that refers to UMLS."""
    for concept in base:
        for other in concept.ids:
            if other.id.startswith(_UMLS):
                cui = other.id.partition(":")[2]
                yield from ((cui, name.text, name.language) for name in concept.names)


def _mondo(path: Path) -> Iterator[tuple[str, str, str]]:
    lines = (line for _, line in read_lines(path) if not line.startswith("#"))
    for row in csv.DictReader(lines, delimiter="\t"):
        yield row["object_id"].partition(":")[2], row["subject_label"], "en"


def _by_name(sets: Iterable[LinkingSet]) -> dict[str, LinkingSet]:
    return {each.name: each for each in sets}


SETS = _by_name(
    [
        _biosyn("ncbi-disease", "ncbi_disease/biosyn", _NCBI),
        _biosyn("bc5cdr-disease", "bc5cdr/biosyn_disease", _CDR),
        _in_text("ncbi-disease-text", "ncbi_disease/biosyn", _NCBI, GoldConfig()),
        _in_text(
            "bc5cdr-disease-text", "bc5cdr/biosyn_disease", _CDR, GoldConfig(types=("Disease",))
        ),
        LinkingSet(
            name="bc5cdr-chemical",
            format="pubtator",
            gold={split: f"{LINKING}/{path}" for split, path in _CDR.items()},
            source=_chemicals,
            config=GoldConfig(types=("Chemical",)),
            note="dictionary derived from open MeSH tables, smaller than the published one",
        ),
        *map(_askapatient, range(N_FOLDS)),
        LinkingSet(
            name="zh-procedures",
            format="procedures",
            gold={
                split: f"zh/term_normalisation/procedures_{split}.tsv"
                for split in ("train", "dev", "test")
            },
            source=_procedures,
        ),
        *map(_xlbel, ("en", "es", "zh")),
    ]
)

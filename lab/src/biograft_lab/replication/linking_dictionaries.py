"""The dictionaries of linking sets: which names a search may find for each concept.

An *ontology* dictionary has the names of an ontology and no mention of any split. A *published*
one has, besides, the mentions of the splits before the evaluated one, as those of the papers.
Either may be extended by names that other ontologies have for the same concepts, found by
cross-reference.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from biograft.artifacts import new_file
from biograft.evaluation import GoldConfig, read_gold
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.names import normalise
from biograft.kb.records import IdKind, NameKind
from biograft.kb.sources import SourceConfig
from biograft.kb.sources.babelon import read_names
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.log import ReadLog
from biograft.kb.vocabularies import canonical_id

LINKING = "entity_linking"
ONTOLOGY, PUBLISHED = "ontology", "published"
NAMES = "+names"
"""Ends the name of a dictionary that is extended by cross-reference."""
IDS = "+ids"
"""Ends the name of a dictionary whose concepts also have the ids that only mentions know."""
MENTIONS = "+mentions"
"""Ends the name of a dictionary that is extended by the mentions of earlier splits."""
OF_SPLIT = "split"
"""A dictionary of the concepts of one split alone, small enough for a slow encoder."""
TRANSLATIONS = "+translations"
"""Ends the name of a dictionary that is extended by the translations of training concepts."""
MakeSource = Callable[[Path, str, Path], SourceConfig]
"""Returns the dictionary, given the folder of data, the split, and a folder to write in."""

_CHEMICALS = f"{LINKING}/mesh/mesh_chemical_names_derived.tsv.gz"
_ENTRY_TERMS = f"{LINKING}/mesh/mesh_descriptors_2019_entry_terms.tsv.gz"
_DISEASES = ("HumanDO_2015", "DO_rare_slim", "NCIthesaurus_DO_subset", "hp")
_UMLS = ("UMLS:", "UMLS_CUI:")
_MESH_ID, _OMIM_ID = re.compile(r"[CD]\d{6,9}"), re.compile(r"OMIM:(\d{6})")
_MEANT = (NameKind.PREFERRED, NameKind.SYNONYM)
"""Names that mean the concept itself: not a broader, narrower or related one."""
Line = tuple[str, str]
"""A concept, which may be several ids joined by ``|``, and a name."""


def biosyn_file(folder: str) -> MakeSource:
    """Return the dictionary that BioSyn publishes for a split."""

    def source(data: Path, split: str, work: Path) -> SourceConfig:
        del work  # used as it is
        path = data / LINKING / folder / f"{split}_dictionary.txt.gz"
        return SourceConfig(path=path, format="biosyn")

    return source


def medic_file(folder: str) -> MakeSource:
    """Return BioSyn's dictionary of the train split, which is MEDIC without any mention."""
    published = biosyn_file(folder)
    return lambda data, split, work: published(data, "train", work)


def diseases_extended(base: MakeSource) -> MakeSource:
    """Return a dictionary of diseases with the names that MeSH 2019, DO, HPO and Mondo add."""

    def source(data: Path, split: str, work: Path) -> SourceConfig:
        path = base(data, split, work).path
        lines = [_parse(line) for _, line in read_lines(path) if line.strip()]
        extended = extend(lines, _disease_names(data, work))
        return _write([*lines, *extended], work)

    return source


def chemicals(data: Path, split: str, work: Path) -> SourceConfig:
    """Return the names of chemicals in MeSH and in what it maps to, without mentions."""
    del split, work  # one dictionary, used as it is
    columns = {"id": "mesh_id", "name": "name"}
    return SourceConfig(path=data / _CHEMICALS, format="table", columns=columns)


def chemicals_with_mentions(
    gold: Callable[[str], str], *, extended: bool = False, join: bool = False
) -> MakeSource:
    """Return the chemicals with the mentions of earlier splits; ``gold`` has the path of a split.

    A mention of several chemicals is no name of any of them, and left out. With ``join``, ids that
    only mentions have are joined to the concepts that these mentions name.
    """

    def source(data: Path, split: str, work: Path) -> SourceConfig:
        lines = _chemical_lines(data, extended=extended)
        splits, mentions = ("train", "dev", "test"), []
        for earlier in splits[: splits.index(split)]:
            path = data / gold(earlier)
            queries = read_gold(path, "pubtator", GoldConfig(types=("Chemical",))).queries
            mentions += [(next(iter(q.gold)), q.mention) for q in queries if not q.is_composite]
        return _write(join_ids(lines, mentions) if join else [*lines, *mentions], work)

    return source


def join_ids(lines: Iterable[Line], mentions: Iterable[Line]) -> list[Line]:
    """Return names and mentions, with the ids that only mentions have joined to a concept.

    Such an id is often an earlier one: MeSH makes supplementary concepts descriptors, with new ids.
    It is joined if those of its mentions that are names are names of exactly one concept.
    """
    lines, mentions = list(lines), list(mentions)
    named: defaultdict[str, set[str]] = defaultdict(set)
    for concept, name in lines:
        named[clean(name)].add(concept)
    known = {concept for concept, _ in lines}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for concept, name in mentions:
        if concept not in known:
            found[concept] |= named.get(clean(name), set())
    joined: defaultdict[str, list[str]] = defaultdict(list)
    for concept, others in found.items():
        if len(others) == 1:
            joined[next(iter(others))].append(concept)
    ids = {concept: "|".join([concept, *more]) for concept, more in joined.items()}
    ids |= {each: ids[concept] for concept, more in joined.items() for each in more}
    return [(ids.get(concept, concept), name) for concept, name in [*lines, *mentions]]


def chemicals_extended(data: Path, split: str, work: Path) -> SourceConfig:
    """Return the chemicals with the entry terms of MeSH 2019."""
    del split  # one dictionary
    return _write(_chemical_lines(data, extended=True), work)


def _chemical_lines(data: Path, *, extended: bool) -> list[Line]:
    rows = (line.split("\t") for _, line in read_lines(data / _CHEMICALS))
    next(rows)  # the header
    lines = [(cells[0], cells[1]) for cells in rows if len(cells) > 1]
    return [*lines, *extend(lines, _entry_terms(data))] if extended else lines


def procedures(data: Path, split: str, work: Path) -> SourceConfig:
    """Return the code table of procedures in Chinese, which has no mentions."""
    del split, work  # one code table, used as it is
    path = data / "zh" / "term_normalisation" / "procedure_codes.tsv"
    return SourceConfig(
        path=path, format="table", language="zh", columns={"id": "#1", "name": "#2"}
    )


def procedures_with_terms(gold: Callable[[str], str]) -> MakeSource:
    """Return the code table with the raw terms of earlier splits as names of what they mean.

    A term of several procedures is no name of any of them, and left out.
    """

    def source(data: Path, split: str, work: Path) -> SourceConfig:
        rows = [line.split("\t") for _, line in read_lines(procedures(data, split, work).path)]
        lines = [(cells[0], cells[1]) for cells in rows if len(cells) > 1]
        code_of = {name: code for code, name in reversed(lines)}
        for earlier in ("train", "dev", "test")[: ("train", "dev", "test").index(split)]:
            queries = read_gold(data / gold(earlier), "procedures").queries
            named = [(q.gold_names[0], q.mention) for q in queries if len(q.gold_names) == 1]
            lines += [(code_of[name], term) for name, term in named if name in code_of]
        return replace(_write(lines, work), language="zh")

    return source


def askapatient_file(train: str, *, phrases: bool) -> MakeSource:
    """Return the concepts of a fold's train split, with or without the phrases of patients."""

    def source(data: Path, split: str, work: Path) -> SourceConfig:
        del split  # one dictionary, of the train split
        write_train_dictionary(data / train, work / "dictionary.txt", phrases=phrases)
        return SourceConfig(path=work / "dictionary.txt", format="biosyn")

    return source


def write_train_dictionary(train: Path, path: Path, *, phrases: bool = True) -> None:
    """Write the concepts of an AskAPatient file as ``id||name``: their own names, then phrases."""
    names: dict[str, None] = {}
    mentioned: dict[str, None] = {}
    for _, line in read_lines(train, "cp1252"):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) == 3 and all(cells):
            names[f"{cells[0]}||{cells[1]}"] = None
            mentioned[f"{cells[0]}||{cells[2]}"] = None
    with new_file(path, overwrite=True) as file:
        lines = {**names, **mentioned} if phrases else names
        file.writelines(f"{line}\n".encode() for line in lines)


# ---- names by cross-reference


def extend(lines: Iterable[Line], more: Iterable[tuple[tuple[str, ...], str]]) -> list[Line]:
    """Return what other ontologies add to a dictionary: a name for the one concept it refers to.

    ``more`` has, for each name, the ids that its concept refers to. A name is added if these are
    ids of exactly one concept of the dictionary, and no concept has it already. It is written as
    BioSyn's dictionaries write names.
    """
    concepts: defaultdict[str, set[str]] = defaultdict(set)
    taken = set()
    for concept, name in lines:
        taken.add(clean(name))
        for each in {concept, *concept.split("|")}:
            concepts[each].add(concept)
    added: dict[str, set[str]] = {}
    for ids, name in more:
        found = {concept for each in ids for concept in _concepts_of(each, concepts)}
        if len(found) == 1 and (text := clean(name)) and text not in taken:
            added.setdefault(text, set()).update(found)
    return [(next(iter(of)), name) for name, of in added.items() if len(of) == 1]


def _concepts_of(identifier: str, concepts: dict[str, set[str]]) -> set[str]:
    """Return the concept with just this id, else all that have it among others."""
    found = concepts.get(identifier, set())
    return {identifier} if identifier in found else found


def clean(name: str) -> str:
    """Write a name as BioSyn's dictionaries do: in lower case, without punctuation.

    >>> clean("Abdomens, Acute")
    'abdomens acute'
    """
    return " ".join(re.sub(r"[^\w\s]", " ", normalise(name)).split())


def _disease_names(data: Path, work: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    yield from _entry_terms(data)
    folder = data / "ontologies"
    sources = tuple(
        SourceConfig(path=folder / "obo" / f"{name}.obo.gz", format="obo") for name in _DISEASES
    )
    if not (work / "diseases").exists():
        build_store(BuildConfig(sources=sources), work / "diseases")
    for concept in KnowledgeBase.open(work / "diseases"):
        ids = disease_ids(other.id for other in concept.ids if other.kind == IdKind.XREF)
        yield from ((ids, name.text) for name in concept.names if name.kind in _MEANT)
    for identifier, label in _sssom(folder / "sssom" / "mondo_exactmatch_mesh.sssom.tsv"):
        yield (identifier,), label


def disease_ids(xrefs: Iterable[str]) -> tuple[str, ...]:
    """Return the MeSH ids among cross-references, else those of OMIM, as MEDIC writes them.

    One disease of DO often refers to one descriptor, and to many genetic forms of it in OMIM.

    >>> disease_ids(["MSH:D006394", "OMIM:106070"]), disease_ids(["OMIM:106070", "UMLS:C1"])
    (('D006394',), ('106070',))
    """
    ids = [canonical_id(xref) for xref in xrefs]
    mesh = tuple(each for each in ids if _MESH_ID.fullmatch(each))
    return mesh or tuple(found[1] for each in ids if (found := _OMIM_ID.fullmatch(each)))


def _entry_terms(data: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Return the names of MeSH descriptors of 2019."""
    for _, line in read_lines(data / _ENTRY_TERMS):
        cells = line.split("\t")
        names = [cells[1], *(cells[2].split("|") if len(cells) > 2 else ())]
        yield from (((cells[0],), name) for name in names if name)


def _parse(line: str) -> Line:
    concept, _, name = line.partition("||")
    return concept.strip(), name.strip()


def _write(lines: Iterable[Line], work: Path) -> SourceConfig:
    path = work / "dictionary.txt"
    with new_file(path, overwrite=True) as file:
        for concept, name in dict.fromkeys(lines):
            file.write(f"{concept}||{name}\n".encode())
    return SourceConfig(path=path, format="biosyn")


# ---- an English ontology for mentions in other languages

HPO_TRANSLATIONS = {
    language: f"translations/hp-{language}.babelon.tsv.gz" for language in ("zh", "es")
}
"""The translated labels of HPO by language, in the folder of ontologies."""
_PARTS = ("train", "train", "train", "dev", "test")


def part_of(concept: str) -> str:
    """Return the split of a concept, by a hash of its id: of five concepts one is dev, one test.

    >>> part_of("HP:0001250")
    'train'
    """
    return _PARTS[int(sha256(concept.encode()).hexdigest()[:8], 16) % len(_PARTS)]


def hpo(data: Path, split: str, work: Path) -> SourceConfig:
    """Return HPO, which has English names only."""
    del split, work  # used as it is
    return SourceConfig(path=data / "ontologies" / "obo" / "hp.obo.gz", format="obo")


def hpo_of_split(data: Path, split: str, work: Path) -> SourceConfig:
    """Return the names of the concepts of a split: a fifth of HPO for test."""
    english = _open_hpo(data, split, work)
    names = [(each.id, name.text, name.language) for each in english for name in each.names]
    return _write_table((line for line in names if part_of(line[0]) == split), work)


def _open_hpo(data: Path, split: str, work: Path) -> KnowledgeBase:
    if not (work / "english").exists():
        build_store(BuildConfig(sources=(hpo(data, split, work),)), work / "english")
    return KnowledgeBase.open(work / "english")


def hpo_translated(data: Path, split: str, work: Path) -> SourceConfig:
    """Return the names of HPO with the translations of its training concepts."""
    english = _open_hpo(data, split, work)
    lines = [(each.id, name.text, name.language) for each in english for name in each.names]
    for path in HPO_TRANSLATIONS.values():
        source = SourceConfig(path=data / "ontologies" / path)
        lines += [
            (name.concept, name.text, name.language)
            for name in read_names(source, ReadLog(source.path))
            if name.concept in english and part_of(name.concept) == "train"
        ]
    return _write_table(lines, work)


# ---- a stand-in for UMLS


def open_umls(data: Path, split: str, work: Path) -> SourceConfig:
    """Return the names of UMLS ids in open ontologies, with their translations."""
    del split  # one dictionary
    ontologies = data / "ontologies"
    paths = ["obo/hp.obo.gz", "obo/HumanDO_2015.obo.gz", *HPO_TRANSLATIONS.values()]
    paths.append("translations/doid-es-translated.tsv.gz")
    sources = tuple(SourceConfig(path=ontologies / path) for path in paths)
    if not (work / "ontologies").exists():
        build_store(BuildConfig(sources=sources), work / "ontologies")
    mondo = _sssom(ontologies / "sssom" / "mondo_exactmatch_umls.sssom.tsv.gz")
    named = names_by_cui(KnowledgeBase.open(work / "ontologies"))
    return _write_table([*named, *((cui, label, "en") for cui, label in mondo)], work)


def _write_table(lines: Iterable[tuple[str, str, str]], work: Path) -> SourceConfig:
    """Write id, name and language, each line once."""
    path = work / "dictionary.tsv"
    with new_file(path, overwrite=True) as file:
        for line in [("id", "name", "language"), *dict.fromkeys(lines)]:
            file.write("\t".join(line).encode() + b"\n")
    return SourceConfig(path=path, format="table")


def names_by_cui(base: KnowledgeBase) -> Iterator[tuple[str, str, str]]:
    """Return UMLS id, name and language for every name of a concept that refers to UMLS."""
    for concept in base:
        for other in concept.ids:
            if other.id.startswith(_UMLS):
                cui = other.id.partition(":")[2]
                yield from ((cui, name.text, name.language) for name in concept.names)


def _sssom(path: Path) -> Iterator[tuple[str, str]]:
    """Return id and name of each mapped concept of Mondo."""
    lines = (line for _, line in read_lines(path) if not line.startswith("#"))
    for row in csv.DictReader(lines, delimiter="\t"):
        yield row["object_id"].partition(":")[2], row["subject_label"]

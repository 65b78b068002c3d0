"""SNOMED CT RF2: a release in small, its options, and what may be wrong in it."""

from functools import partial

import pytest

from biograft.errors import InputError, UnrecognisedError
from biograft.kb.records import (
    ConceptRecord,
    DefinitionRecord,
    IdRecord,
    NameKind,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources import sniff

HEADERS = {
    "concept": "id effectiveTime active moduleId definitionStatusId",
    "description": "id effectiveTime active moduleId conceptId languageCode typeId term "
    "caseSignificanceId",
    "relationship": "id effectiveTime active moduleId sourceId destinationId relationshipGroup "
    "typeId characteristicTypeId modifierId",
    "language": "id effectiveTime active moduleId refsetId referencedComponentId acceptabilityId",
    "association": "id effectiveTime active moduleId refsetId referencedComponentId "
    "targetComponentId",
    "concrete": "id effectiveTime active moduleId sourceId value relationshipGroup typeId "
    "characteristicTypeId modifierId",
}
FULLY_SPECIFIED, SYNONYM = "900000000000003001", "900000000000013009"
DEFINITION = "900000000000550004"
PREFERRED, ACCEPTABLE = "900000000000548007", "900000000000549004"
US, GB = "900000000000509007", "900000000000508004"
MI, FINDING, SITE, OLD, IS_A = "22298006", "404684003", "363698007", "1000000", "116680003"


def table(kind: str, *rows: str) -> str:
    return "".join("\t".join(row.split()) + "\r\n" for row in (HEADERS[kind],)) + "".join(rows)


def row(component: str, *cells: str, active: str = "1") -> str:
    return "\t".join((component, "20240101", active, "900000000000207008", *cells)) + "\r\n"


def concept(component: str, active: str = "1") -> str:
    return row(component, "900000000000074008", active=active)


def description(
    component: str, of: str, kind: str, term: str, language: str = "en", active: str = "1"
) -> str:
    return row(component, of, language, kind, term, "900000000000448009", active=active)


def related(component: str, head: str, tail: str, kind: str, active: str = "1") -> str:
    end = ("900000000000011006", "900000000000451002")
    return row(component, head, tail, "0", kind, *end, active=active)


def prefer(refset: str, component: str, how: str = PREFERRED, active: str = "1") -> str:
    return row(f"80{component}", refset, component, how, active=active)


FILES = {
    "Terminology/sct2_Concept_Snapshot_INT_20240101.txt": table(
        "concept", concept(MI), concept(FINDING), concept(OLD, "0")
    ),
    "Terminology/sct2_Description_Snapshot-en_INT_20240101.txt": table(
        "description",
        description("100001", MI, FULLY_SPECIFIED, "Myocardial infarction (disorder)"),
        description("100002", MI, SYNONYM, 'Heart "attack'),
        description("100003", MI, SYNONYM, "Myocardial infarction"),
        description("100004", MI, SYNONYM, "Gone", active="0"),
        description("100005", OLD, SYNONYM, "Old"),
        description("100006", SITE, SYNONYM, "Finding site"),
        description("100007", MI, SYNONYM, "Infarto", "es"),
    ),
    "Terminology/sct2_TextDefinition_Snapshot-en_INT_20240101.txt": table(
        "description", description("100008", MI, DEFINITION, " Death of muscle. ")
    ),
    "Terminology/sct2_Relationship_Snapshot_INT_20240101.txt": table(
        "relationship",
        related("200001", MI, FINDING, IS_A),
        related("200002", MI, FINDING, SITE),
        related("200003", MI, FINDING, "246075003"),
        related("200004", MI, OLD, IS_A),
        related("200005", FINDING, MI, IS_A, "0"),
    ),
    "Terminology/sct2_StatedRelationship_Snapshot_INT_20240101.txt": table(
        "relationship", related("300001", MI, FINDING, "246075003")
    ),
    "Terminology/sct2_RelationshipConcreteValues_Snapshot_INT_20240101.txt": table("concrete"),
    "Refset/Language/der2_cRefset_LanguageSnapshot-en_INT_20240101.txt": table(
        "language",
        prefer(GB, "100003"),
        prefer(GB, "100001"),
        prefer(GB, "100006"),
        prefer(US, "100002"),
        prefer(US, "100003", ACCEPTABLE),
        prefer(US, "100007"),
        prefer(US, "100004", active="0"),
    ),
    "Refset/Content/der2_Refset_SimpleSnapshot_INT_20240101.txt": "anything\n",
    "Readme.txt": "read me\n",
}


@pytest.fixture
def reading(reading):
    return partial(reading, format="snomed")


@pytest.fixture
def release(write, tmp_path):
    """Write a release, some files of which may be other than usual or missing (None)."""

    def build(folder="Snapshot", **changes):
        for name, text in FILES.items():
            kind = name.rpartition("/")[2].replace("_", "").removeprefix("sct2").lower()
            change = [text for key, text in changes.items() if kind.startswith(key)]
            if change != [None]:
                write(f"R/{folder}/{name}", change[0] if change else text)
        return tmp_path / "R"

    return build


def test_a_release_gives_all_its_facts(release, reading):
    result = reading(release())
    name = partial(NameRecord, MI)
    assert result.records == [
        ConceptRecord(MI, 2),
        ConceptRecord(FINDING, 3),
        TypeRecord(MI, "disorder", "disorder", line=2),
        name("Myocardial infarction (disorder)", "en", line=2),
        DefinitionRecord(MI, "Death of muscle.", "en", line=2),
        name("Myocardial infarction", "en", NameKind.PREFERRED, line=4),
        NameRecord(SITE, "Finding site", "en", NameKind.PREFERRED, line=7),
        name("Infarto", "es", NameKind.PREFERRED, line=8),
        name('Heart "attack', "en", line=3),
        RelationRecord(MI, "is-a", FINDING, line=2),
        RelationRecord(MI, "Finding site", FINDING, line=3),
        RelationRecord(MI, "246075003", FINDING, line=4),
    ]
    assert not result.log.rejected.counts
    assert result.log.filtered == {"inactive": 4, "of an inactive concept": 2}
    assert [identifier for ids in result.log.left_out for identifier in ids] == [OLD]
    assert result.log.notes == [
        "not read: concrete values (sct2_RelationshipConcreteValues_Snapshot_INT_20240101.txt)"
    ]
    assert result.log.n_read == 23
    assert len(result.log.files) == 5


def test_a_folder_around_the_release_is_recognised(release):
    path = release("SnomedCT_InternationalRF2_PRODUCTION_20240101T120000Z/Snapshot")
    assert sniff(path) == "snomed"
    with pytest.raises(UnrecognisedError):
        sniff(path.parent)


def test_inactive_rows_are_kept_on_request(release, reading):
    result = reading(release(), keep_suppressed=True)
    assert result.concepts == {MI, FINDING, OLD, SITE}
    assert {r.text for r in result.of(NameRecord)} >= {"Gone", "Old"}
    assert result.counts["relations"] == 5
    assert result.log.filtered == {"inactive": 1}  # the row of a reference set
    assert result.log.left_out == []


def test_a_reference_set_without_preferences_is_ignored(release, reading):
    """Guards a bug: a block without a preferred row ended in an error of polars."""
    text = table("language", prefer(GB, "100003", ACCEPTABLE))
    result = reading(release(der2crefset=text))
    assert {r.kind for r in result.of(NameRecord)} == {"synonym"}


def test_types_come_from_english_names_before_others(release, reading):
    text = table(
        "description",
        description("100001", MI, FULLY_SPECIFIED, "infarto de miocardio (trastorno)", "es"),
        description("100002", MI, FULLY_SPECIFIED, "Myocardial infarction (disorder)"),
        description("100003", FINDING, FULLY_SPECIFIED, "hallazgo (hallazgo)", "es"),
        description("100004", SITE, FULLY_SPECIFIED, "Site (place) (attribute)"),
    )
    result = reading(release(description=text))
    assert {(r.concept, r.type) for r in result.of(TypeRecord)} == {
        (MI, "disorder"),
        (FINDING, "hallazgo"),
        (SITE, "attribute"),
    }
    # an attribute without a preferred synonym is called by its full name
    assert {r.relation for r in result.of(RelationRecord)} == {"is-a", "Site (place)", "246075003"}


def test_single_files(release, reading):
    folder = release() / "Snapshot" / "Terminology"
    files = {path.name.split("_")[1]: path for path in folder.iterdir()}
    assert {sniff(path) for path in files.values()} == {"snomed"}
    assert reading(files["Concept"]).counts == {"concepts": 2}
    assert reading(files["Description"]).counts == {"names": 6, "types": 1}
    assert reading(files["TextDefinition"]).counts["definitions"] == 1
    relations = reading(files["Relationship"]).of(RelationRecord)
    assert [r.relation for r in relations] == ["is-a", SITE, "246075003", "is-a"]


@pytest.mark.parametrize("state", ["Full", "Delta"])
def test_full_and_delta_files_are_refused(write, reading, tmp_path, state):
    file = write(f"R/sct2_Concept_{state}_INT_20240101.txt", table("concept", concept(MI)))
    write(f"R/sct2_Description_{state}-en_INT_20240101.txt", table("description"))
    for path in (file, tmp_path / "R"):
        assert sniff(path) == "snomed"
        with pytest.raises(InputError, match=f"is a {state} file.*; name the Snapshot folder"):
            reading(path)


def test_a_folder_without_a_release_is_reported(write, reading, tmp_path):
    write("R/x.txt", "a")
    with pytest.raises(InputError, match="holds no files of RF2; name the release folder"):
        reading(tmp_path / "R")
    write("R/der2_Refset_SimpleSnapshot_INT_20240101.txt", "a")
    with pytest.raises(InputError, match="holds no sct2_Concept, sct2_Description or"):
        reading(tmp_path / "R")


def test_historical_associations_name_what_takes_the_place_of_a_concept(write, reading):
    def of(refset, component, target, **options):
        return row("9", refset, component, target, **options)

    text = table(
        "association",
        of("900000000000527005", OLD, MI),
        of("900000000000526001", OLD, FINDING),
        of("900000000000523009", OLD, SITE),
        of("900000000000526001", OLD, SITE, active="0"),
        of("900000000000531004", OLD, SITE),  # REFERS TO, of descriptions
        of("900000000000526001", "100011", MI),  # a description
        of("900000000000526001", OLD, "x"),
    )
    result = reading(write("a.txt", text))
    assert result.records == [
        IdRecord(MI, OLD, "replaced", 2),
        IdRecord(FINDING, OLD, "replaced", 3),
        IdRecord(SITE, OLD, "consider", 4),
    ]
    assert result.log.filtered == {"inactive": 1, "association that names no successor": 2}
    assert result.log.rejected.counts == {"targetComponentId is no id of SNOMED CT": 1}

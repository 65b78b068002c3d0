"""MeSH XML: descriptors and supplementary records, old and new forms, translated sets."""

import gzip
from functools import partial

import pytest

from biograft.kb.records import (
    DefinitionRecord,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources import sniff

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE DescriptorRecordSet SYSTEM "desc.dtd">\n'


@pytest.fixture
def reading(reading):
    return partial(reading, format="mesh")


def descriptors(*records: str, language: str = "eng") -> str:
    body = "\n".join(records)
    return (
        f'{HEAD}<DescriptorRecordSet LanguageCode = "{language}">\n{body}\n</DescriptorRecordSet>'
    )


def supplementary(*records: str) -> str:
    return f"<SupplementalRecordSet>{''.join(records)}</SupplementalRecordSet>"


def descriptor(ui: str, name: str, *trees: str, more: str = "") -> str:
    numbers = "".join(f"<TreeNumber>{tree}</TreeNumber>" for tree in trees)
    return (
        f'<DescriptorRecord DescriptorClass = "1">\n<DescriptorUI>{ui}</DescriptorUI>'
        f"<DescriptorName><String>{name}</String></DescriptorName>{more}"
        f"<TreeNumberList>{numbers}</TreeNumberList></DescriptorRecord>"
    )


def concept(ui: str, terms: str, preferred: str = "N", more: str = "") -> str:
    return (
        f'<Concept PreferredConceptYN="{preferred}"><ConceptUI>{ui}</ConceptUI>'
        f"{more}<TermList>{terms}</TermList></Concept>"
    )


def term(text: str, ui: str = "T1", tag: str = "NON", main: str = "N") -> str:
    return (
        f'<Term ConceptPreferredTermYN="{main}" LexicalTag="{tag}" RecordPreferredTermYN="{main}">'
        f"<TermUI>{ui}</TermUI><String>{text}</String></Term>"
    )


def relation(name: str, first: str, second: str) -> str:
    return (
        f'<ConceptRelationList><ConceptRelation RelationName="{name}"><Concept1UI>{first}'
        f"</Concept1UI><Concept2UI>{second}</Concept2UI></ConceptRelation></ConceptRelationList>"
    )


def refer(tag: str, ui: str) -> str:
    inner = f"<DescriptorUI>{ui}</DescriptorUI>"
    return f"<{tag}><DescriptorReferredTo>{inner}</DescriptorReferredTo></{tag}>"


CONCEPTS = (
    "<ConceptList>"
    + concept(
        "M1",
        term("Calcimycin", main="Y") + term("Calci\n   mycine") + term("CMY", tag="ABB"),
        "Y",
        "<ConceptUMLSUI>C0000699</ConceptUMLSUI><RegistryNumberList><RegistryNumber>37H9VM9WZL"
        "</RegistryNumber><RegistryNumber>0</RegistryNumber></RegistryNumberList>"
        "<ScopeNote>An ionophore &amp; antibiotic.\n    </ScopeNote><RelatedRegistryNumberList>"
        "<RelatedRegistryNumber>52665-69-7 (Calcimycin)</RelatedRegistryNumber>"
        "</RelatedRegistryNumberList>" + relation("NRW", "M1", "M2"),
    )
    + concept("M2", term("A-23187"), more="<ScopeNote>not this one</ScopeNote>")
    + concept("M3", term("Ionophores"), more=relation("BRD", "M1", "M3"))
    + concept("M4", term("Related"), more=relation("REL", "M1", "M4"))
    + concept("M5", term("Turned") + term("TRN", tag="ACR"), more=relation("BRD", "M5", "M1"))
    + concept("M6", term("Unrelated"))
    + "</ConceptList>"
)


def test_a_descriptor_gives_all_its_facts(write, reading):
    more = (
        "<PharmacologicalActionList>"
        + refer("PharmacologicalAction", "D000900")
        + "</PharmacologicalActionList><SeeRelatedList>"
        + refer("SeeRelatedDescriptor", "D5")
        + "</SeeRelatedList>"
        + CONCEPTS
    )
    path = write(
        "a.xml",
        descriptors(
            descriptor("D1", "Calcimycin", "D03.1", more=more), descriptor("D0", "Top", "D03")
        ),
    )
    assert sniff(path) == "mesh"
    result = reading(path)
    name = partial(NameRecord, "D1", language="en", line=4)
    top = result.of(NameRecord)[-1].line
    assert result.records == [
        name("Calcimycin", kind=NameKind.PREFERRED),
        name("Calci mycine"),
        name("CMY", kind=NameKind.ABBREVIATION),
        name("A-23187", kind=NameKind.NARROW),
        name("Ionophores", kind=NameKind.BROAD),
        name("Related", kind=NameKind.RELATED),
        name("Turned", kind=NameKind.NARROW),
        name("TRN", kind=NameKind.ABBREVIATION),
        name("Unrelated", kind=NameKind.RELATED),
        DefinitionRecord("D1", "An ionophore & antibiotic.", "en", line=4),
        IdRecord("D1", "UNII:37H9VM9WZL", IdKind.XREF, 4),
        IdRecord("D1", "CAS:52665-69-7", IdKind.XREF, 4),
        IdRecord("D1", "UMLS:C0000699", IdKind.XREF, 4),
        RelationRecord("D1", "see-also", "D5", line=4),
        RelationRecord("D1", "pharmacological-action", "D000900", line=4),
        TypeRecord("D1", "D03", "Chemicals and Drugs", "D03", 4),
        NameRecord("D0", "Top", "en", NameKind.PREFERRED, line=top),
        TypeRecord("D0", "D03", "Chemicals and Drugs", "D03", top),
        RelationRecord("D1", "is-a", "D0", line=4),
    ]
    assert not result.log.rejected.counts
    assert result.log.n_read == 2


def test_a_supplementary_record_gives_all_its_facts(write, reading):
    record = (
        '<SupplementalRecord SCRClass = "3"><SupplementalRecordUI>C5</SupplementalRecordUI>'
        "<SupplementalRecordName><String>Rare disease</String></SupplementalRecordName>"
        "<Note>A disorder.</Note><HeadingMappedToList>"
        + refer("HeadingMappedTo", "*D1")
        + refer("HeadingMappedTo", "D2")
        + "</HeadingMappedToList><ConceptList>"
        + concept(
            "M1",
            term("Rare disease", main="Y") + term("RD"),
            "Y",
            "<RegistryNumber>EC 1.1.1.n2</RegistryNumber>",
        )
        + "</ConceptList></SupplementalRecord>"
    )
    path = write("a.xml.gz", gzip.compress(supplementary(record).encode()))
    assert sniff(path) == "mesh"
    assert reading(path).records == [
        NameRecord("C5", "Rare disease", "en", NameKind.PREFERRED, line=1),
        NameRecord("C5", "RD", "en", line=1),
        DefinitionRecord("C5", "A disorder.", "en", line=1),
        IdRecord("C5", "EC:1.1.1.n2", IdKind.XREF, 1),
        RelationRecord("C5", "mapped-to", "D1", line=1),
        RelationRecord("C5", "mapped-to", "D2", line=1),
        TypeRecord("C5", "SCR3", "Supplementary Diseases", "C", 1),
    ]


def test_a_translated_set_gives_both_languages(write, reading):
    terms = (
        term("Calcimycin", "T2", main="Y")
        + term("A-23187", "T3")
        + term("Calcimycine", "fre1", main="Y")
        + term("Calcimycinum", "fre2")
    )
    notes = (
        "<ScopeNote>An ionophore.</ScopeNote>"
        "<TranslatorsScopeNote>Un ionophore.</TranslatorsScopeNote>"
    )
    more = f"<ConceptList>{concept('M1', terms, 'Y', notes)}</ConceptList>"
    text = descriptors(descriptor("D1", "Calcimycine[Calcimycin]", more=more), language="fre")
    result = reading(write("a", text))
    assert {(r.text, r.language, r.kind) for r in result.of(NameRecord)} == {
        ("Calcimycine", "fr", "preferred"),
        ("Calcimycin", "en", "preferred"),
        ("A-23187", "en", "synonym"),
        ("Calcimycinum", "fr", "synonym"),
    }
    assert {(r.text, r.language) for r in result.of(DefinitionRecord)} == {
        ("Un ionophore.", "fr"),
        ("An ionophore.", "en"),
    }


def test_a_second_language_without_a_title_takes_its_main_term(write, reading):
    terms = term("Kalzimycin", "ger1", main="Y") + term("Calcimycin", "T2", main="Y")
    more = f"<ConceptList>{concept('M1', terms, 'Y')}</ConceptList>"
    text = descriptors(descriptor("D1", "Kalzimycin", more=more), language="ger")
    names = [(r.text, r.language, r.kind) for r in reading(write("a", text)).of(NameRecord)]
    assert names == [("Kalzimycin", "de", "preferred"), ("Calcimycin", "en", "preferred")]


def test_the_language_is_the_sets_own_then_the_configured_one(write, reading):
    record = descriptor("D1", "a") + descriptor("D2", "b")
    plain = f"<DescriptorRecordSet>{record}</DescriptorRecordSet>"
    assert {r.language for r in reading(write("a", plain), language="spa").of(NameRecord)} == {"es"}
    declared = descriptors(record, language="por")
    result = reading(write("a", declared), language="spa")
    assert [r.language for r in result.of(NameRecord)] == ["pt", "pt"]  # not the first alone


@pytest.mark.parametrize(
    ("records", "reason", "text"),
    [
        (["<DescriptorRecord/>"], "record without DescriptorUI", "DescriptorRecord"),
        ([descriptor("D1", "")], "record without DescriptorName", "D1"),
        ([descriptor("D1", "a", "q1")], "not a tree number", "D1 q1"),
        ([descriptor("D1", "a", "C01.1")], "tree number whose parent is in no record", "D1 C01.1"),
        (
            [descriptor("D1", "a", "C01"), descriptor("D2", "b", "C01")],
            "tree number given twice",
            "D2 C01",
        ),
        (
            [descriptor("D1", "a", more="<SeeRelatedDescriptor/>")],
            "SeeRelatedDescriptor without DescriptorUI",
            "D1",
        ),
    ],
)
def test_invalid_facts_are_rejected(write, reading, records, reason, text):
    result = reading(write("a", descriptors(*records)))
    assert result.log.rejected.counts == {reason: 1}
    assert result.log.rejected.examples[reason][0].text == text
    assert result.log.rejected.examples[reason][0].line >= 4


def test_records_across_the_seams_of_reading_are_whole(write, reading):
    text = descriptors(*(descriptor(f"D{i}", f"name {i}") for i in range(9999)))
    result = reading(write("a", text))
    assert len(result.concepts) == result.log.n_read == 9999
    assert result.of(NameRecord)[-1].line == text[: text.index("<DescriptorUI>D9998")].count("\n")

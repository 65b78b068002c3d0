"""The smallest valid files of every format, for tests that go over all formats."""

from __future__ import annotations

_MESH = (
    "<DescriptorRecordSet><DescriptorRecord><DescriptorUI>D1</DescriptorUI><DescriptorName>"
    "<String>flu</String></DescriptorName><TreeNumberList><TreeNumber>C01</TreeNumber>"
    "</TreeNumberList></DescriptorRecord></DescriptorRecordSet>\n"
)
_OWL = "http://www.w3.org/2002/07/owl#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_SCTID = "22298006\t20240101\t1\t900000000000207008\t"

SNIPPETS: dict[str, dict[str, str]] = {
    "umls": {
        "MRCONSO.RRF": "C0000001|ENG|P|L1|PF|S1|Y|A1||M1|D1|MSH|MH|D1|flu|0|N|256|\n",
        "MRSTY.RRF": "C0000001|T047|B2.2.1.2.1|Disease or Syndrome|AT1|256|\n",
        "MRDEF.RRF": "C0000001|A1|AT1||MSH|An infection.|N||\n",
        "MRREL.RRF": "C0000001|A1|AUI|CHD|C0000002|A2|AUI|isa|R1||MSH|MSH|||N||\n",
    },
    "snomed": {
        "sct2_Concept_Snapshot_INT_20240101.txt": "id\teffectiveTime\tactive\tmoduleId\t"
        f"definitionStatusId\n{_SCTID}900000000000074008\n",
        "sct2_Description_Snapshot-en_INT_20240101.txt": "id\teffectiveTime\tactive\tmoduleId\t"
        "conceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId\n"
        f"{_SCTID}22298006\ten\t900000000000003001\tFlu (disorder)\t900000000000448009\n",
        "sct2_Relationship_Snapshot_INT_20240101.txt": "id\teffectiveTime\tactive\tmoduleId\t"
        "sourceId\tdestinationId\trelationshipGroup\ttypeId\tcharacteristicTypeId\tmodifierId\n"
        f"{_SCTID}22298006\t404684003\t0\t116680003\t900000000000011006\t900000000000451002\n",
    },
    "mesh": {"desc.xml": _MESH},
    "obo": {
        "a.obo": "format-version: 1.2\n\n[Term]\nid: X:1\nname: flu\n",
        "b.obo": "ontology: x\n\n[Term]\nid: X:1\nname: flu\nis_a: X:2\n",
    },
    "owl": {
        "a.owl": f'<rdf:RDF xmlns:rdf="{_RDF}" xmlns:owl="{_OWL}">'
        '<owl:Class rdf:about="http://x.org/1"/></rdf:RDF>\n',
        "a.ttl": "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
        '<http://x.org/1> a skos:Concept ; skos:prefLabel "flu"@en .\n',
        "a.nt": f"<http://x.org/1> <{_RDF}type> <{_OWL}Class> .\n",
    },
    "obograph": {
        "a.json": '{"graphs": [{"nodes": [{"id": "http://purl.obolibrary.org/obo/X_1", '
        '"lbl": "flu", "type": "CLASS"}], "edges": []}]}\n'
    },
    "medic": {
        "old.txt": "D1|613||flu|influenza\n",
        "ctd.tsv": "# DiseaseName\tDiseaseID\tParentIDs\nflu\tMESH:D1\tMESH:D2\n",
        "ctd.csv": "# DiseaseName,DiseaseID,Synonyms\nflu,MESH:D1,influenza|grippe\n",
    },
    "babelon": {
        "hp.tsv": "source_language\ttranslation_language\tsubject_id\tpredicate_id\tsource_value\t"
        "translation_value\ttranslation_status\n"
        "en\tes\tHP:1\trdfs:label\tFever\tFiebre\tOFFICIAL\n",
    },
    "zh-disease": {
        "a.jsonl": '{"id": "1", "gaishu_info": {"name": "感冒", "common_drug": ["药"]}}\n'
    },
    "zh-alias": {"a.csv": "name,alias,part\n感冒,伤风,鼻\n"},
    "scispacy": {
        "a.json": '[{"concept_id": "C1", "canonical_name": "flu", "aliases": ["grippe"]}]',
        "a.jsonl": '{"concept_id": "C1", "canonical_name": "flu", "types": ["T047"]}\n',
    },
    "jsonl": {
        "a.jsonl": '{"id": "D1", "name": "flu"}\n',
        "b.jsonl": '{"id": "D1", "names": {"zh": ["感冒"]}, "relations": {"is-a": ["D2"]}}\n',
    },
    "biosyn": {"a.txt": "D1||flu\n", "b.txt": "D1|613||flu\nD1|613||grippe\n"},
    "triples": {
        "a.tsv": "flu\tcauses\tfever\nflu\tcauses\tcough\ncold\tcauses\tcough\n",
        "b.tsv": "head\trelation\ttail\thead_type\ttail_type\nflu\tcauses\tfever\tDis\tSym\n",
    },
    "table": {
        "a.csv": "id,name\nD1,flu\n",
        "a.tsv": "id\tname\ttype\nD1\tflu\tdisease\n",
        "b.csv": '# a comment\nname;synonyms;id\n"flu";"grippe|influenza";D1\n',
    },
}
"""Format -> file name -> content. Each gives at least one record."""

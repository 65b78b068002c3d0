"""The smallest valid files of every format, for tests that go over all formats."""

from __future__ import annotations

_MESH = (
    "<DescriptorRecordSet><DescriptorRecord><DescriptorUI>D1</DescriptorUI><DescriptorName>"
    "<String>flu</String></DescriptorName><TreeNumberList><TreeNumber>C01</TreeNumber>"
    "</TreeNumberList></DescriptorRecord></DescriptorRecordSet>\n"
)
_OWL = "http://www.w3.org/2002/07/owl#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SCTID = "22298006\t20240101\t1\t900000000000207008\t"

SNIPPETS: dict[str, dict[str, str]] = {
    "umls": {
        "MRCONSO.RRF": "C0000001|ENG|P|L1|PF|S1|Y|A1||M1|D1|MSH|MH|D1|flu|0|N|256|\n",
        "MRSTY.RRF": "C0000001|T047|B2.2.1.2.1|Disease or Syndrome|AT1|256|\n",
        "MRDEF.RRF": "C0000001|A1|AT1||MSH|An infection.|N||\n",
        "MRREL.RRF": "C0000001|A1|AUI|CHD|C0000002|A2|AUI|isa|R1||MSH|MSH|||N||\n",
    },
    "rxnorm": {
        "RXNCONSO.RRF": "161|ENG||||||2||||RXNORM|IN|161|Acetaminophen||N|4096|\n",
        "RXNSTY.RRF": "161|T109|A1.4.1.2.1|Organic Chemical|AT1|256|\n",
        "RXNREL.RRF": "161||CUI|RO|313782||CUI|has_ingredient|1||RXNORM|RXNORM||||4096|\n",
        "RXNCUI.RRF": "999|05AA_050101|10AA_100101|1|161|\n",
    },
    "athena": {
        "CONCEPT.csv": "concept_id\tconcept_name\tdomain_id\tvocabulary_id\tconcept_class_id\t"
        "standard_concept\tconcept_code\tvalid_start_date\tvalid_end_date\tinvalid_reason\n"
        "201826\tType 2 diabetes mellitus\tCondition\tSNOMED\tDisorder\tS\t44054006\t19700101\t"
        "20991231\t\n",
        "CONCEPT_SYNONYM.csv": "concept_id\tconcept_synonym_name\tlanguage_concept_id\n"
        "201826\t2型糖尿病\t4182948\n",
        "CONCEPT_RELATIONSHIP.csv": "concept_id_1\tconcept_id_2\trelationship_id\t"
        "valid_start_date\tvalid_end_date\tinvalid_reason\n"
        "201826\t201820\tIs a\t19700101\t20991231\t\n",
    },
    "loinc": {
        "Loinc.csv": '"LOINC_NUM","COMPONENT","PROPERTY","TIME_ASPCT","SYSTEM","SCALE_TYP",'
        '"METHOD_TYP","CLASS","DefinitionDescription","STATUS","CLASSTYPE","RELATEDNAMES2",'
        '"SHORTNAME","LONG_COMMON_NAME"\n'
        '"4548-4","Hemoglobin A1c/Hemoglobin.total","MFr","Pt","Bld","Qn","","HEM/BC","","ACTIVE",'
        '"1","Glycated hemoglobin; Hb1c","HbA1c MFr Bld",'
        '"Hemoglobin A1c/Hemoglobin.total in Blood"\n',
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
    "icd10cm": {
        "tabular.xml": "<ICD10CM.tabular><chapter><name>1</name>"
        "<desc>Certain infectious and parasitic diseases (A00-B99)</desc>"
        '<section id="A00-A09"><desc>Intestinal infectious diseases (A00-A09)</desc>'
        "<diag><name>A00</name><desc>Cholera</desc></diag></section></chapter>"
        "</ICD10CM.tabular>\n"
    },
    "claml": {
        "icd.xml": '<ClaML version="2.0.0"><Title name="ICD-10-GM" version="2026"/>'
        '<Class code="I" kind="chapter"><Rubric kind="preferred"><Label xml:lang="de">Infektionen'
        '</Label></Rubric></Class><Class code="A00" kind="category"><SuperClass code="I"/>'
        '<Rubric kind="preferred"><Label xml:lang="de">Cholera</Label></Rubric></Class></ClaML>\n'
    },
    "icd11": {
        "mms.txt": "Foundation URI\tLinearization URI\tCode\tBlockId\tTitle\tClassKind\t"
        "DepthInKind\tChapterNo\n"
        "http://id.who.int/icd/entity/1\t\t\t\tCertain infectious diseases\tchapter\t1\t01\n"
        "http://id.who.int/icd/entity/2\t\t1A00\t\t- Cholera\tcategory\t1\t01\n"
    },
    "fhir": {
        "system.json": '{"resourceType": "CodeSystem", "id": "lab", "url": "http://lab.org/codes", '
        '"concept": [{"code": "1", "display": "flu"}]}\n',
        "set.json": '{"resourceType": "ValueSet", "id": "v", "name": "Infections", "compose": '
        '{"include": [{"system": "http://loinc.org", "concept": [{"code": "1-8", '
        '"display": "flu"}]}]}}\n',
        "map.json": '{"resourceType": "ConceptMap", "id": "m", "group": [{"source": '
        '"http://lab.org/codes", "target": "http://loinc.org", "element": [{"code": "1", '
        '"display": "flu", "target": [{"code": "1-8", "equivalence": "equal"}]}]}]}\n',
    },
    "sssom": {
        "a.sssom.tsv": "# mapping_set_id: https://x.org/m\nsubject_id\tpredicate_id\tobject_id\t"
        "mapping_justification\nX:1\tskos:exactMatch\tMESH:D1\tsemapv:ManualMappingCuration\n"
    },
    "term-table": {
        "ssslm.tsv": "text\tcurie\tname\tpredicate\n"
        "flu\tX:1\tinfluenza\toboInOwl:hasExactSynonym\n",
        "gilda.tsv": "norm_text\ttext\tdb\tid\tentry_name\tstatus\tsource\n"
        "flu\tflu\tMESH\tD007251\tInfluenza, Human\tsynonym\tmesh\n",
    },
    "obo": {
        "a.obo": "format-version: 1.2\n\n[Term]\nid: X:1\nname: flu\n",
        "b.obo": "ontology: x\n\n[Term]\nid: X:1\nname: flu\nis_a: X:2\n",
    },
    "owl": {
        "a.owl": f'<rdf:RDF xmlns:rdf="{_RDF}" xmlns:owl="{_OWL}">'
        f'<owl:Class rdf:about="http://x.org/1"><label xmlns="{_RDFS}">flu</label></owl:Class>'
        "</rdf:RDF>\n",
        "a.ttl": "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
        '<http://x.org/1> a skos:Concept ; skos:prefLabel "flu"@en .\n',
        "a.nt": f"<http://x.org/1> <{_RDF}type> <{_OWL}Class> .\n"
        f'<http://x.org/1> <{_RDFS}label> "flu" .\n',
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
    "zh-codes": {
        "lc.csv": "主要编码,附加编码,疾病名称\nA17.000,G01*,结核性脑膜炎[结核性脑脊膜炎]\n",
        "map.csv": "医保版编码,医保版名称,临床版编码,临床版名称\nJ00.x00,感冒,J00.x00,急性鼻咽炎\n",
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
    "synonyms": {"a.json": '{"flu": ["influenza", "grippe"], "cold": ["coryza"]}\n'},
    "words": {"terms.txt": "flu\ninfluenza\n"},
}
"""Format -> file name -> content. Each gives at least one record."""

"""Small valid inputs of every reader, beside the sources in ``snippets.py``, to be mutated.

An input of several files names each in a line ``=== NAME ===``.
"""

from __future__ import annotations

import json
from typing import Any

from snippets import SNIPPETS


def _lines(*values: Any) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def bundle(files: dict[str, str | bytes]) -> bytes:
    """Join files to one input."""
    parts = []
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        parts.append(f"=== {name} ===\n".encode() + data + b"\n")
    return b"".join(parts)


_BIOC_XML = """<?xml version='1.0'?><!DOCTYPE collection SYSTEM 'BioC.dtd'>
<collection><source>x</source><date/><key/><document><id>1</id>
<passage><infon key="type">title</infon><offset>0</offset><text>Skin and liver pain.</text>
<annotation id='0'><infon key="type">Disease</infon><infon key="MESH">D1|D2</infon>
<location offset='0' length='4'/><location offset='15' length='4'/><text>Skin pain</text>
</annotation></passage>
<passage><infon key="type">abstract</infon><offset>21</offset><text>Tea &amp; salt.</text>
<annotation id='1'><infon key="MESH">-1</infon><location offset='21' length='3'/><text>Tea</text>
</annotation></passage>
<relation id='R1'><infon key="type">eases</infon><node refid='1' role='drug'/>
<node refid='0' role='sign'/></relation></document><document><id>3</id></document></collection>
"""
_BIOC_JSON: dict[str, Any] = {
    "documents": [
        {
            "id": 1,
            "passages": [
                {
                    "offset": 0,
                    "infons": {"type": "title"},
                    "text": "Skin and liver pain.",
                    "annotations": [
                        {
                            "id": "0",
                            "infons": {"type": "Disease", "identifier": "D1|D2"},
                            "text": "Skin pain",
                            "locations": [
                                {"offset": 0, "length": 4},
                                {"offset": 15, "length": 4},
                            ],
                        }
                    ],
                },
                {"offset": 21, "sentences": [{"offset": 21, "text": "Tea."}]},
            ],
            "relations": [
                {"id": "R", "infons": {"type": "t"}, "nodes": [{"refid": "0", "role": "r"}]}
            ],
        }
    ]
}
_DDI = """<?xml version="1.0" encoding="UTF-8"?>
<document id="d1"><sentence id="d1.s0" text="Iron binds.&#13;&#10;"/>
<sentence id="d1.s1" text="Heme and free iron harm.">
<entity id="e0" charOffset="0-3;14-17" type="drug" text="Heme iron"/>
<entity id="e1" charOffset="9-17" type="group" text="free iron"/>
<pair id="p0" e1="e0" e2="e1" ddi="true" type="effect"/></sentence></document>
"""
_BRAT = {
    "x.txt": "Heart and lung\nfailure hurts",
    "x.ann": "T1\tDisease 0 5;15 22\tHeart failure\nT2\tDisease 10 22\tlung failure\n"
    "T3\tVerb 23 28\thurts\nN1\tReference T1 MESH:D1\tHeart Failure\nR1\tWith Arg1:T1 Arg2:T2\n"
    "*\tEquiv T1 T2\nE1\tHarm:T3 Cause:T1\nA1\tNegation T1\n#1\tNote T1\tx\n",
    "annotation.conf": "[entities]\nDisease\n",
}
_PUBTATOR = (
    "12|t|Heart failure in mice.\n12|a|It hurts. Aspirin helps.\n"
    "12\t0\t13\tHeart failure\tDisease\tD006333\n12\t33\t40\tAspirin\tChemical\tD001241|D1\tx|y\n"
    "12\tCID\tD001241\tD006333\n\n13|t|No.\n13|a|\n"
)
_CMDD = _lines(
    {
        "example-id": "5",
        "dialogue-content": [
            {
                "speaker": "医生",
                "sentence": "吐吗",
                "label": "BO",
                "normalized": ["呕吐"],
                "type": ["2"],
            },
            {"speaker": "患者", "sentence": "是", "label": "O", "normalized": [], "type": []},
        ],
    }
)
_CMEDQANER = _lines(
    {
        "text": "查hiv病",
        "mention_data": [
            {"mention": "HIV", "type": "disease", "offset": "1", "guid": "None"},
            {"mention": "病", "type": "disease", "offset": "4", "guid": "g-1"},
        ],
    }
)
_CEHRNER = _lines(
    {"text": "胃痛", "mention_data": [{"mention": "胃", "label": "部位", "offset": "0"}]}
)
_CMEEE = json.dumps(
    [
        {
            "text": "肺炎病毒传播",
            "entities": [
                {"start_idx": 0, "end_idx": 3, "type": "dis", "entity": "肺炎病毒"},
                {"start_idx": 0, "end_idx": 1, "type": "dis", "entity": "肺炎"},
            ],
        }
    ],
    ensure_ascii=False,
)
_JSONL = _lines(
    {
        "id": "1",
        "text": "a b c",
        "language": "en",
        "mentions": [
            {"start": 0, "end": 1, "type": "T", "concepts": ["D1"], "id": "m", "text": "a"},
            {"fragments": [[0, 1], [4, 5]], "parts": ["a", "c"]},
        ],
        "relations": [{"type": "t", "of": "mentions", "arguments": [["r", "m"]], "id": "R"}],
        "passages": [{"start": 0, "end": 5, "kind": "title"}],
    },
    {"id": 8, "text": "y"},
)
_CHAR_TAGS = "嘴 B_body\n泡 O\n\n好 O\n坏 B_x\n"
_CONLL = "-DOCSTART- 7\n\na\tO\nb-\tB-X\nc\tI-X\n\nd\tE-Y\n\n-DOCSTART- -X- O\n\ng\tS-Z\n"
DOCUMENTS: dict[str, list[str | bytes]] = {
    "bioc-xml": [_BIOC_XML],
    "ddi": [_DDI],
    "brat": [bundle(dict(_BRAT))],
    "pubtator": [_PUBTATOR],
    "cmdd": [_CMDD],
    "cmedqaner": [_CMEDQANER],
    "cehrner": [_CEHRNER],
    "bioc-json": [json.dumps(_BIOC_JSON)],
    "cmeee": [_CMEEE],
    "jsonl": [_JSONL],
    "char-tags": [_CHAR_TAGS],
    "conll": [_CONLL],
    "conll-iob1": [_CONLL],
    "conll-iobes": [_CONLL],
}

_CMEIE = _lines(
    {
        "text": "麻风病常见。预防麻风病用利福平。",
        "spo_list": [
            {
                "Combined": False,
                "predicate": "预防",
                "subject": "麻风病",
                "subject_type": "疾病",
                "object": {"@value": "利福平"},
                "object_type": {"@value": "药物"},
            }
        ],
    }
)
TASKS: dict[str, list[str | bytes]] = {
    "cmedqq": ['1\t"flu"?\twhat is flu\n0\ta\tb\r\n\n'],
    "cmedqa": ['0\tq1\t"say ""no"""\n1\tq2\tx\n1\tq1\ty\n'],
    "webmedqa": ["7\t1\t内科\tq\ta\n7\t0\t内科\tq\tb\n8\t1\t外科\tq\tc\n"],
    "cmedir": [
        _lines(
            {
                "query": "q",
                "documents": [
                    {"url": "u", "label": "2", "title": "t"},
                    {"url": "v", "label": 0, "title": "s"},
                ],
            }
        )
    ],
    "cmedtc": ["Age\t 2)年龄&gt; 70\r\nSex\tx\n"],
    "hoc": ["labels\tsentence\tindex\n0_1,1_0,2_1\tTumours grow .\t11_s0\n0_0,1_0\tNo .\t11_s1\n"],
    "bioasq": ["1\tIs it?\tIt is.\tyes\n2\tIs it?\tIt is not.\tno\n"],
    "ddi": [_DDI],
    "chemprot": [_lines({"text": "<< a >> and [[ b ]]", "label": "INHIBITOR", "metadata": []})],
    "cmeie": [_CMEIE],
    "gad": ["index\tsentence\tlabel\n0\t@GENE$ causes @DISEASE$ .\t1\n1\t@DRUG-DRUG$\t0\n"],
    "jsonl": [
        _lines({"first": "a", "second": "b", "label": "1", "id": "x"}),
        _lines({"query": "q", "candidates": [{"text": "a", "relevance": 1, "id": "i"}]}),
        _lines({"text": "t", "labels": ["x"], "context": "c", "multi": True}),
        _lines(
            {
                "text": "a and b",
                "first": {"start": 0, "end": 1, "text": "a", "type": "T"},
                "second": {"start": 6, "end": 7, "text": "b", "fragments": [[6, 7]]},
                "label": "r",
                "document": "d",
            }
        ),
    ],
}
TASK_TABLES: dict[str, list[str | bytes]] = {
    "pair": ['no,q1,q2,same\n1,"a, b","c\nd",yes\n2,x,y,no\n', "no\tq1\tq2\tsame\n1\ta\tb\tyes\n"],
    "class": ["t,l,c\nfever,a|b,x\n", _lines({"t": "fever", "l": ["a", "b"], "c": None})],
    "ranking": ["q,a,r\nfever,x,1\nfever,y,0\n", _lines({"q": "q", "a": "a", "r": 1})],
}
TASK_COLUMNS: dict[str, dict[str, str]] = {
    "pair": {"first": "q1", "second": "q2", "label": "same", "id": "no"},
    "class": {"text": "t", "labels": "l", "context": "c"},
    "ranking": {"query": "q", "answer": "a", "relevance": "r"},
}

_BABELON = next(iter(SNIPPETS["babelon"].values()))
GOLD: dict[str, list[str | bytes]] = {
    "biosyn": ["1||0|5||Disease||heart failure||D1\n1||7|9||Disease||a/b||D1+D2|D3\n"],
    "pubtator": [_PUBTATOR],
    "aap": ["10070\tFever\tfelt hot\n", b"1\tx\tna\xefve\n"],
    "xlbel": ["D1|D2||fever||A <tgt>fever</tgt> today\nD3||flu\n"],
    "cometa": [
        "\tTerm\tExample\tGeneral SNOMED ID\tSpecific SNOMED ID\n0\tfever\ta Fever\t12\t13\n"
    ],
    "cometa-specific": ['Term\tExample\tSpecific SNOMED ID\nfever\t"a\nfever"\tnan\n'],
    "procedures": ["原始词\t标准词\n切除\t胃切除##肠切除\n"],
    "babelon": [_BABELON],
    "documents": [_PUBTATOR, _JSONL, _CONLL * 3],
    "sample": [
        _lines(
            {
                "id": "1",
                "text": "flu",
                "language": "en",
                "mentions": [
                    {"start": 0, "end": 3, "text": "flu", "concepts": ["D1"], "type": "d"}
                ],
            }
        )
    ],
}
TABLES: dict[str, list[str | bytes]] = {
    "csv": ['id,term\n1,"heart, ""x""\ny"\n2,flu\n', "term;id\nflu;1\n"],
    "tsv": ['id\tterm\n1\t"heart"\n2\tflu\n'],
    "json-lines": [_lines({"id": 1, "term": "flu"}, {"id": None, "term": "x", "more": [1]})],
}
XLSX_SHEET = (
    '<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="http://schemas.openxmlformats.org/'
    'spreadsheetml/2006/main"><dimension ref="A1:B3"/><sheetData>'
    '<row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c><c r="B1" t="inlineStr"><is>'
    '<t>term</t></is></c></row><row r="2"><c r="A2"><v>1</v></c><c r="B2" t="inlineStr"><is><t>flu'
    '</t></is></c></row><row r="3"><c r="A3" t="b"><v>1</v></c><c r="B3" t="str"><f>A1</f><v>x</v>'
    "</c></row></sheetData></worksheet>"
)
DOCX_BODY = (
    '<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/'
    '2006/main"><w:body><w:p><w:r><w:t>No fever</w:t><w:tab/><w:br/></w:r></w:p><w:p><w:del><w:r>'
    "<w:t>old</w:t></w:r></w:del><w:r><w:t>Flu.</w:t></w:r></w:p></w:body></w:document>"
)
HTML = (
    '<!doctype html><html><head><meta charset="iso-8859-1"><title>x</title></head><body><p>No <b>'
    "fever</b>,<br>no&nbsp;cough.</p><script>x</script><select><option>a</select><p>Flu</body></html>"
)
INPUTS: list[str | bytes] = [
    *(seed for form, seeds in DOCUMENTS.items() if form != "brat" for seed in seeds),
    *(HTML, "No fever.\n\nFlu.\n", "a\n\ufeffb"),
]
SSSOM: list[str | bytes] = [
    "#curie_map:\n#  KB: https://x.org/\n#mapping_set_id: https://x.org/set\n"
    "#license: https://x.org/l\n#subject_source: KB:lab\n#object_source: KB:kb\n"
    "#mapping_date: 2026-11-24\n"
    "subject_id\tsubject_label\tpredicate_id\tpredicate_modifier\tobject_id\tobject_label\t"
    "mapping_justification\tauthor_id\tauthor_label\treviewer_label\tmapping_date\tconfidence\t"
    "comment\tcontext\tdecided_at\tfrequency\n"
    "code:1\tflu\tskos:exactMatch\t\tMESH:D1\tInfluenza\tsemapv:ManualMappingCuration\t"
    "orcid:0000-0002-1825-0097\t\t\t2026-11-24\t0.5\t\t\t2026-11-24T09:30:00Z\t3\n"
    "term:heart%20x\theart x\tskos:broadMatch\tNot\tMESH:D2\t\tsemapv:LexicalMatching\t\tAda\tBob\t"
    "\t\tx\tunit: mg\t\t\n"
    "term:n\tn\tskos:exactMatch\t\tsssom:NoTermFound\t\tsemapv:MappingReview\t\tAda\t\t\t\t\t\t\t\n",
    "source_term,source_code,concept,name,relation,verdict,probability,frequency\n"
    "flu,1,D1,Influenza,,approved,0.5,3\nx,,,,,nil,,\n",
]
WORKSHEET: list[str | bytes] = [
    "source_term,source_code,context,frequency,flag,concept,name,score,probability,verdict,"
    "candidate_2,name_2,score_2\nflu,1,unit: x,3,,D1,Influenza,0.5,0.4,,D2,Cold,0.2\n",
    "review_id,version,was,decision,concept,name,relation,reason,decided_by,comment\n"
    "1,1,,approve,D1,Influenza,exact,,,\n",
]
RULES: list[str | bytes] = [
    'language = "en"\nabbreviations = ["dr"]\nfillers = ["been"]\nmodifiers = ["mild"]\n'
    'heading_words = ["plan"]\n\n[lists]\nkin = ["mother", "father"]\n\n[[rule]]\nname = "no"\n'
    'kind = "trigger"\nphrases = ["no", "no evidence of", "{kin} had", "without|w/o"]\n'
    'flags = ["negated"]\ndirection = "forward"\nscope = "list"\n\n[[rule]]\nname = "end"\n'
    'kind = "trigger"\nphrases = ["absent", "(was|is) ruled out", "free of ..."]\n'
    'flags = ["negated"]\ndirection = "backward"\nscope = "clause"\nwhere = "end"\n\n[[section]]\n'
    'name = "family"\nheadings = ["family history", "fh"]\nflags = ["family"]\n',
    'language = "zh"\nmodifiers = ["轻"]\n\n[[rule]]\nname = "无"\nkind = "trigger"\n'
    'phrases = ["无", "未见[明显]"]\nflags = ["negated"]\n\n[[section]]\nname = "家族"\n'
    'headings = ["家族史"]\nflags = ["family"]\n',
]
ASSERTIONS: list[str | bytes] = [
    _lines(
        {
            "id": "1",
            "text": "no flu",
            "language": "en",
            "mentions": [
                {"start": 3, "end": 6, "text": "flu", "status": ["negated"], "concept": "D1"}
            ],
        }
    )
]
TEXT_FILES: dict[str, list[str | bytes]] = {
    "wording": ["treats\tis treated with\nis-a\tis a\n"],
    "stop-words": ["# note\nflu\tnote\nno\n"],
    "cut-points": ["# x\n性\tafter\t3\t2\t5\t0.400\n"],
    "phrases": ["heart failure\t3\t1.000\t0.5\t0.5\t0.2\t\nx\t1\t0\t0\t0\t0\t1\n"],
    "words": ["heart\t3.0\tname\n"],
    "pairs": ["D1||flu||grippe\nD1||flu||influenza\n"],
    "knowledge-entities": [_lines({"id": "C1", "name": "flu", "names": ["grippe"]})],
    "api-keys": [f'[ward]\nrole = "read"\nsha256 = "{"0" * 64}"\n'],
}
LLM_ANSWERS: list[str | bytes] = [
    json.dumps(
        {"choices": [{"message": {"content": '<think>x</think>```json\n{"choice": 2}```'}}]}
    ),
    json.dumps({"choices": [{"message": {"content": "3"}}]}),
]
REQUESTS: list[str | bytes] = [
    json.dumps({"text": "no flu", "k": 3, "threshold": 0.5, "types": ["T"], "assertions": True}),
    json.dumps({"texts": ["a", "b"], "sources": None}),
    json.dumps({"mentions": ["flu"], "k": 1}),
    "q=flu&limit=5&language=en",
]


def _parameters(**values: Any) -> dict[str, Any]:
    listed = [
        {"name": name.replace("_", "-").partition("--")[0], kind: value}
        for name, (kind, value) in values.items()
    ]
    return {"resourceType": "Parameters", "parameter": listed}


_SYSTEM = {
    "resourceType": "CodeSystem",
    "url": "http://x.org/cs",
    "version": "1",
    "content": "complete",
    "caseSensitive": False,
    "property": [{"code": "status", "uri": "http://hl7.org/fhir/concept-properties#status"}],
    "filter": [{"code": "concept"}],
    "concept": [
        {
            "code": "a",
            "display": "A",
            "designation": [{"language": "de", "value": "Ah"}],
            "property": [{"code": "status", "valueCode": "retired"}],
            "concept": [{"code": "b", "property": [{"code": "parent", "valueCode": "a"}]}],
        }
    ],
}
_VALUE_SET = {
    "resourceType": "ValueSet",
    "url": "http://x.org/vs",
    "compose": {
        "inactive": False,
        "include": [
            {
                "system": "http://x.org/cs",
                "filter": [{"property": "concept", "op": "is-a", "value": "a"}],
            },
            {"system": "http://x.org/cs", "concept": [{"code": "b", "display": "B"}]},
            {"valueSet": ["http://x.org/other"]},
        ],
        "exclude": [{"system": "http://x.org/cs", "concept": [{"code": "a"}]}],
    },
    "expansion": {"contains": [{"system": "http://x.org/cs", "code": "a"}]},
}
_SUPPLIED = ("resource", _SYSTEM)
FHIR: list[str | bytes] = [
    json.dumps(
        _parameters(
            tx_resource=_SUPPLIED,
            valueSet=("resource", _VALUE_SET),
            count=("valueInteger", 5),
            offset=("valueInteger", 0),
            filter=("valueString", "a"),
            activeOnly=("valueBoolean", True),
            includeDesignations=("valueBoolean", True),
            property=("valueString", "parent"),
            displayLanguage=("valueCode", "de, en;q=0.5"),
        )
    ),
    json.dumps(
        _parameters(
            tx_resource=_SUPPLIED,
            coding=("valueCoding", {"system": "http://x.org/cs", "code": "B", "display": "x"}),
            valueSet=("resource", _VALUE_SET),
            system_version=("valueUri", "http://x.org/cs|1"),
        )
    ),
    json.dumps(
        _parameters(
            tx_resource=_SUPPLIED,
            codeA=("valueCode", "a"),
            codeB=("valueCode", "b"),
            code=("valueCode", "a"),
            system=("valueUri", "http://x.org/cs"),
            url=("valueUri", "http://x.org/cs?fhir_vs=isa/a"),
        )
    ),
    json.dumps(_VALUE_SET),
    "code=D1&system=http%3A%2F%2Fx.org&property=parent&url=http%3A%2F%2Fx.org%3Ffhir_vs",
]

"""A small folder as Athena delivers it: standard concepts, and others that map to them."""

from __future__ import annotations

_VALID = ("19700101", "20991231", "")
_INVALID = ("19700101", "20150101", "U")
CONCEPTS = (
    (201820, "Diabetes mellitus", "Condition", "SNOMED", "Disorder", "S", "73211009"),
    (201826, "Type 2 diabetes mellitus", "Condition", "SNOMED", "Disorder", "S", "44054006"),
    (443767, "Disorder of eye due to diabetes", "Condition", "SNOMED", "Disorder", "S", "25093002"),
    (316866, "Hypertensive disorder", "Condition", "SNOMED", "Disorder", "S", "38341003"),
    (320128, "Essential hypertension", "Condition", "SNOMED", "Disorder", "S", "59621000"),
    (317009, "Asthma", "Condition", "SNOMED", "Disorder", "S", "195967001"),
    (254761, "Cough", "Condition", "SNOMED", "Finding", "S", "49727002"),
    (4112853, "Malignant tumor of breast", "Condition", "SNOMED", "Disorder", "S", "254837009"),
    (4167217, "Family history of disorder", "Observation", "SNOMED", "Context", "S", "281666001"),
    (1503297, "metformin", "Drug", "RxNorm", "Ingredient", "S", "6809"),
    (21600747, "metformin; oral", "Drug", "ATC", "ATC 5th", "C", "A10BA02"),
    (1567956, "Non-insulin-dependent diabetes", "Condition", "ICD10CM", "3-char", "", "E11"),
    (45552385, "Diabetes with cataract", "Condition", "ICD10CM", "billing", "", "E11.36"),
    (35207668, "Essential hypertension", "Condition", "ICD10CM", "3-char", "", "I10"),
    (45542411, "Family history of breast cancer", "Observation", "ICD10CM", "code", "", "Z80.3"),
    (45561952, "Cough variant asthma", "Condition", "ICD10CM", "billing", "", "J45.991"),
    (45577000, "Place of occurrence", "Observation", "ICD10CM", "code", "", "Y92"),
)
INVALID = (
    (4000001, "Adult-onset diabetes", "Condition", "SNOMED", "Disorder", "", "190325004"),
    (4000002, "Sugar sickness", "Condition", "SNOMED", "Disorder", "", "190326003"),
)
RELATIONS = (
    *((each[0], each[0], "Maps to") for each in CONCEPTS if each[5] == "S"),
    (1567956, 201826, "Maps to"),
    (45552385, 201826, "Maps to"),
    (45552385, 443767, "Maps to"),
    (35207668, 320128, "Maps to"),
    (45542411, 4167217, "Maps to"),
    (45542411, 4112853, "Maps to value"),
    (45561952, 317009, "Maps to"),
    (4000001, 201826, "Concept replaced by"),
    (4000002, 1567956, "Concept replaced by"),
    (201826, 201820, "Is a"),
    (320128, 316866, "Is a"),
)
SYNONYMS = (
    (201826, "NIDDM", 4180186),
    (201826, "2型糖尿病", 4182948),
    (320128, "HTN", 4180186),
)
_COLUMNS = {
    "CONCEPT": "concept_id concept_name domain_id vocabulary_id concept_class_id standard_concept "
    "concept_code valid_start_date valid_end_date invalid_reason",
    "CONCEPT_RELATIONSHIP": "concept_id_1 concept_id_2 relationship_id valid_start_date "
    "valid_end_date invalid_reason",
    "CONCEPT_SYNONYM": "concept_id concept_synonym_name language_concept_id",
    "CONCEPT_ANCESTOR": "ancestor_concept_id descendant_concept_id min_levels_of_separation "
    "max_levels_of_separation",
    "VOCABULARY": "vocabulary_id vocabulary_name vocabulary_reference vocabulary_version "
    "vocabulary_concept_id",
}


def write_athena(folder):
    """Write the folder, and return it."""
    parents = [(second, first, 1, 1) for first, second, kind in RELATIONS if kind == "Is a"]
    rows = {
        "CONCEPT": [
            *((*each, *_VALID) for each in CONCEPTS),
            *((*each, *_INVALID) for each in INVALID),
        ],
        "CONCEPT_RELATIONSHIP": [(*each, *_VALID) for each in RELATIONS],
        "CONCEPT_SYNONYM": SYNONYMS,
        "CONCEPT_ANCESTOR": parents,
        "VOCABULARY": [("None", "OMOP", "", "v5.0 30-AUG-26", 44819096)],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in rows.items():
        cells = [_COLUMNS[name].split(), *lines]
        text = "".join("\t".join(map(str, line)) + "\n" for line in cells)
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder

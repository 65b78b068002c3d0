"""The IRIs of OWL, SKOS and the OBO family that mean something to biograft."""

from __future__ import annotations

from biograft.records import NameKind

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_OBO = "http://purl.obolibrary.org/obo/"
_OIO = "http://www.geneontology.org/formats/oboInOwl#"
_DCT = "http://purl.org/dc/terms/"
_DC = "http://purl.org/dc/elements/1.1/"

NAMESPACES = (_RDFS, _OWL, _SKOS)

RDF_TYPE = _RDF + "type"
CONCEPT = _SKOS + "Concept"
CONCEPT_TYPES = frozenset({_OWL + "Class", _RDFS + "Class", CONCEPT})
PROPERTY_TYPES = frozenset(
    {
        _RDF + "Property",
        *(_OWL + f"{kind}Property" for kind in ("Object", "Annotation", "Datatype")),
    }
)
ONTOLOGY_TYPES = frozenset({_OWL + "Ontology", _SKOS + "ConceptScheme"})
INDIVIDUAL = _OWL + "NamedIndividual"
THING = _OWL + "Thing"

RDFS_LABEL = _RDFS + "label"
PREF_LABEL = _SKOS + "prefLabel"
SYNONYMS = {
    _OIO + "hasExactSynonym": NameKind.SYNONYM,
    _OIO + "hasBroadSynonym": NameKind.BROAD,
    _OIO + "hasNarrowSynonym": NameKind.NARROW,
    _OIO + "hasRelatedSynonym": NameKind.RELATED,
    _OBO + "IAO_0000118": NameKind.SYNONYM,  # alternative term
    _SKOS + "altLabel": NameKind.SYNONYM,
    _SKOS + "hiddenLabel": NameKind.SYNONYM,  # for searching: misspellings and the like
}
DEFINITIONS = (_OBO + "IAO_0000115", _SKOS + "definition")
SCOPE_NOTE = _SKOS + "scopeNote"

XREFS = (_OIO + "hasDbXref", _SKOS + "exactMatch")
LOOSE_MATCHES = tuple(_SKOS + f"{kind}Match" for kind in ("close", "broad", "narrow", "related"))
ALTERNATIVE_ID = _OIO + "hasAlternativeId"
NAMESPACE = _OIO + "hasOBONamespace"
DEPRECATED = _OWL + "deprecated"

SUBCLASS = _RDFS + "subClassOf"
EQUIVALENT = _OWL + "equivalentClass"
ON_PROPERTY = _OWL + "onProperty"
SOME_VALUES_FROM = _OWL + "someValuesFrom"
BROADER = _SKOS + "broader"
NARROWER = _SKOS + "narrower"
RELATED = _SKOS + "related"

ANNOTATED_SOURCE = _OWL + "annotatedSource"
ANNOTATED_PROPERTY = _OWL + "annotatedProperty"
ANNOTATED_TARGET = _OWL + "annotatedTarget"
AXIOM = (ANNOTATED_SOURCE, ANNOTATED_PROPERTY, ANNOTATED_TARGET)
SYNONYM_TYPE = _OIO + "hasSynonymType"

TELLING = frozenset(
    {
        *(RDFS_LABEL, PREF_LABEL, *SYNONYMS, *DEFINITIONS, SCOPE_NOTE, *XREFS, ALTERNATIVE_ID),
        *(NAMESPACE, DEPRECATED, SUBCLASS, BROADER, NARROWER, RELATED),
    }
)
"""Predicates that state something of a class or concept."""

SHORTHAND = _OIO + "shorthand"
VERSION = (_OWL + "versionIRI", _OWL + "versionInfo")
LICENCES = (_DCT + "license", _DCT + "rights", _DC + "license", _DC + "rights")

"""Annotations in files: opened, corrected, compared, exported in every format; refusals."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx")
from fastapi.testclient import TestClient

from biograft.clinical import AXES
from biograft.kb import KnowledgeBase
from biograft.serve import ServiceConfig, create_app
from biograft.serve.export import EXPORTS
from biograft.text.documents import Document, Mention, Passage, Relation
from biograft.text.formats import DOCUMENT_FORMATS, read_documents, write_documents

PAGE = Path(__file__).parents[3] / "src/biograft/serve/page"
TEXT = "Denies chest pain. 😀 Mother had asthma."
PAIN = {"start": 7, "end": 17, "concept": "D002637", "name": "Chest Pain", "types": ["symptom"]}
ASTHMA = {"start": 32, "end": 38, "concept": "D001249", "name": "Asthma", "types": ["disease"]}
FORMS = [name for name, each in DOCUMENT_FORMATS.load_all() if each.write is not None]
DEFAULTS = {axis: values[""] for axis, values in AXES.items()}
MENTIONS = [
    {**PAIN, "score": 1.0, "status": "absent", "axes": {**DEFAULTS, "polarity": "negated"}},
    {**ASTHMA, "status": "family", "axes": {**DEFAULTS, "experiencer": "family"}},
]


@pytest.fixture(scope="module")
def client(kb: KnowledgeBase) -> Iterator[TestClient]:
    app = create_app(kb.folder, config=ServiceConfig(max_text=200))
    with TestClient(app, base_url="http://localhost") as opened:
        yield opened


def export(client: TestClient, to: str, mentions: Any = MENTIONS, text: str = TEXT) -> Any:
    documents = [{"text": text, "mentions": mentions}]
    return client.post(f"/v1/export?to={to}", json={"documents": documents})


@pytest.mark.parametrize("form", FORMS)
def test_every_document_format_reads_back(client, form, tmp_path):
    answer = export(client, form)
    assert answer.status_code == 200, answer.text
    name = re.search(r'filename="(.+)"', answer.headers["content-disposition"]).group(1)
    path = tmp_path / name
    path.write_bytes(answer.content)
    if path.suffix == ".zip":
        zipfile.ZipFile(io.BytesIO(answer.content)).extractall(tmp_path / "folder")
        path = tmp_path / "folder"
    (document,) = read_documents(path, form)
    assert [m.text for m in document.mentions] == ["chest pain", "asthma"]
    if "attributes of mentions" not in answer.headers["x-lost"]:
        said = [dict(m.attributes) for m in document.mentions]
        assert [each["status"] for each in said] == ["absent", "family"]
        assert said[1]["experiencer"] == "family"


DOCUMENTS = [
    Document(
        "a",
        TEXT,
        (
            Mention(7, 17, "chest pain", ("D002637",), "Finding", id="T1"),
            Mention(
                21,
                38,
                "Mother asthma",
                ("MESH:D001249", "D000000"),
                "Disease",
                fragments=((21, 27), (32, 38)),
                parts=("Mother", "asthma"),
                id="T2",
                attributes=(("status", "family"), ("Speculated", "")),
            ),
        ),
        language="en",
        relations=(Relation("with", (("Arg1", "T1"), ("Arg2", "T2")), "R1"),),
        passages=(Passage(0, 18, "title"), Passage(19, 39, "text")),
    ),
    Document("b", "No asthma.", (Mention(3, 9, "asthma", (), "Disease", id="T1"),)),
]


def packed(path: Path) -> list[dict[str, str]]:
    """Return a file, or a folder as a zip archive, as the page sends it."""
    if path.is_dir():
        with zipfile.ZipFile(path.with_suffix(".zip"), "w") as archive:
            for file in path.rglob("*"):
                archive.write(file, file.relative_to(path))
        path = path.with_suffix(".zip")
    return [{"name": path.name, "content": base64.b64encode(path.read_bytes()).decode()}]


def opened(client: TestClient, files: list[dict[str, str]], **more: Any) -> Any:
    answer = client.post("/v1/open", json={"files": files, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def as_sent(documents: Any) -> Any:
    """Return opened documents as the page exports them where nothing was corrected."""
    for document in documents:
        for mention in document["mentions"]:
            del mention["text"]
    return documents


def exported(client: TestClient, documents: Any, to: str, folder: Path) -> list[Document]:
    answer = client.post(f"/v1/export?to={to}", json={"documents": documents})
    assert answer.status_code == 200, answer.text
    if answer.headers["content-type"] == "application/zip":
        zipfile.ZipFile(io.BytesIO(answer.content)).extractall(folder / "exported")
    else:
        (folder / "exported").write_bytes(answer.content)
    return list(read_documents(folder / "exported", to))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_opened_and_not_corrected_is_exported_as_it_was(client, form, tmp_path):
    """In its own format, and without a loss in one that holds everything."""
    write_documents(DOCUMENTS, tmp_path / "notes", form)
    before = list(read_documents(tmp_path / "notes", form))
    answer = opened(client, packed(tmp_path / "notes"), format=form)
    assert (answer["formats"], answer["n_rejected"]) == ([form], 0)
    documents = as_sent(answer["documents"])
    assert exported(client, documents, form, tmp_path) == before
    (tmp_path / "exported").rename(tmp_path / "first")
    unnamed = (replace(each, id="") for each in exported(client, documents, "jsonl", tmp_path))
    assert list(unnamed) == [replace(each, id="") for each in before]


def test_a_file_is_recognised_and_its_findings_are_those_of_the_knowledge_base(client, tmp_path):
    write_documents(DOCUMENTS, tmp_path / "notes", "brat")
    files = [
        {"name": path.name, "content": base64.b64encode(path.read_bytes()).decode()}
        for path in (tmp_path / "notes").iterdir()
    ]
    answer = opened(client, files)
    assert answer["formats"] == ["brat"]
    pain, asthma = answer["documents"][0]["mentions"]
    assert (pain["concept"], pain["name"], pain["status"]) == ("D002637", "Chest Pain", None)
    assert (asthma["text"], asthma["concept"]) == ("Mother asthma", "D001249")
    assert (asthma["status"], asthma["axes"]["experiencer"]) == ("family", "family")
    assert answer["documents"][1]["mentions"][0]["concept"] is None


def test_only_what_was_corrected_is_changed(client, tmp_path):
    write_documents(DOCUMENTS, tmp_path / "notes", "jsonl")
    documents = as_sent(opened(client, packed(tmp_path / "notes"))["documents"])
    pain, asthma = documents[0]["mentions"]
    pain.update(status="absent", axes={**DEFAULTS, "polarity": "negated"}, corrected=["time"])
    asthma.update(start=32, concept="D002637", name="Chest Pain", types=["symptom"])
    documents[1]["mentions"].append({"start": 0, "end": 2, "concept": None})
    a, b = exported(client, documents, "jsonl", tmp_path)
    assert replace(a, mentions=()) == replace(DOCUMENTS[0], mentions=())
    said = (("status", "absent"), ("polarity", "negated"), ("time", "current"))
    assert a.mentions[0] == replace(DOCUMENTS[0].mentions[0], attributes=said)
    assert a.mentions[1] == replace(
        DOCUMENTS[0].mentions[1],
        start=32,
        text="asthma",
        fragments=(),
        parts=(),
        concepts=("D002637",),
    )
    assert b.mentions == (*DOCUMENTS[1].mentions, Mention(0, 2, "No"))


def test_a_corrected_axis_is_stated_where_it_has_its_default(client):
    """Without it, `learn` does not see that the rules were wrong about it."""
    mention = {**MENTIONS[0], "corrected": ["time"]}
    line = json.loads(export(client, "jsonl", [mention]).text)
    assert line["mentions"][0]["attributes"] == [
        ["status", "absent"],
        ["polarity", "negated"],
        ["time", "current"],
    ]


def test_annotators_are_compared(client, tmp_path):
    write_documents(DOCUMENTS, tmp_path / "notes", "jsonl")
    first = as_sent(opened(client, packed(tmp_path / "notes"))["documents"])
    second = json.loads(json.dumps(first))
    second[0]["mentions"].pop()
    answer = client.post("/v1/agreement", json={"first": first, "second": second})
    assert answer.json()["spans"]["recall"] == 66.6667
    assert [each["text"] for each in answer.json()["differences"]] == ["Mother had asthma"]


@pytest.mark.parametrize(
    ("files", "detail"),
    [
        ([{"name": "a.txt", "content": "?"}], "content: expected bytes in base64"),
        ([{"name": "../a.txt", "content": ""}], "files: expected names"),
        ([{"name": "a.txt", "content": ""}] * 2, "files: expected names"),
        ([], "files: is a folder without files"),
        ([{"name": "a.json", "content": "eyJhIjogImZldmVyIn0="}], "files: no reader"),
        ([{"name": "a.txt", "content": base64.b64encode(b"a" * 201).decode()}], "text: a text"),
    ],
)
def test_files_that_cannot_be_opened_are_refused_without_a_word_of_them(client, files, detail):
    answer = client.post("/v1/open", json={"files": files})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(detail)
    assert "fever" not in answer.text
    assert "/" not in answer.json()["detail"]


def test_the_status_is_that_of_the_corrections(client):
    rows = export(client, "csv").text.splitlines()
    assert rows[1].startswith("note,7,17,chest pain,chest pain,D002637,Chest Pain,symptom,1.0,")
    assert ",absent,true,false," in rows[1]
    assert ",family,false," in rows[2]
    bundle = json.loads(export(client, "fhir").text)
    kinds = [each["resource"]["resourceType"] for each in bundle["entry"]]
    assert kinds == ["Condition", "FamilyMemberHistory"]


def test_a_mention_that_is_present_says_so_and_one_may_be_without_a_concept(client):
    """Where no mention has a status, nothing is learned of statuses."""
    present = {**PAIN, "status": "present", "axes": DEFAULTS}
    new = {"start": 25, "end": 31, "concept": None}
    line = json.loads(export(client, "jsonl", [present, new]).text)
    assert line["mentions"][0]["attributes"] == [["status", "present"]]
    assert "concepts" not in line["mentions"][1]


@pytest.mark.parametrize(
    ("mentions", "detail"),
    [
        ([{"start": 7, "end": 99}], "mentions: a span"),
        ([{"start": 7, "end": 7}], "mentions: a span"),
        ([{**PAIN, "axes": {"polarity": "maybe"}}], "axes: expected"),
        ([{**PAIN, "axes": {"mood": "bad"}}], "axes: expected"),
        ([{**PAIN, "decision": "correct"}], "body: a field"),
    ],
)
def test_what_does_not_fit_is_refused(client, mentions, detail):
    answer = export(client, "jsonl", mentions)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(detail)


def test_long_texts_and_unknown_formats_are_refused(client):
    assert export(client, "jsonl", [], "a" * 201).status_code == 422
    assert export(client, "pickle").status_code == 422


def test_the_page_offers_every_format():
    script = (PAGE / "corrections.js").read_text(encoding="utf-8")
    offered = re.search(r"const FORMATS = \[(.+?)\];", script, re.DOTALL).group(1)
    assert set(re.findall(r'"(.+?)"', offered)) == {*EXPORTS, "json"}
    axes = re.search(r"const AXES = \{(.+?)\};", script, re.DOTALL).group(1)
    for axis, values in AXES.items():
        listed = re.search(rf"{axis}: \[(.*?)\]", axes).group(1)
        assert re.findall(r'"(.*?)"', listed)[0] == values[""]
        assert set(re.findall(r'"(.*?)"', listed)) == set(values.values())


def test_the_pages_are_small():
    files = [path for path in PAGE.iterdir() if path.suffix in (".js", ".css")]
    assert sum(path.stat().st_size for path in files) < 150_000
    for path in PAGE.glob("*.html"):
        content = path.read_text(encoding="utf-8")
        assert not re.search(r"<script>|<style|\sstyle=|\son\w+=", content)

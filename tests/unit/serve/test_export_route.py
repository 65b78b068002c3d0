"""Corrected annotations as files: every format, the status as it was corrected, refusals."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
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
from biograft.text.formats import DOCUMENT_FORMATS, read_documents

PAGE = Path(__file__).parents[3] / "src/biograft/serve/page"
TEXT = "Denies chest pain. 😀 Mother had asthma."
PAIN = {"start": 7, "end": 17, "concept": "D002637", "name": "Chest Pain", "types": ["symptom"]}
ASTHMA = {"start": 32, "end": 38, "concept": "D001249", "name": "Asthma", "types": ["disease"]}
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
    return client.post(f"/v1/export?to={to}", json={"text": text, "mentions": mentions})


@pytest.mark.parametrize(
    "form", [name for name, each in DOCUMENT_FORMATS.load_all() if each.write is not None]
)
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


def test_the_pages_are_small_and_their_words_are_in_both_languages():
    files = [path for path in PAGE.iterdir() if path.suffix in (".js", ".css")]
    assert sum(path.stat().st_size for path in files) < 150_000
    for path in PAGE.glob("*.html"):
        content = path.read_text(encoding="utf-8")
        assert not re.search(r"<script>|<style|\sstyle=|\son\w+=", content)
        said = set(re.findall(r'data-say="(\w+)"', content))
        words = "".join(each.read_text(encoding="utf-8") for each in PAGE.glob("*words.js"))
        for key in said:
            assert len(re.findall(rf"\b{key}: ", words)) >= 2, key

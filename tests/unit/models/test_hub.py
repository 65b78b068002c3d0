"""Pushing models: what is listed, what is refused, what a hub receives."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import HfApi
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import ConfigError, NotFoundError, OutputError
from biograft.models.hub import plan_push, push

FILES = {
    "README.md": b"---\nlibrary_name: transformers\n---\n# A model\n",
    "config.json": b"{}",
    "manifest.json": b"{}",
    "model.safetensors": b"weights",
    "tokenizer.json": b"{}",
}


@pytest.fixture
def run(tmp_path):
    for name, content in FILES.items():
        path = tmp_path / "run" / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "run" / "results.json").write_text("{}")
    (tmp_path / "run" / "predictions-dev.jsonl").write_text("a patient")
    return tmp_path / "run"


class Hub(BaseHTTPRequestHandler):
    """A hub that takes files in commits, and keeps them."""

    created: dict[str, object]
    received: dict[str, bytes]

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        self._answer(self._take(body))

    def do_GET(self):
        self._answer({"siblings": [], "id": "me/ner", "sha": "0" * 40})

    def _take(self, body):
        if self.path.endswith("/repos/create"):
            type(self).created = json.loads(body)
            return {"url": f"http://{self.headers['Host']}/me/ner"}
        if "/preupload/" in self.path:
            files = json.loads(body)["files"]
            upload = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return {"files": [{"path": each["path"], **upload} for each in files]}
        if "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    value = line["value"]
                    type(self).received[value["path"]] = base64.b64decode(value["content"])
            address = f"http://{self.headers['Host']}/me/ner/commit/{'0' * 40}"
            return {"commitUrl": address, "commitOid": "0" * 40, "pullRequestUrl": None}
        return {"errors": [], "warnings": []}

    def _answer(self, value):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        """Say nothing."""


@pytest.fixture
def hub():
    kind = type("KeepingHub", (Hub,), {"created": {}, "received": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    kind.api = HfApi(f"http://127.0.0.1:{server.server_port}", token="hf_x")
    yield kind
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_files_of_the_model_alone_are_sent(run, hub):
    address = push(run, "me/ner", private=True, api=hub.api)
    assert address == f"{hub.api.endpoint}/me/ner"
    assert hub.received == FILES
    assert (hub.created["name"], hub.created["organization"]) == ("ner", "me")
    assert hub.created.get("private") or hub.created.get("visibility") == "private"


def test_what_is_listed(run):
    upload = plan_push(run, "me/ner", api=HfApi("http://localhost:1"))
    assert (upload.host, upload.folder) == ("http://localhost:1", run / "model")
    assert upload.files == {name: len(content) for name, content in FILES.items()}


@pytest.mark.parametrize(
    "name", ["predictions-dev.jsonl", "train.tsv", "notes/1.txt", "texts.arrow"]
)
def test_a_folder_with_texts_is_refused(run, name):
    path = run / "model" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("a patient")
    with pytest.raises(ConfigError, match="is no file of a model and may hold texts"):
        plan_push(run, "me/ner")


@pytest.mark.parametrize("to", ["ner", "a/b/c", "me/ ner", ""])
def test_other_names_are_refused(run, to):
    with pytest.raises(ConfigError, match="to: expected OWNER/NAME"):
        plan_push(run, to)


def test_a_folder_without_weights_is_refused(run):
    (run / "model" / "model.safetensors").unlink()
    with pytest.raises(NotFoundError, match="holds no weights"):
        plan_push(run, "me/ner")
    with pytest.raises(NotFoundError, match="no such folder"):
        plan_push(run / "nowhere", "me/ner")


def test_a_hub_out_of_reach_is_one_line(run):
    with pytest.raises(OutputError, match=r"127\.0\.0\.1:9: me/ner was not pushed") as caught:
        push(run, "me/ner", api=HfApi("http://127.0.0.1:9", token="hf_x"))
    assert "\n" not in str(caught.value)


def test_the_command_sends_nothing_without_yes(run):
    result = CliRunner().invoke(app, ["checkpoint", "push", str(run), "--to", "me/ner"])
    assert "model.safetensors (7 bytes)" in result.output
    assert isinstance(result.exception, ConfigError)
    assert "nothing was sent; --yes sends" in str(result.exception)

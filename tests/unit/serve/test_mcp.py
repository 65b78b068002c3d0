"""The MCP server by the client library: over stdio, over HTTP, with keys, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import pytest
from generative_store import store_in

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
import httpx
import uvicorn
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters

from biograft.errors import ConfigError, NotFoundError
from biograft.linking import Linker
from biograft.serve import KeyFile, ServiceEngine, create_mcp_server, run_mcp
from biograft.serve.agent_tools import TOOLS, CodeAndLabel, ConceptTools
from biograft.serve.mcp import http_app
from biograft.serve.run import server_options

ABSENT = (
    "mcp",
    "mcp_types",
    "fastapi",
    "prometheus_client",
    "polars",
    "pyarrow",
    "sqlalchemy",
    "torch",
)
"""Packages of other extras, which the tools need not."""
COMMAND = f"""
import sys
for name in {ABSENT!r}:
    sys.modules[name] = None  # as if it were not installed
from biograft.cli import main
main()
"""


def pairs(*codes):
    return [CodeAndLabel(id=code, label=label) for code, label in codes]


NOTE = "Denies chest pain. Mother had type 2 diabetes."
T2D = {"id": "D003924", "label": "Diabetes Mellitus, Type 2"}


@pytest.fixture(scope="module")
def server(starter):
    """A server in this process."""
    return create_mcp_server(starter)


@pytest.fixture(scope="module")
def portal():
    with start_blocking_portal() as opened:
        yield opened


@pytest.fixture(scope="module")
def client(starter, portal):
    """A client of a process that was started as an assistant starts it."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", COMMAND, "mcp", "--kb", str(starter)],
        env={**os.environ, "BIOGRAFT_LANG": "en"},
    )
    with portal.wrap_async_context_manager(Client(server)) as opened:
        yield opened


@pytest.fixture
def ask(client, portal):
    def call(tool, /, **arguments):
        answer = portal.call(client.call_tool, tool, arguments)
        assert not answer.is_error, answer.content[0].text
        assert json.loads(answer.content[0].text) == answer.structured_content
        return answer.structured_content

    return call


@pytest.fixture
def refused(client, portal):
    def call(tool, /, **arguments):
        answer = portal.call(client.call_tool, tool, arguments)
        assert answer.is_error
        (content,) = answer.content
        assert "\n" not in content.text
        return content.text

    return call


def test_every_tool_says_what_to_do_and_limits_what_it_takes(client, portal):
    tools = portal.call(client.list_tools).tools
    assert tuple(tool.name for tool in tools) == TOOLS
    for tool in tools:
        assert len(tool.description) > 50
        assert tool.annotations.read_only_hint
        for name, schema in tool.input_schema["properties"].items():
            text = json.dumps(schema)
            bounded = ("maxLength", "maximum", "maxItems", "enum", "boolean")
            assert any(word in text for word in bounded), (tool.name, name)
    assert "Never write a code from memory" in client.instructions


def test_a_text_is_linked_as_by_the_linker(ask, starter):
    found = ask("link_text", text=NOTE, k=1)
    expected = Linker.open(starter)(NOTE).mentions
    assert [(m["start"], m["concept"]["id"], m["status"]) for m in found["mentions"]] == [
        (m.start, m.concept, m.status) for m in expected
    ]
    assert "matched" not in found["mentions"][1]["concept"]  # it is what the text has
    assert found["mentions"][0]["axes"] == {"polarity": "negated"}
    assert not any("others" in m for m in found["mentions"])
    assert ask("link_text", text=NOTE, limit=1)["truncated"]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("concept", {"id": "D999999"}, "no concept has the id 'D999999'"),
        ("search", {"text": "a", "limit": 1000}, "limit: Input should be less than or equal to"),
        ("check", {"codes": [{"id": "D1", "code": "x"}]}, "codes.0.code: Extra inputs"),
        ("link_text", {"text": "x" * 50_001}, "text: String should have at most 50000"),
        ("invent", {}, "Unknown tool: invent"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(refused, tool, arguments, message):
    assert message in refused(tool, **arguments)


def test_a_bug_tells_a_client_nothing(server, portal, monkeypatch, caplog):
    def fail(*_):
        raise ValueError("patient Smith")

    monkeypatch.setattr(ServiceEngine, "concept", fail)
    with portal.wrap_async_context_manager(Client(server)) as opened:
        answer = portal.call(opened.call_tool, "concept", {"id": "D003924"})
    assert answer.content[0].text == "internal error; it was logged"
    assert "ValueError in the tool concept" in caplog.text
    assert "Smith" not in caplog.text


def test_codes_of_other_vocabularies(tmp_path):
    concepts = [
        {
            "id": "C1",
            "name": "Fever",
            "ids": [
                {"id": "HP:0001945", "kind": "alternate"},
                {"id": "ICD10:R50", "kind": "xref"},
                {"id": "C0", "kind": "replaced"},
            ],
        }
    ]
    answers = ConceptTools(ServiceEngine.open(store_in(tmp_path, concepts)))
    found = answers.cross_references("C1", 10)
    assert [(each["id"], each["kind"]) for each in found["codes"]] == [
        ("C1", "primary"),
        ("HP:0001945", "alternate"),
        ("ICD10:R50", "cross-reference"),
    ]
    assert found["codes"][1]["system"] == "http://human-phenotype-ontology.org"
    assert answers.cross_references("ICD10:R50", 10)["referred_to_by"][0]["id"] == "C1"
    codes = pairs(*((id_, "Fever") for id_ in ("ICD10:R50", "HP:1945", "HP:0001945", "C0")))
    checked = answers.check(codes)["codes"]
    assert [each["status"] for each in checked] == [
        *("cross_reference", "unknown_id", "preferred", "retired")
    ]
    assert [each["id"] for each in checked[-1]["replaced_by"]] == ["C1"]
    with pytest.raises(NotFoundError, match="C0 is retired: replaced by C1"):
        answers.concept("C0", 5)


def test_retirement_is_asked_before_the_label(tmp_path):
    """A retired id is retired, whatever name comes with it, and wherever it is an alternate id."""
    concepts = [
        {
            "id": "HP:0000002",
            "name": "Tall stature",
            "names": [{"text": "Gigantism"}],
            "ids": [
                {"id": "HP:0000057", "kind": "alternate"},
                {"id": "HP:0000057", "kind": "replaced"},
                {"id": "HP:0000058", "kind": "alternate"},
                {"id": "SNOMED:248328003", "kind": "alternate"},
            ],
        }
    ]
    answers = ConceptTools(ServiceEngine.open(store_in(tmp_path, concepts)))
    labels = ("Tall stature", "Gigantism", "Obsolete tall stature", "")
    superseded = ("HP:0000057", "HP:0000058")
    checked = answers.check(pairs(*((id_, label) for id_ in superseded for label in labels)))[
        "codes"
    ]
    assert {each["status"] for each in checked} == {"retired"}
    assert {each["replaced_by"][0]["id"] for each in checked} == {"HP:0000002"}
    others = answers.check(
        pairs(*((id_, "Tall stature") for id_ in ("HP:0000002", "SNOMED:248328003")))
    )
    assert [each["status"] for each in others["codes"]] == ["preferred", "preferred"]


def test_parents_are_not_cut_without_saying_so(tmp_path):
    """The parents were those of the HTTP answer, which has a hundred at most."""
    concepts = [{"id": "A", "name": "all", "relations": {"is-a": [f"U{n}" for n in range(150)]}}]
    concepts += [{"id": f"U{n}", "name": f"upper {n}"} for n in range(150)]
    answers = ConceptTools(ServiceEngine.open(store_in(tmp_path, concepts)))
    for limit, expected in ((200, (150, False)), (120, (120, True))):
        answer = answers.concept("A", limit)
        assert (len(answer["parents"]), answer.get("truncated", False)) == expected


def test_several_concepts_at_once(ask):
    known, retired = ask("concepts", ids=["D003924", "D999999"])["concepts"]
    assert T2D.items() <= known.items()
    assert known["definition"]
    assert known["parents"][0]["label"] == "Diabetes Mellitus"
    assert retired == {"id": "D999999", "error": "no concept has the id 'D999999'"}
    assert ask("concepts", ids='["D003924"]')["concepts"] == [known]


def test_what_an_answer_says_once_is_not_repeated(ask):
    """Names by language and kind, neighbours by relation, ways without their ends."""
    names = ask("names", id="D003924")
    assert names["names"]["en preferred"] == [T2D["label"]]
    assert {"total", "truncated"}.isdisjoint(names)
    cut = ask("names", id="D003924", limit=1)
    assert cut["truncated"]
    assert cut["total"] == sum(map(len, names["names"].values()))
    near = ask("neighbours", id="D003924")["neighbours"]
    assert set(near) == {"in", "out"}
    assert all(set(each) == {"id", "label"} for each in near["out"]["is-a"])
    relation = next(iter(near["in"]))
    one = ask("neighbours", id="D003924", relation=relation, direction="in")
    assert one["neighbours"] == {"in": {relation: near["in"][relation]}}
    parent = near["out"]["is-a"][0]
    direct = ask("is_a", id="D003924", ancestor=parent["id"])
    assert (direct["is_a"], direct["ancestor"]) == (True, parent)
    assert "evidence" not in direct
    (above,) = ask("parents", id=parent["id"])["parents"][:1]
    assert ask("is_a", id="D003924", ancestor=above["id"])["evidence"] == [parent]
    way = ask("path", id="D003924", other=above["id"])
    assert (way["up"], way["common_ancestor"]) == ([parent], above)
    (checked,) = ask("check", codes=[{"id": "D003924", "label": parent["label"]}])["codes"]
    assert checked["label_belongs_to"] == [parent]
    assert "suggestions" not in checked


def test_the_name_that_a_search_found_is_given_where_it_is_not_the_label(ask):
    (hit,) = ask("search", text="type 2 diabetes", limit=1)["concepts"]
    assert (hit["id"], hit["matched"]) == ("D003924", "type 2 diabetes")
    (hit,) = ask("search", text=T2D["label"], limit=1)["concepts"]
    assert hit["id"] == "D003924"
    assert "matched" not in hit


def test_an_answer_of_cut_neighbours_counts_all_of_them(ask):
    whole = ask("neighbours", id="D003924", limit=200)
    n = sum(len(each) for way in whole["neighbours"].values() for each in way.values())
    assert n > 3
    assert "total" not in whole
    cut = ask("neighbours", id="D003924", limit=3)
    assert (cut["total"], cut["truncated"]) == (n, True)
    outward = list(whole["neighbours"]["out"].values())
    one = ask("neighbours", id="D003924", direction="out", limit=1)
    assert one["total"] == sum(map(len, outward))


def test_nothing_empty_is_answered(ask):
    def values(answer):
        for each in answer.values() if isinstance(answer, dict) else answer:
            yield each
            if isinstance(each, dict | list):
                yield from values(each)

    answer = ask("concept", id="D003924")
    assert not [each for each in values(answer) if each in (None, "", [], {})]
    assert "truncated" not in ask("names", id="D003924")
    (term,) = ask("map_terms", terms=["MS"])["terms"]
    assert term["flag"] == "weak"
    (nothing,) = ask("map_terms", terms=["wombat qqq"])["terms"]
    assert nothing["concept"] is None


def spoken(kb, lines):
    """Return the answers of a process to lines, and what it has imported."""
    code = (
        "import sys; from biograft.serve import run_mcp; run_mcp(sys.argv[1]);"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    command = [sys.executable, "-c", code, str(kb)]
    run = subprocess.run(command, input=b"".join(lines), capture_output=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()], run.stderr.decode().split()


def message(number, method, **params):
    return (
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        + b"\n"
    )


def test_looking_up_loads_neither_the_package_nor_the_linker(starter):
    lines = [
        message(1, "initialize", protocolVersion="2025-06-18"),
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n',
        message(2, "tools/call", name="search", arguments={"text": "fever", "limit": 1}),
    ]
    answers, modules = spoken(starter, lines)
    assert [each["id"] for each in answers] == [1, 2]
    assert answers[0]["result"]["protocolVersion"] == "2025-06-18"
    assert answers[1]["result"]["structuredContent"]["concepts"][0]["label"] == "Fever"
    assert {"mcp", "numba", "biograft.linking.linker"}.isdisjoint(modules)


def test_what_is_no_message_gets_an_error_and_the_next_is_answered(starter):
    lines = [
        b"{no json\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b"[1]\n",
        b"\n",
        b'{"id": 1}\n',
        message(2, "server/discover"),
        message(3, "tools/call", name="search", arguments=["fever"]),
        message(4, "tools/call", name=None),
        message(5, "initialize", protocolVersion=["x"]),
        b"x" * (5 << 20) + b"\n",
        message(6, "ping"),
    ]
    answers, _ = spoken(starter, lines)
    codes = [each["error"]["code"] for each in answers if "error" in each]
    assert codes == [*[-32700] * 3, -32600, -32600, -32601, -32602, -32602, -32700]
    assert answers[-1] == {"jsonrpc": "2.0", "id": 6, "result": {}}
    assert answers[-3]["result"]["protocolVersion"] == "2025-11-25"


class _Server:
    """An application served in a thread of this process."""

    def __init__(self, app):
        self._server = uvicorn.Server(uvicorn.Config(app, **server_options("127.0.0.1", 0)))
        self._server.install_signal_handlers = lambda: None
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/mcp"

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join()


def test_over_http(server, portal):
    with (
        _Server(http_app(server)) as url,
        portal.wrap_async_context_manager(Client(url)) as opened,
    ):
        answer = portal.call(opened.call_tool, "concept", {"id": "D003924"})
        assert T2D.items() <= answer.structured_content.items()
        elsewhere = httpx.post(url, json={}, headers={"host": "evil.example"})
        assert elsewhere.status_code in (403, 421)


def test_keys_are_asked_for_over_http(server, tmp_path):
    key = KeyFile.open(tmp_path / "keys.toml", create=True).add("assistant", "read")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"accept": "application/json, text/event-stream"}
    with _Server(http_app(server, keys=tmp_path / "keys.toml")) as url:
        assert httpx.post(url, json=body, headers=accept).status_code == 401
        known = {**accept, "authorization": f"Bearer {key}"}
        assert httpx.post(url, json=body, headers=known).status_code != 401
    with pytest.raises(ConfigError, match="--host"):
        run_mcp("KB", http=True, host="0.0.0.0")

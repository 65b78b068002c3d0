"""Pages of other sites in a real Chromium, which ask a service of the same machine."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from served_app import served

from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig

uvicorn = pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
TOKEN = "a-token-of-this-test"
ATTACK_PAGE = "/attack.html"
DECISION = json.dumps({"action": "nil", "version": 0, "reviewer": "attacker"})


class Recorder:
    """Keeps what each request was answered; has a page of the attacker.

    Such a page is of the origin of the service where the attacker's name leads to it.

    Args:
        app: Application that answers.
    """

    def __init__(self, app: Any) -> None:
        self.app, self.answers = app, list[tuple[str, str, int, bytes]]()
        self.html = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        status, parts = [0], []
        if scope["type"] == "http" and scope["path"] == ATTACK_PAGE:
            headers = [(b"content-type", b"text/html")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": self.html.encode()})
            return

        async def noted(message: Any) -> None:
            status[0] = message.get("status", status[0])
            parts.append(message.get("body", b""))
            await send(message)

        await self.app(scope, receive, noted)
        if scope["type"] == "http":
            answer = (scope["method"], scope["path"], status[0], b"".join(parts))
            self.answers.append(answer)


@contextlib.contextmanager
def serving(app: Any) -> Iterator[int]:
    with served(app) as address:
        yield int(address.rpartition(":")[2])


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[tuple[int, Recorder]]:
    """The port of a service that has the pages of the attacker."""

    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body"})

    recorder = Recorder(nothing)
    with serving(recorder) as port:
        yield port, recorder


@pytest.fixture(scope="module", params=["token", "no token"])
def service(
    request: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, Recorder, Any]]:
    from biograft.mapping import ReviewStore, ReviewTerm
    from biograft.serve import create_app

    folder = tmp_path_factory.mktemp("sites")
    source = folder / "concepts.jsonl"
    source.write_text('{"id": "D1", "name": "Myocardial Infarction"}\n', encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), folder / "KB")
    token = TOKEN if request.param == "token" else None
    with ReviewStore.open(folder / "review.db", create=True) as store:
        store.add_terms([ReviewTerm("hart atack", "I21")], reviewer="ann", queue="q")
        recorder = Recorder(create_app(folder / "KB", review=folder / "review.db", token=token))
        with serving(recorder) as port:
            yield port, recorder, store


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    names = "MAP *.test 127.0.0.1"  # as an attacker's name server does
    options = ["--no-sandbox", f"--host-resolver-rules={names}"]
    with playwright.sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=CHROMIUM, args=options)
        yield opened
        opened.close()


class Attack:
    """A page of an attacker, and what the service answered to it.

    Args:
        page: A page of the browser.
        service: Port, recorder and review of the service.
        elsewhere: Port and recorder of the attacker.
    """

    def __init__(
        self, page: Any, service: tuple[int, Recorder, Any], elsewhere: tuple[int, Recorder]
    ) -> None:
        self.page, (self.port, self.recorder, self.store) = page, service
        self.own, self.attacker = f"http://127.0.0.1:{self.port}", elsewhere[0]
        self.recorders = (self.recorder, elsewhere[1])
        self.recorder.answers.clear()
        self.before = self.decided()

    def decided(self) -> Any:
        return [each.to_json() for each in self.store.history("q")]

    def opens(self, host: str, port: int, html: str = "<p>page</p>") -> None:
        """Open a page that the attacker wrote, by a name of the attacker."""
        for each in self.recorders:
            each.html = html
        self.page.goto(f"http://{host}:{port}{ATTACK_PAGE}", wait_until="networkidle")

    def fetches(self, url: str, options: str = "{}") -> Any:
        """Return what a script of the page reads: status and text, or why there is nothing."""
        read = "a => a.text().then(text => [a.status, text]), error => [0, `${error}`]"
        script = f"fetch({url!r}, {options}).then({read})"
        return self.page.evaluate(script)

    def check(self, n_requests: int) -> None:
        """The requests came, none was answered, nothing changed and nothing was said."""
        asked = [each for each in self.recorder.answers if not each[1].startswith("/favicon")]
        assert len(asked) >= n_requests, asked
        for method, path, status, body in asked:
            assert status in (401, 403, 405, 415, 421), (method, path, status)
            assert b"hart" not in body
            assert b"Myocardial" not in body
        assert self.decided() == self.before


@pytest.fixture
def attack(browser: Any, service: Any, elsewhere: Any) -> Iterator[Attack]:
    context = browser.new_context()
    yield Attack(context.new_page(), service, elsewhere)
    context.close()


READS = ("/v1/review/terms?queue=q", "/v1/search?q=m", "/metrics", "/fhir/metadata", "/v1/version")
CHANGES = ("/v1/review/terms/1/decision", "/v1/review/bulk", "/v1/admin/reload", "/fhir")


def test_a_name_that_is_rebound_to_this_machine_reads_nothing(attack):
    attack.opens("evil.test", attack.port)
    for path in READS:
        status, text = attack.fetches(path)
        assert status == 421
        assert "hart" not in text
    attack.check(len(READS))


def test_a_name_that_is_rebound_changes_nothing(attack):
    attack.opens("evil.test", attack.port)
    kind = "{'content-type': 'application/json'}"
    for path in CHANGES:
        sent = f"{{method: 'POST', headers: {kind}, body: {DECISION!r}}}"
        assert attack.fetches(path, sent)[0] == 421
    attack.check(len(CHANGES))


def test_pages_of_other_sites_read_nothing(attack):
    attack.opens("attacker.test", attack.attacker)
    for path in READS:
        for options in ("{}", "{mode: 'no-cors', credentials: 'include'}"):
            assert attack.fetches(attack.own + path, options)[0] == 0
    attack.check(2 * len(READS))


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_form_of_another_site_changes_nothing(attack, kind):
    for path in CHANGES:
        form = f"<form method=post enctype='{kind}' action='{attack.own}{path}'>"
        form += f"<input name='{DECISION[:-1]}, \"x' value='\": 1}}'></form>"
        attack.opens("attacker.test", attack.attacker, form)
        with attack.page.expect_navigation():
            attack.page.evaluate("document.forms[0].submit()")
    attack.check(len(CHANGES))


@pytest.mark.parametrize("kind", ["", "text/plain", "application/json"])
def test_a_script_of_another_site_changes_nothing(attack, kind):
    attack.opens("attacker.test", attack.attacker)
    body = f"new Blob([{DECISION!r}], {{type: {kind!r}}})"
    for path in CHANGES:
        attack.fetches(attack.own + path, f"{{method: 'POST', mode: 'no-cors', body: {body}}}")
    n = 0 if kind == "application/json" else len(CHANGES)  # a browser asks first, or refuses
    attack.check(n)


def test_a_page_of_another_port_of_this_machine_is_another_site(attack):
    attack.opens("127.0.0.1", attack.attacker)
    for path in (*READS, *CHANGES):
        method = "POST" if path in CHANGES else "GET"
        attack.fetches(attack.own + path, f"{{method: {method!r}, mode: 'no-cors'}}")
    attack.check(len(READS))


def test_images_and_scripts_of_another_site_get_nothing(attack):
    html = "".join(
        f"<img src='{attack.own}{path}'><script src='{attack.own}{path}'></script>"
        f"<link rel=stylesheet href='{attack.own}{path}'>"
        for path in READS
    )
    attack.opens("attacker.test", attack.attacker, html)
    attack.check(3 * len(READS))


@pytest.mark.parametrize("path", ["/", "/review", "/v1/review/terms?queue=q", "/openapi.json"])
def test_nothing_is_shown_in_a_frame_of_another_site(attack, path):
    frame = f"<iframe src='{attack.own}{path}'></iframe>"
    attack.opens("attacker.test", attack.attacker, frame)
    (frame,) = attack.page.frames[1:]
    for _ in range(100):
        attack.page.wait_for_timeout(50)
        if frame.url:
            break
    assert frame.url.startswith("chrome-error:")
    assert attack.decided() == attack.before


def test_the_token_of_the_address_is_for_the_session_of_the_page_alone(attack, request):
    if "no token" in request.node.callspec.id:
        pytest.skip("a service with a token is meant")
    page, said = attack.page, []
    page.on("request", lambda each: said.append(each.url))
    link = f"<a href='{attack.own}/review'>a link</a>"
    attack.opens("attacker.test", attack.attacker, link)
    with page.expect_navigation():
        page.click("a")  # a link to the page shows the page, without what it is about
    page.wait_for_function("() => document.querySelector('#message').textContent")
    assert "hart" not in page.content()
    assert {status for _, path, status, _ in attack.recorder.answers if "/v1/" in path} == {401}
    page.goto(f"{attack.own}/review#token={TOKEN}")
    page.wait_for_selector("#queue option", state="attached")
    page.wait_for_function(
        "() => document.querySelector('#term-title').textContent === 'hart atack'"
    )
    assert page.evaluate("location.href") == f"{attack.own}/review"
    with page.expect_download() as download:
        page.click("#exports button")
    assert download.value.suggested_filename == "review.sssom.tsv"
    page.goto(f"{attack.own}/")
    page.fill("#text", "Myocardial infarction.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#body tr")
    assert not any(TOKEN in url for url in said)
    other = page.context.new_page()
    other.goto(f"{attack.own}/review")
    other.wait_for_function("() => document.querySelector('#message').textContent")
    assert "hart" not in other.content()

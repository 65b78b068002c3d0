"""The page of the service in a real Chromium: findings, keys, safety, accessibility."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig

uvicorn = pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

MALICIOUS = "<img src=x onerror=document.title='broken'>"
CONCEPTS = [
    {
        "id": "D1",
        "name": "Diabetes Mellitus, Type 2",
        "names": ["type 2 diabetes"],
        "type": "disease",
        "relations": {"is-a": ["D3"], "seen-with": ["D4"]},
    },
    {"id": "D2", "name": "Chest Pain", "type": "symptom"},
    {
        "id": "D3",
        "name": "Diabetes Mellitus",
        "names": {"en": ["diabetes"], "zh": ["糖尿病"]},
        "type": "disease",
    },
    {
        "id": "D4",
        "name": MALICIOUS,
        "names": ["strange syndrome"],
        "type": MALICIOUS,
        "definition": MALICIOUS,
    },
]
NOTE = "😀 Denies chest pain. Type 2 diabetes. Mother had diabetes."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    source = folder / "concepts.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in CONCEPTS), encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), folder / "KB")
    return folder


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application in a thread; give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    from biograft.serve import create_app  # needs the extra

    with served(create_app(folder / "KB")) as place:
        yield place


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as engine:
        resolved = "--host-resolver-rules=MAP evil.test 127.0.0.1"
        opened = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", resolved])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(locale="en-US")
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    opened = context.new_page()
    opened.problems = []
    opened.asked = []
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on(
        "console", lambda line: opened.problems.append(line.text) if line.type == "error" else None
    )
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.goto(address)
    yield opened
    assert opened.problems == []
    assert [url for url in opened.asked if not url.startswith(address)] == []
    context.close()


def link(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".finding")


def test_findings_are_marked_where_they_stand_and_as_they_are_said(page):
    link(page, NOTE)
    assert page.locator("#marked").inner_text().replace(" family", "") == NOTE
    found = page.locator(".finding")
    assert found.all_inner_texts() == ["chest pain", "Type 2 diabetes", "diabetes"]
    assert "absent" in found.nth(0).get_attribute("class")
    assert "absent" not in found.nth(1).get_attribute("class")
    assert page.locator("#marked sup").all_inner_texts() == [" family"]


def test_a_finding_is_opened_and_judged_by_keys(page):
    link(page, NOTE)
    page.locator("#text").blur()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".finding:focus")).to_have_text("Type 2 diabetes")
    assert page.locator("#detail-title").inner_text() == "Type 2 diabetes"
    page.keyboard.press("w")
    assert page.locator('[data-decide="wrong"]').get_attribute("aria-pressed") == "true"
    page.keyboard.press("c")
    assert page.locator('[data-decide="correct"]').get_attribute("aria-pressed") == "true"
    assert page.locator('[data-decide="wrong"]').get_attribute("aria-pressed") == "false"


def test_another_concept_is_chosen_in_the_search(page):
    link(page, "diabetes")
    page.locator(".finding").click()
    page.keyboard.press("o")
    page.fill("#query", "chest")
    page.wait_for_selector("#hits li[role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".finding")).to_have_attribute("title", re.compile("Chest Pain"))
    page.click('[data-copy="json"]')
    expect(page.locator("#message")).to_contain_text("JSON")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    (finding,) = copied["mentions"]
    assert (finding["concept"], finding["decision"]) == ("D2", "other")
    assert {"start", "text", "candidates"} < set(finding)
    assert not {"record", "stored", "pending"} & set(finding)


def test_the_neighbourhood_is_walked(page):
    link(page, "type 2 diabetes")
    page.locator(".finding").click()
    page.wait_for_selector("#graph .node")
    page.locator("#graph .node", has_text="Diabetes Mellitus").last.click()
    expect(page.locator("#concept-title")).to_contain_text("D3")
    assert "糖尿病" in page.locator("#facts").inner_text()


def test_what_a_store_or_a_text_says_is_text(page):
    link(page, f"{MALICIOUS} strange syndrome")
    page.locator(".finding").last.click()
    expect(page.locator("#concept-title")).to_contain_text("D4")
    page.fill("#query", "strange")
    page.wait_for_selector("#hits li[role=option]")
    assert MALICIOUS in page.locator("#concept-title").inner_text()
    assert MALICIOUS in page.locator("#definition").inner_text()
    assert page.locator("img").count() == 0
    assert page.title() == "biograft"


def test_a_file_is_dropped_on_the_page(page):
    page.evaluate(
        """() => {
          const moved = new DataTransfer();
          moved.items.add(new File(["Denies chest pain."], "note.txt"));
          document.dispatchEvent(new DragEvent("drop", {dataTransfer: moved}));
        }"""
    )
    expect(page.locator(".finding")).to_have_text("chest pain")
    assert page.input_value("#text") == "Denies chest pain."


@pytest.mark.parametrize(("kind", "begins"), [("csv", "document,"), ("fhir", "{")])
def test_findings_are_copied(page, kind, begins):
    link(page, NOTE)
    page.click(f'[data-copy="{kind}"]')
    expect(page.locator("#message")).to_contain_text(kind.upper())
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(begins)
    assert "D1" in copied


def test_the_keys_are_listed(page):
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_low_scores_are_hidden_by_the_slider(page):
    link(page, NOTE)
    page.locator("#threshold").evaluate(
        "slider => { slider.value = 1; slider.dispatchEvent(new Event('input')); }"
    )
    assert page.locator(".finding").count() == 3
    assert page.locator("#shown").inner_text() == "1.00"


def test_it_speaks_chinese(page):
    page.click("#language")
    assert page.locator("#find").inner_text() == "识别并链接"
    assert page.evaluate("document.documentElement.lang") == "zh"


@pytest.fixture
def judging(page: Any, folder: Path, tmp_path: Path) -> Iterator[Any]:
    """The page where a review is open, and what the review holds."""
    from biograft.mapping import ReviewStore
    from biograft.serve import create_app

    place = tmp_path / "review.db"
    with served(create_app(folder / "KB", review=place)) as at, ReviewStore.open(place) as review:
        page.asked.clear()
        page.goto(at)

        def stored() -> dict[str, tuple[str, str | None]]:
            page.evaluate("state.sending")
            queues = [each["queue"] for each in review.queues()]
            items = review.items("findings") if "findings" in queues else []
            return {each.term.text: (each.state.status, each.state.concept) for each in items}

        yield page, stored, review
        page.asked.clear()


def search(page: Any, words: str) -> None:
    page.fill("#query", words)
    page.wait_for_selector("#hits li[role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")


def pressed(page: Any) -> str | None:
    """Return the decision that the page shows."""
    shown = page.locator('#decide [aria-pressed="true"]')
    return shown.get_attribute("data-decide") if shown.count() else None


def test_another_finding_is_not_judged_by_a_search_for_the_one_before(judging):
    page, stored, _ = judging
    link(page, NOTE)
    page.locator(".finding").nth(0).click()
    page.keyboard.press("o")
    page.locator(".finding").nth(2).click()
    search(page, "strange")
    page.wait_for_selector("#concept")
    assert stored() == {}
    page.locator(".finding").nth(0).click()
    page.keyboard.press("o")
    link(page, "Type 2 diabetes and chest pain")
    expect(page.locator(".finding")).to_have_count(2)
    search(page, "strange")
    assert stored() == {}
    page.locator(".finding").nth(1).click()
    page.keyboard.press("o")
    search(page, "strange")
    assert stored() == {"chest pain": ("approved", "D4")}
    page.locator(".finding").nth(0).click()
    page.keyboard.press("o")
    page.locator("h1").click()
    page.keyboard.press("/")
    search(page, "strange")
    assert stored() == {"chest pain": ("approved", "D4")}


@pytest.mark.parametrize("keys", ["c", "cc", "ccc", "cw", "cww", "wcc", "cwc"])
def test_quick_keys_show_what_the_review_holds(judging, keys):
    page, stored, _ = judging
    link(page, NOTE)
    page.locator(".finding").nth(1).click()
    page.evaluate(
        "(keys) => keys.forEach((key) => decide(key))",
        [{"c": "correct", "w": "wrong"}[key] for key in keys],
    )
    status, _ = stored().get("Type 2 diabetes", ("open", None))
    shown = pressed(page)
    assert shown == {"approved": "correct", "rejected": "wrong", "open": None}[status]
    wanted: str | None = None
    for key in keys:
        wanted = None if wanted == key else key
    assert shown == {"c": "correct", "w": "wrong", None: None}[wanted]


@pytest.mark.parametrize("keys", [["wrong"], ["correct"], ["wrong", "wrong"]])
def test_a_decision_of_another_reviewer_is_shown_before_it_is_replaced(judging, keys):
    """The page said for good that the term has another version, and showed its own decision."""
    page, stored, review = judging
    link(page, NOTE)
    page.locator(".finding").nth(1).click()
    page.keyboard.press("c")
    assert stored() == {"Type 2 diabetes": ("approved", "D1")}
    term = review.find("findings", "Type 2 diabetes")
    review.decide(term.id, "approve", reviewer="bob", version=term.version, concept="D3")
    page.evaluate("(keys) => keys.forEach(decide)", keys)
    assert stored() == {"Type 2 diabetes": ("approved", "D3")}
    expect(page.locator("#message")).to_contain_text("Not saved:")
    assert pressed(page) == "other"
    expect(page.locator(".finding").nth(1)).to_have_attribute("title", "D3")
    page.keyboard.press("w")
    assert stored() == {"Type 2 diabetes": ("rejected", "D3")}
    assert pressed(page) == "wrong"
    page.problems[:] = [each for each in page.problems if "409" not in each]


async def empty_page(scope: Any, receive: Any, send: Any) -> None:
    """A page of another site."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def test_pages_of_other_sites_neither_read_nor_write_the_review(browser, judging):
    """By a name that resolves to this machine, and by a body without a content type."""
    page, stored, review = judging
    link(page, NOTE)
    page.locator(".finding").nth(1).click()
    page.keyboard.press("c")
    kept = {"Type 2 diabetes": ("approved", "D1")}
    assert stored() == kept
    at = page.url
    term = review.find("findings", "Type 2 diabetes")
    body = {"action": "nil", "version": term.version, "reviewer": "evil"}
    other = browser.new_context().new_page()
    for path in ("", "v1/review/terms?queue=findings", "metrics"):
        assert other.goto(at.replace("127.0.0.1", "evil.test") + path).status == 421
    with served(empty_page) as elsewhere:
        other.goto(elsewhere)
        answered = other.evaluate(
            """async ([url, body]) => {
              const headers = {"content-type": "application/json"};
              const ways = [{body: new Blob([body])}, {body}].map(
                (each) => ({...each, mode: "no-cors"})).concat({body, headers});
              const sent = ways.map((each) => fetch(url, {method: "POST", ...each}));
              return (await Promise.allSettled(sent)).map((each) => each.value?.type ?? "failed");
            }""",
            [f"{at}v1/review/terms/{term.id}/decision", json.dumps(body)],
        )
    assert answered == ["opaque", "opaque", "failed"]
    assert stored() == kept
    other.context.close()


def test_a_key_is_asked_for_where_one_is_needed(page, folder, tmp_path):
    from biograft.serve import KeyFile, create_app

    keys = KeyFile.open(tmp_path / "keys.toml", create=True)
    key = keys.add("ann", "review")
    with served(create_app(folder / "KB", keys=keys.path)) as at:
        page.asked.clear()
        page.goto(at)
        page.fill("#text", "chest pain")
        page.click("#find")
        page.fill("#key", key)
        page.click("#use-key")
        link(page, "chest pain")
        expect(page.locator(".finding")).to_have_count(1)
        assert page.locator("#key-row").is_hidden()
    page.asked.clear()
    page.problems[:] = [each for each in page.problems if "401" not in each]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_is_accessible(page, scheme, width):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    )
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    link(page, NOTE)
    page.locator(".finding").nth(1).click()
    page.wait_for_selector("#graph .node")
    # axe-core injects its script by the debugger, which the page's own policy does not allow
    source = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    page.evaluate(source + "\n;undefined")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [
        (each["id"], [n["target"] for n in each["nodes"]]) for each in found["violations"]
    ] == []
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width


def test_a_service_that_is_gone_is_said_in_one_line(page, address):
    page.route("**/v1/link", lambda route: route.abort())
    page.fill("#text", "flu")
    page.click("#find")
    expect(page.locator("#message")).to_contain_text("reached")
    page.problems.clear()

"""The page of a review in a real Chromium: keys, conflicts, undo, bulk, safety, accessibility."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served_app import served

from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
expect.set_options(timeout=20_000)
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

MALICIOUS = "<img src=x onerror=document.title='broken'>"
CONCEPTS = [
    {"id": "D1", "name": "Myocardial Infarction", "names": ["heart attack"]},
    {"id": "D2", "name": "Heart Arrest"},
    {"id": "D3", "name": MALICIOUS},
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    from biograft.mapping import ReviewStore
    from biograft.serve import create_app  # needs the extra

    folder = tmp_path_factory.mktemp("review-page")
    source = folder / "concepts.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in CONCEPTS), encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), folder / "KB")
    app = create_app(folder / "KB", review=folder / "review.db")
    with served(app) as address, ReviewStore.open(folder / "review.db") as store:
        yield address, store


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def queue(request: Any, service: Any) -> str:
    from biograft.mapping import ReviewTerm, SuggestedConcept

    first = SuggestedConcept("D1", "Myocardial Infarction", 0.76)
    second = SuggestedConcept("D2", "Heart Arrest", 0.5)
    terms = [
        ReviewTerm("hart atack", "I21", frequency=40, candidates=(first, second)),
        ReviewTerm(MALICIOUS, frequency=5, candidates=(SuggestedConcept("D3", MALICIOUS, 0.3),)),
        ReviewTerm("zzq", frequency=1, flag="nil", candidates=(second,)),
    ]
    name = request.node.name
    service[1].add_terms(terms, reviewer="ann", queue=name)
    return str(name)


@pytest.fixture
def page(browser: Any, service: Any, queue: str) -> Iterator[Any]:
    address, _ = service
    context = browser.new_context(locale="en-US")
    opened = context.new_page()
    opened.problems = []
    opened.asked = []
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on(
        "console", lambda line: opened.problems.append(line.text) if line.type == "error" else None
    )
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.goto(f"{address}/review")
    opened.wait_for_selector("#queue option", state="attached")
    opened.fill("#reviewer", "ann")
    opened.select_option("#queue", queue)
    expect(opened.locator("#total")).to_have_text("3 terms")
    expect(opened.locator("#term-title")).to_have_text("hart atack")
    opened.wait_for_function("() => state.busy === null")
    opened.locator("#reviewer").blur()
    yield opened
    assert opened.problems == []
    assert [url for url in opened.asked if not url.startswith(address)] == []
    context.close()


def statuses(service: Any, queue: str) -> dict[str, str]:
    return {item.term.text: item.state.status for item in service[1].items(queue)}


def test_a_key_each_decides_and_leads_on(page, service, queue):
    page.keyboard.press("2")
    page.keyboard.press("a")
    expect(page.locator("#term-title")).to_have_text(MALICIOUS)
    page.keyboard.press("r")
    expect(page.locator("#term-title")).to_have_text("zzq")
    page.keyboard.press("c")
    page.keyboard.type("nothing")
    page.keyboard.press("Enter")
    page.keyboard.press("n")
    expect(page.locator("#message")).to_have_text("No term is left here.")
    expect(page.locator("#progress-said")).to_have_text("3 of 3 decided")
    assert statuses(service, queue) == {
        "hart atack": "approved",
        MALICIOUS: "rejected",
        "zzq": "nil",
    }
    items = {item.term.text: item for item in service[1].items(queue)}
    assert items["hart atack"].state.concept == "D2"
    assert service[1].comments(queue) == {items["zzq"].id: "nothing"}


def test_the_last_decision_is_taken_back_by_a_key(page, service, queue):
    page.keyboard.press("a")
    expect(page.locator("#term-title")).to_have_text(MALICIOUS)
    page.keyboard.press("u")
    expect(page.locator("#term-title")).to_have_text("hart atack")
    expect(page.locator("#message")).to_have_text("Undone.")
    page.evaluate("decisions.idle()")
    assert set(statuses(service, queue).values()) == {"open"}


def test_another_concept_is_chosen_in_the_search(page, service, queue):
    page.keyboard.press("o")
    page.keyboard.type("heart arr")
    page.wait_for_selector("#hits li[role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#term-title")).to_have_text(MALICIOUS)
    page.evaluate("decisions.idle()")
    assert service[1].items(queue)[0].state.concept == "D2"


def test_a_conflict_is_shown_with_what_the_other_decided(page, service, queue):
    term = service[1].items(queue)[0]
    service[1].decide(term.id, "nil", reviewer="bob")
    page.keyboard.press("a")
    expect(page.locator("#term-title")).to_have_text(MALICIOUS)
    expect(page.locator("#conflict")).to_contain_text("by bob")
    page.keyboard.press("k")
    expect(page.locator("#state")).to_contain_text("bob")
    page.keyboard.press("a")  # not seen yet: nothing is overwritten
    page.keyboard.press("a")
    page.evaluate("decisions.idle()")
    assert service[1].item(term.id).state.status == "nil"
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    expect(page.locator("#term-title")).to_have_text(MALICIOUS)
    page.evaluate("decisions.idle()")
    assert service[1].item(term.id).state.reviewer == "ann"
    page.problems[:] = [each for each in page.problems if "409" not in each]


def test_many_are_decided_after_a_question(page, service, queue):
    page.fill("#least", "0.3")
    page.click("#filters button")
    expect(page.locator("#total")).to_have_text("3 terms")
    page.fill("#least", "0.7")
    page.click("#filters button")
    expect(page.locator("#total")).to_have_text("1 terms")
    page.click('[data-act="bulkNil"]')
    expect(page.locator("#ask-title")).to_contain_text("1 terms")
    page.click('#ask button[value="no"]')
    assert set(statuses(service, queue).values()) == {"open"}
    page.click('[data-act="bulkNil"]')
    page.click('#ask button[value="yes"]')
    expect(page.locator("#message")).to_contain_text("1 decided")
    assert statuses(service, queue)["hart atack"] == "nil"


def test_what_a_term_or_a_store_says_is_text(page):
    page.keyboard.press("j")
    expect(page.locator("#term-title")).to_have_text(MALICIOUS)
    expect(page.locator("#candidates")).to_contain_text(MALICIOUS)
    assert page.locator("img").count() == 0
    assert page.title() == "biograft review"


def test_it_speaks_chinese(page):
    page.click("#language")
    expect(page.locator('[data-act="exact"]')).to_contain_text("相同")
    assert page.evaluate("document.documentElement.lang") == "zh"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 360), ("dark", 1200)])
def test_it_is_accessible(page, scheme, width, language):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    )
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    if language == "zh":
        page.click("#language")
    expect(page.locator("#beside-title")).to_contain_text("Myocardial Infarction")
    # axe-core injects its script by the debugger, which the page's own policy does not allow
    source = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    page.evaluate(source + "\n;undefined")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [
        (each["id"], [n["target"] for n in each["nodes"]]) for each in found["violations"]
    ] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_judged_finding_of_the_other_page_is_kept(page, service):
    page.goto(f"{service[0]}/")
    page.fill("#text", "He had a heart attack.")
    page.keyboard.press("Control+Enter")
    page.locator("#marked .finding").first.click()
    page.locator("#concept-title").wait_for()
    page.keyboard.press("c")
    expect(page.locator("#message")).to_have_text("Kept in the review.")
    (item,) = service[1].items("findings")
    assert (item.term.text, item.state.concept) == ("heart attack", "D1")
    page.keyboard.press("c")
    expect(page.locator('[data-decide="correct"]')).to_have_attribute(
        "aria-pressed", re.compile("false")
    )
    for _ in range(100):
        if service[1].items("findings")[0].state.status == "open":
            break
        time.sleep(0.05)
    assert service[1].items("findings")[0].state.status == "open"


def opened(browser: Any, service: Any, queue: str, reviewer: str) -> Any:
    page = browser.new_context(locale="en-US").new_page()
    page.goto(f"{service[0]}/review")
    page.wait_for_selector("#queue option", state="attached")
    page.fill("#reviewer", reviewer)
    page.select_option("#queue", queue)
    expect(page.locator("#total")).to_contain_text("terms")
    page.wait_for_function("() => state.busy === null && state.rows.length")
    page.locator("#reviewer").blur()
    return page


def fill(service: Any, queue: str, n: int, **more: Any) -> None:
    from biograft.mapping import ReviewTerm, SuggestedConcept

    first = SuggestedConcept("D1", "Myocardial Infarction", 0.9)
    second = SuggestedConcept("D2", "Heart Arrest", 0.5)
    terms = [ReviewTerm(f"term {i}", frequency=n - i, candidates=(first, second)) for i in range(n)]
    service[1].add_terms(terms, reviewer="eve", queue=queue, **more)


def test_fifty_decisions_take_less_than_two_keys_each(browser, service):
    """3.4 keys a decision before: a key approves with its relation, the search takes its first."""
    fill(service, "fifty", 50)
    page = opened(browser, service, "fifty", "ann")
    presses = 0

    def press(key: str) -> None:
        nonlocal presses
        presses += key.count("+") + 1
        page.keyboard.press(key)

    expected = []
    for number in range(50):
        expect(page.locator("#term-title")).to_have_text(f"term {number}")
        kind = number % 10
        if kind < 6:
            press("a")
            expected.append(("approve", "D1", "exact"))
        elif kind == 6:
            press("b")
            expected.append(("approve", "D1", "broad"))
        elif kind == 7:
            press("2")
            press("a")
            expected.append(("approve", "D2", "exact"))
        elif kind == 8:
            press("n")
            expected.append(("nil", None, "exact"))
        else:
            press("o")
            for letter in "arr":
                press(letter)
            page.wait_for_selector("#hits li[role=option]")
            press("Enter")
            expected.append(("approve", "D2", "exact"))
    page.evaluate("decisions.idle()")
    items = sorted(service[1].items("fifty"), key=lambda item: -item.term.frequency)
    assert [item.state.opinion for item in items] == expected
    assert presses / 50 < 2, presses
    page.context.close()


def test_a_bulk_approval_asks_for_a_sample_says_the_error_and_is_undone_at_once(browser, service):
    fill(service, "bulk", 70)
    page = opened(browser, service, "bulk", "ann")
    page.keyboard.press("B")
    expect(page.locator("#message")).to_contain_text("filter")
    page.fill("#least", "0.8")
    page.keyboard.press("Enter")
    page.wait_for_function("() => state.busy === null")
    page.locator("#least").blur()
    page.keyboard.press("B")
    expect(page.locator("#ask-title")).to_contain_text("70 terms would be approved. Check 60")
    page.keyboard.press("Enter")
    expect(page.locator("#total")).to_have_text("60 to check, of 70 terms")
    for _ in range(60):
        page.keyboard.press("a")
    expect(page.locator("#ask-title")).to_contain_text("Approve 10 terms, estimated at most")
    expect(page.locator("#ask-title")).to_contain_text("0 of 60 checked were wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("10 decided")
    assert set(statuses(service, "bulk").values()) == {"approved"}
    page.reload()
    page.wait_for_function("() => state.busy === null && state.words.undone")
    page.fill("#reviewer", "ann")
    page.select_option("#queue", "bulk")
    page.wait_for_function("() => state.busy === null")
    page.locator("#reviewer").blur()
    page.keyboard.press("u")
    expect(page.locator("#ask-title")).to_contain_text("10 terms at once")
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_have_text("Undone.")
    assert sorted(statuses(service, "bulk").values()) == ["approved"] * 60 + ["open"] * 10
    page.context.close()


def test_a_second_reviewer_sees_nothing_of_the_first_and_both_the_disagreement(browser, service):
    fill(service, "blindly", 3, approvals=2)
    service[1].set_approvals("blindly", 2, blind=True)
    bob = opened(browser, service, "blindly", "bob")
    expect(bob.locator("#beside-title")).to_contain_text("Myocardial Infarction")
    expect(bob.locator("#history li")).to_have_count(1)
    before = bob.inner_text("main")
    ann = opened(browser, service, "blindly", "ann")
    ann.keyboard.press("2")
    ann.keyboard.press("a")
    ann.evaluate("decisions.idle()")
    ann.keyboard.press("c")
    bob.reload()
    bob.wait_for_selector("#queue option", state="attached")
    bob.fill("#reviewer", "bob")
    bob.select_option("#queue", "blindly")
    bob.wait_for_function("() => state.busy === null && state.rows.length === 3")
    bob.locator("#reviewer").blur()
    expect(bob.locator("#beside-title")).to_contain_text("Myocardial Infarction")
    expect(bob.locator("#history li")).to_have_count(1)
    assert bob.inner_text("main").split() == before.split()
    bob.keyboard.press("a")
    bob.evaluate("decisions.idle()")
    bob.keyboard.press("g")
    expect(bob.locator("#pairs")).to_contain_text("ann, bob: 0 of 1 equal, kappa 0.000")
    expect(bob.locator("#disagreements")).to_contain_text("ann: approved Heart Arrest")
    bob.locator("#disagreements button").click()
    expect(bob.locator("#term-title")).to_have_text("term 0")
    expect(bob.locator("#state")).to_contain_text("disputed")
    for page in (ann, bob):
        page.context.close()


def test_a_further_concept_is_added_and_its_relation_set_by_keys(page, service, queue):
    page.keyboard.press("a")
    expect(page.locator("#term-title")).to_have_text(MALICIOUS)
    page.keyboard.press("k")
    page.keyboard.press("t")
    page.keyboard.type("heart arr")
    page.wait_for_selector("#hits li[role=option]")
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("Heart Arrest was added")
    expect(page.locator("#targets")).to_contain_text("Myocardial Infarction")
    page.keyboard.press("e")
    page.evaluate("decisions.idle()")
    found = {i.term.part: i.state.opinion for i in service[1].items(queue) if i.term.code == "I21"}
    assert found == {
        "": ("approve", "D1", "exact"),
        "Heart Arrest": ("approve", "D2", "related"),
    }


def test_the_concept_stands_beside_the_term_and_follows_the_candidate(page):
    expect(page.locator("#beside-title")).to_contain_text("Myocardial Infarction D1")
    expect(page.locator("#why")).to_contain_text("heart attack (")
    expect(page.locator("#names")).to_contain_text("heart attack")
    page.keyboard.press("2")
    expect(page.locator("#beside-title")).to_contain_text("Heart Arrest D2")
    page.keyboard.press("j")
    expect(page.locator("#beside-title")).to_contain_text(MALICIOUS)


def test_every_format_is_saved_by_a_key(page):
    page.keyboard.press("a")
    page.evaluate("decisions.idle()")
    for form, ending in (("sssom", ".sssom.tsv"), ("fhir", ".json"), ("all", ".zip")):
        page.select_option("#format", form)
        page.locator("#format").blur()
        with page.expect_download() as saved:
            page.keyboard.press("x")
        assert saved.value.suggested_filename == f"review{ending}"

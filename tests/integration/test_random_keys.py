"""Random keys in two tabs, answers that are late or get lost: pages and database say the same."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from review_places import end_all_connections, postgresql
from served_app import served

from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig

uvicorn = pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

CONCEPTS = [
    {"id": "D1", "name": "Myocardial Infarction", "names": ["heart attack"]},
    {"id": "D2", "name": "Heart Arrest"},
    {"id": "D3", "name": "Chest Pain"},
]
WORDS = ["heart attack", "heart arrest", "chest pain", "chest", "attack", "arrest"]
KEYS = {
    "review": {
        "a": 5,
        "r": 3,
        "n": 3,
        "u": 4,
        "j": 3,
        "k": 4,
        "1": 1,
        "2": 2,
        "Escape": 2,
        "o": 0.2,
    },
    "notes": {"c": 5, "w": 4, "j": 4, "k": 3, "u": 4, "U": 2, "Escape": 2, "o": 0.2},
}
"""Keys of the pages, with how often each is pressed."""

# what the tab made, what was answered, and what it dropped
NOTED = """() => {
  window.noted = {made: [], dropped: []};
  const open = new Map(), {told} = decisions;
  const note = (name) => {
    const act = decisions[name].bind(decisions);
    decisions[name] = (...args) => {
      const made = act(...args);
      if (made?.row) {
        noted.made.push([made.row.key, made.id]);
        open.set(made.id, made);
      }
      return made;
    };
  };
  note("change");
  note("undo");
  decisions.told = (row, problem) => {
    for (const [id, made] of open) {
      if (made.row !== row || row.waiting.includes(made)) continue;
      if (problem && !made.event) noted.dropped.push(id);
      open.delete(id);
    }
    told(row, problem);
  };
}"""
SHOWN = {
    "review": """() => state.rows.map((row) => {
      const {id, status, action, concept, reviewer} = decisions.shown(row);
      return {id, status, action, concept, reviewer, marked: row.waiting.length > 0};
    })""",
    "notes": """() => state.mentions.filter((each) => each.record.row?.stored.id).map((each) => ({
      id: each.record.row.stored.id, concept: each.concept, marked: !isKept(each),
      action: {correct: "approve", other: "approve", wrong: "reject"}[each.decision] ?? ""}))""",
}


class Unreliable:
    """A service whose answers come late, or not at all, before or after the work is done."""

    def __init__(self, app: Any, seed: int) -> None:
        self.app, self.rng, self.is_on = app, random.Random(seed), False
        self.counts: dict[str, int] = defaultdict(int)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not self.is_on or "/v1/review" not in scope["path"]:
            await self.app(scope, receive, send)
            return
        kind = self.rng.choices(("late", "refused", "lost", "cut"), (80, 8, 8, 4))[0]
        self.counts[kind] += 1
        await asyncio.sleep(min(self.rng.expovariate(20), 1))
        if kind == "late":
            await self.app(scope, receive, send)
        elif kind == "refused":
            await self._fail(send, 503)
        else:
            await self.app(scope, receive, self._swallow)
            await self._fail(send, 502 if kind == "lost" else 0)
        await asyncio.sleep(0)

    async def _swallow(self, message: Any) -> None:
        """Lose a part of an answer."""

    async def _fail(self, send: Any, status: int) -> None:
        length = [(b"content-length", b"2" if status else b"50")]
        start = {"type": "http.response.start", "status": status or 200, "headers": length}
        await send(start)
        await send({"type": "http.response.body", "body": b"{}", "more_body": not status})


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random-keys")
    source = folder / "concepts.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in CONCEPTS), encoding="utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=source),)), folder / "KB")
    return folder / "KB"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def open_tab(browser: Any, address: str, page: str, reviewer: str, queue: str) -> Any:
    tab = browser.new_context(locale="en-US").new_page()
    tab.problems = []
    tab.on("pageerror", lambda error: tab.problems.append(str(error)))
    tab.goto(address + ("/review" if page == "review" else "/"))
    if page == "review":
        tab.wait_for_selector("#queue option", state="attached")
        tab.fill("#reviewer", reviewer)
        tab.select_option("#status", "")
        tab.select_option("#queue", queue)
        tab.wait_for_function("() => state.rows.length > 3 && state.busy === null")
        tab.locator("#reviewer").blur()
    else:
        tab.evaluate("name => sessionStorage.setItem('reviewer', name)", reviewer)
        tab.fill("#text", ". ".join(WORDS[:3] * 2))
        tab.keyboard.press("Control+Enter")
        tab.wait_for_selector("#marked .finding")
    tab.evaluate(NOTED)
    tab.kind = page
    return tab


def press_keys(
    tabs: list[Any], n: int, rng: random.Random, now_and_then: Callable[[int], None]
) -> None:
    for number in range(n):
        tab = rng.choices(tabs, (3, 2))[0]
        keys = KEYS[tab.kind]
        tab.keyboard.press(rng.choices(list(keys), list(keys.values()))[0])
        if rng.random() < 0.02:
            tab.keyboard.press("Escape")  # out of a field
            time.sleep(rng.random() / 10)
        now_and_then(number)


def compare(tabs: list[Any], store: Any, queue: str) -> tuple[int, list[str]]:
    """Return the changes that were stored, and what differs between tabs and database."""
    differences = []
    for tab in tabs:
        tab.evaluate("Promise.resolve(state.review).then(() => decisions.idle())")
    items = {item.id: item for item in store.items(queue)}
    history = store.history(queue)
    stored = {event.batch: event for event in history}
    for tab in tabs:
        tab.wait_for_function("() => !state.busy", timeout=120_000)
        tab.evaluate("watch()")
        seen = "() => ![...decisions.rows.values()].some((row) => row.isOld)"
        tab.wait_for_function(seen, timeout=120_000)  # a lost answer is waited for 30 s
        for shown in tab.evaluate(SHOWN[tab.kind]):
            state = items[shown["id"]].state
            is_same = all(
                getattr(state, name) == is_
                for name, is_ in shown.items()
                if name in ("action", "reviewer", "status")
            )
            if shown["action"]:
                is_same = is_same and state.concept == shown["concept"]
            if shown["marked"] == is_same:
                differences.append(f"{tab.kind}: {shown} is {state}")
    return len(stored), differences


def check_order(tabs: list[Any], store: Any, queue: str) -> list[str]:
    """Return what was lost, done twice, done although it was refused, or in another order."""
    done: dict[int, list[str]] = defaultdict(list)
    for event in reversed(store.history(queue)):
        done[event.term_id].append(event.batch)
    wrong = []
    for tab in tabs:
        noted = tab.evaluate("noted")
        made = defaultdict(list)
        for term, change in noted["made"]:
            found = store.find(queue, term) if isinstance(term, str) else store.item(term)
            made[found.id].append(change)
        dropped = set(noted["dropped"])
        for term, changes in made.items():
            wanted = [change for change in changes if change not in dropped]
            found = [change for change in done[term] if change in set(changes)]
            if wanted != found:
                wrong.append(f"{tab.kind} {term}: made {wanted}, done {found}")
    return wrong


def run(
    browser: Any,
    place: str,
    kb: Path,
    kinds: tuple[str, str],
    n: int,
    seed: int,
    now_and_then: Callable[[int], None] = lambda _: None,
) -> dict[str, int]:
    """Press keys in two tabs, and compare; return the counts of what happened to answers."""
    from biograft.mapping import ReviewStore, ReviewTerm, SuggestedConcept
    from biograft.serve import create_app

    suggested = [SuggestedConcept(each["id"], each["name"], 0.5) for each in CONCEPTS]
    queue = "findings" if "notes" in kinds else f"keys {seed}"
    terms = [ReviewTerm(word, frequency=9, candidates=tuple(suggested[:2])) for word in WORDS]
    terms += [ReviewTerm(f"term {k}", candidates=tuple(suggested)) for k in range(15)]
    with ReviewStore.open(place, create=True) as store:
        store.add_terms(terms, reviewer="eve", queue=queue)
        app = Unreliable(create_app(kb, review=place), seed)
        with served(app) as address:
            names = ("ann", "bob")
            tabs = [
                open_tab(browser, address, kind, name, queue)
                for kind, name in zip(kinds, names, strict=True)
            ]
            app.is_on = True
            rng = random.Random(seed)
            press_keys(tabs, n, rng, now_and_then)
            for _ in range(8):  # on a busy machine more keys meet what is not answered yet
                if len({event.batch for event in store.history(queue)}) > n / 10 + 2:
                    break
                press_keys(tabs, n // 2, rng, now_and_then)
            app.is_on = False
            n_stored, differences = compare(tabs, store, queue)
            assert differences == []
            assert check_order(tabs, store, queue) == []
            assert [tab.problems for tab in tabs] == [[], []]
            assert n_stored > n / 10
            for tab in tabs:
                tab.context.close()
    return app.counts


@pytest.mark.parametrize("kinds", [("review", "review"), ("review", "notes")])
def test_pages_show_what_is_stored(browser, kb, tmp_path, kinds):
    counts = run(browser, str(tmp_path / "review.db"), kb, kinds, 150, 7)
    assert min(counts.values()) > 0


@pytest.mark.long
@pytest.mark.parametrize("kinds", [("review", "review"), ("review", "notes")])
def test_pages_show_what_is_stored_after_ten_thousand_keys(browser, kb, tmp_path, kinds):
    run(browser, str(tmp_path / "review.db"), kb, kinds, 10_000, 1)


@pytest.mark.long
def test_pages_show_what_is_stored_where_connections_are_killed(browser, kb):
    """The server ends all connections of the service, three times while keys are pressed."""
    n, killed = 10_000, []

    with postgresql() as url:

        def kill(number: int) -> None:
            if number % (n // 4) == n // 4 - 1 and len(killed) < 3:
                killed.append(end_all_connections(url))

        run(browser, url, kb, ("review", "review"), n, 2, kill)
    assert len(killed) == 3
    assert min(killed) > 0

"use strict";
/* Requests to the service, and the search for a concept: the same on every page. */

function say(message) {
  $("message").textContent = message;
}

/* Ask the service; a problem is an error with its status, and the term that it is about. */
async function request(path, body, signal) {
  const headers = {"accept-language": document.documentElement.lang, ...(state.key && {"x-api-key": state.key})};
  const options = body === undefined ? {headers, signal} : {signal, method: "POST", body: JSON.stringify(body),
    headers: {...headers, "content-type": "application/json"}};
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error(state.words.failed);
  }
  if (!answer.ok) {
    if ([401, 403].includes(answer.status) && $("key-row")) $("key-row").hidden = false;
    const problem = await answer.json().catch(() => ({}));
    throw Object.assign(new Error(problem.detail || `${answer.status}`),
      {status: answer.status, term: problem.term});
  }
  return answer;
}

const ask = async (...asked) => (await request(...asked)).json();

/* Runs what may fail; a failure is told in one line. */
async function trying(act) {
  try {
    await act();
  } catch (problem) {
    say(problem.message);
  }
}

/* The field of the search with the list below it. `take` is given the hit that is chosen; `offered`
   gives the hits that are listed before a word is typed, or null. */
function searchField({take, offered = () => null}) {
  const query = $("query"), list = $("hits");
  let hits = [], at = -1, number = 0;

  async function suggest() {
    const words = query.value.trim(), own = ++number;
    if (!words) {
      const first = offered();
      return first ? offer(first) : hide();
    }
    const {concepts} = await ask(`v1/search?limit=12&q=${encodeURIComponent(words)}`);
    return own === number ? offer(concepts) : undefined;  // else a later one is in progress
  }

  function offer(found) {
    hits = found;
    at = -1;
    list.replaceChildren(...(hits.length ? hits.map(item)
      : [make("li", state.words.noHits, {class: "quiet", role: "option", "aria-disabled": "true"})]));
    list.hidden = false;
    query.setAttribute("aria-expanded", "true");
  }

  function item(hit, place) {
    const also = !hit.matched || hit.matched === hit.name ? "" : ` ← ${hit.matched}`;
    const element = make("li", [hit.name, make("span", `${also} `, {class: "quiet"}),
      make("span", hit.concept, {class: "id"})], {role: "option", id: `hit${place}`, "aria-selected": "false"});
    element.addEventListener("mousedown", (event) => {
      event.preventDefault();
      choose(place);
    });
    return element;
  }

  function step(by) {
    if (!hits.length) return;
    at = at < 0 && by < 0 ? hits.length - 1 : (at + by + hits.length) % hits.length;
    [...list.children].forEach((element, place) =>
      element.setAttribute("aria-selected", String(place === at)));
    query.setAttribute("aria-activedescendant", `hit${at}`);
    list.children[at].scrollIntoView({block: "nearest"});
  }

  function choose(place) {
    const hit = hits[Math.max(place, 0)];
    if (!hit) return;
    hide();
    take(hit);
  }

  function hide() {
    hits = [];
    list.hidden = true;
    query.setAttribute("aria-expanded", "false");
    query.removeAttribute("aria-activedescendant");
  }

  const keys = {ArrowDown: () => step(1), ArrowUp: () => step(-1), Enter: () => choose(at)};
  query.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  query.addEventListener("input", () => trying(suggest));
  query.addEventListener("blur", hide);
  return {offer, hide};
}

"use strict";
/* The page of the service. What comes from the store or from a text is only ever set as text. */

const $ = (id) => document.getElementById(id);
const state = {words: WORDS.en, text: [], mentions: [], hues: new Map(), at: -1, waiting: false,
  hits: [], hit: -1, search: 0, concept: null, replacing: null, sending: Promise.resolve(),
  key: sessionStorage.getItem("key") || ""};
const UNCERTAIN = ["possible", "hypothetical", "conditional"];
const SVG = "http://www.w3.org/2000/svg";

function make(tag, content, attributes = {}) {
  const element = document.createElement(tag);
  if (content !== undefined) element.append(...[content].flat());
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  return element;
}

function button(content, act, attributes = {}) {
  const element = make("button", content, {type: "button", ...attributes});
  element.addEventListener("click", act);
  return element;
}

function say(message) {
  $("message").textContent = message;
}

async function ask(path, body) {
  const headers = state.key ? {"x-api-key": state.key} : {};
  const options = body === undefined ? {headers} : {method: "POST", body: JSON.stringify(body),
    headers: {...headers, "content-type": "application/json"}};
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error(state.words.failed);
  }
  if (!answer.ok) {
    if (answer.status === 401) $("key-row").hidden = false;
    const problem = await answer.json().catch(() => ({}));
    throw Object.assign(new Error(problem.detail || `${answer.status}`), {status: answer.status});
  }
  return answer;
}

/* ---- language */

function speak(language) {
  state.words = WORDS[language];
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-say]")) {
    element.textContent = state.words[element.dataset.say];
  }
  $("query").placeholder = state.words.searchLabel;
  $("text").placeholder = state.words.paste;
  const other = language === "en" ? "zh" : "en";
  $("language").textContent = other === "zh" ? "中文" : "English";
  $("language").lang = other;
  $("key-list").replaceChildren(...state.words.keyList.flatMap(
    ([keys, what]) => [make("dt", make("kbd", keys)), make("dd", what)]));
  if (state.mentions.length) show();
}

/* ---- text and findings */

async function find() {
  if (state.waiting || !$("text").value.trim()) return;
  state.waiting = true;
  say(state.words.working);
  try {
    const text = $("text").value;
    const answer = await (await ask("v1/link", {text})).json();
    state.text = Array.from(text);  // offsets count characters, not UTF-16 units
    state.mentions = answer.mentions.map(({concept, name, ...rest}) => ({concept, name, ...rest,
      decision: null, record: {stored: {decision: null, concept, name}, linked: {concept, name},
        pending: 0, conflicts: 0, event: null, term: null}}));
    state.at = -1;
    state.replacing = null;
    $("detail").hidden = true;
    show();
    const n = state.mentions.length;
    say(n ? state.words.found(n) : state.words.none);
  } catch (problem) {
    say(problem.message);
  } finally {
    state.waiting = false;
  }
}

const sureness = (mention) => mention.probability ?? mention.score ?? 0;
const isShown = (mention) => sureness(mention) >= Number($("threshold").value);
const typeOf = (mention) => (mention.concept && mention.types && mention.types[0]) || "";

function hueOf(type) {
  if (!state.hues.has(type)) {
    state.hues.set(type, Math.round(state.hues.size * 137.508 + 200) % 360);
  }
  return state.hues.get(type);
}

function show() {
  $("result").hidden = false;
  $("shown").textContent = Number($("threshold").value).toFixed(2);
  const parts = [];
  let done = 0;
  state.mentions.forEach((mention, number) => {
    if (!isShown(mention) || mention.start < done) return;
    parts.push(state.text.slice(done, mention.start).join(""), marked(mention, number));
    const label = said(mention, "absent").join(", ");
    if (label) parts.push(make("sup", ` ${label}`));
    done = mention.end;
  });
  parts.push(state.text.slice(done).join(""));
  $("marked").replaceChildren(...parts);
  const types = new Set(state.mentions.filter(isShown).map(typeOf).filter(Boolean));
  $("legend").replaceChildren(...[...types].map((type) => {
    const item = make("span", type);
    item.style.setProperty("--hue", hueOf(type));
    return item;
  }));
}

/* The status and the axes of a mention in words, but for one that is seen otherwise. */
function said(mention, seen) {
  const values = new Set([mention.status, ...Object.values(mention.axes || {})]);
  values.delete(seen);
  return [...values].map((value) => state.words.status[value]).filter(Boolean);
}

function marked(mention, number) {
  const classes = ["finding"];
  if (!mention.concept) classes.push("nil");
  if (mention.status === "absent") classes.push("absent");
  if (UNCERTAIN.includes(mention.status)) classes.push("possible");
  if (number === state.at) classes.push("chosen");
  const status = said(mention).join(", ");
  const name = mention.name || state.words.nil;
  const element = button(state.text.slice(mention.start, mention.end).join(""),
    () => choose(number), {
      class: classes.join(" "), "data-number": number,
      title: [name, status].filter(Boolean).join(", "),
      "aria-label": [mention.text, name, status].filter(Boolean).join(", ")});
  element.style.setProperty("--hue", hueOf(typeOf(mention)));
  return element;
}

function choose(number) {
  state.at = number;
  state.replacing = null;
  const mention = state.mentions[number];
  $("detail").hidden = false;
  $("detail-title").textContent = mention.text;
  const about = [...said(mention), mention.section].filter(Boolean);
  if (mention.ambiguous && mention.ambiguous.length) {
    about.push(`${state.words.ambiguous} ${mention.ambiguous.join(", ")}`);
  }
  $("said").textContent = about.join(" · ");
  $("candidates").replaceChildren(...mention.candidates.map((candidate) => {
    const evidence = (candidate.evidence || [])
      .map((each) => `${each.generator} #${each.rank} ${each.name}`).join("; ");
    const numbers = [`${state.words.score} ${candidate.score.toFixed(3)}`];
    if (candidate.probability !== null && candidate.probability !== undefined) {
      numbers.push(`${state.words.probability} ${candidate.probability.toFixed(2)}`);
    }
    return make("li", [
      button(`${candidate.name} (${candidate.concept})`, () => open(candidate.concept)),
      make("div", `${numbers.join(", ")} · ${evidence || candidate.matched}`, {class: "quiet"})]);
  }));
  mark();
  show();
  if (mention.concept) open(mention.concept, false);
  const element = document.querySelector(`[data-number="${number}"]`);
  if (element) element.focus();
  if (matchMedia("(max-width: 50rem)").matches) $("detail").scrollIntoView({block: "nearest"});
}

function step(by) {
  const shown = state.mentions.map((_, number) => number)
    .filter((number) => document.querySelector(`[data-number="${number}"]`));
  if (!shown.length) return;
  const now = shown.indexOf(state.at);
  choose(shown[(now + by + shown.length) % shown.length]);
}

function decide(decision) {
  const mention = state.mentions[state.at];
  if (!mention) return;
  if (decision === "other") {
    say(state.words.pick);
    $("query").focus();
    $("query").select();
    state.replacing = mention;
    return;
  }
  state.replacing = null;
  mention.decision = mention.decision === decision ? null : decision;
  mark();
  keep(mention, mention.concept);
}

/* Where a review is open, what was said about a finding is kept there: its own words only.
   Decisions are sent one after the other; at the end the page shows what was stored. After a
   conflict the decisions that wait are dropped: they were made without knowing of it. */
function keep(mention, suggested) {
  if (!mention.concept) return;
  const {decision, concept, name, record} = mention, {conflicts} = record;
  record.pending += 1;
  state.sending = state.sending.then(async () => {
    try {
      if (conflicts === record.conflicts) {
        await store(mention, {decision, concept, name}, suggested);
      }
    } catch (problem) {
      say(problem.message);
      if (problem.status === 409) await reread(record, problem);
    }
    record.pending -= 1;
    if (record.pending) return;
    Object.assign(mention, record.stored);
    mark();
    show();
  });
}

/* Another reviewer decided meanwhile: that decision is shown, and the next one replaces it. */
async function reread(record, problem) {
  record.conflicts += 1;
  record.event = null;
  say(`${state.words.conflict} ${problem.message}`);
  if (record.term === null) return;
  try {
    const {status, concept, name} = await (await ask(`v1/review/terms/${record.term}`)).json();
    const approved = concept === record.linked.concept ? "correct" : "other";
    const decision = {approved, rejected: "wrong"}[status] ?? null;
    record.stored = {decision, ...(decision ? {concept, name: name || concept} : record.linked)};
  } catch (error) {
    say(error.message);
  }
}

async function store({text, record}, wanted, suggested) {
  state.review ??= await (await ask("v1/review")).json();
  if (state.review.open) {
    const reviewer = state.review.reviewer || sessionStorage.getItem("reviewer") || "page";
    if (record.event !== null) {
      await ask("v1/review/undo", {event: record.event, reviewer});
      record.event = null;
      record.stored = {...record.stored, decision: null};
    }
    if (wanted.decision) {
      const body = {text, reviewer, suggested, ...wanted};
      const done = await (await ask("v1/review/findings", body)).json();
      record.event = done.event;
      record.term = done.id;
      say(state.words.kept);
    }
  }
  record.stored = wanted;
}

function mark() {
  const mention = state.mentions[state.at];
  for (const element of document.querySelectorAll("[data-decide]")) {
    element.setAttribute("aria-pressed", String(
      Boolean(mention) && mention.decision === element.dataset.decide));
  }
}

/* ---- copying */

async function copy(kind) {
  const shown = state.mentions.filter(isShown);
  let text;
  if (kind === "json") {
    text = JSON.stringify({mentions: shown.map(({record, ...mention}) => mention)}, null, 1);
  } else {
    const answer = await ask(`v1/link?to=${kind}`, {text: state.text.join("")});
    text = await answer.text();
  }
  await navigator.clipboard.writeText(text);
  say(state.words.copied(kind.toUpperCase()));
}

/* ---- search */

function look() {
  state.replacing = null;
  $("query").focus();
}

async function suggest() {
  const query = $("query").value.trim(), number = ++state.search;
  if (!query) return hideHits();
  try {
    const answer = await ask(`v1/search?limit=12&q=${encodeURIComponent(query)}`);
    const hits = (await answer.json()).concepts;
    if (number !== state.search) return;  // a later one is under way
    state.hits = hits;
    state.hit = -1;
    $("hits").replaceChildren(...(hits.length ? hits.map(hitItem)
      : [make("li", state.words.noHits, {class: "quiet"})]));
    $("hits").hidden = false;
    $("query").setAttribute("aria-expanded", "true");
  } catch (problem) {
    say(problem.message);
  }
}

function hitItem(hit, number) {
  const also = hit.matched === hit.name ? "" : ` ← ${hit.matched}`;
  const item = make("li", [hit.name, make("span", `${also}  ${hit.concept}`, {class: "quiet"})],
    {role: "option", id: `hit${number}`, "aria-selected": "false"});
  item.addEventListener("mousedown", (event) => {
    event.preventDefault();
    take(number);
  });
  return item;
}

function moveHit(by) {
  if (!state.hits.length) return;
  state.hit = (state.hit + by + state.hits.length) % state.hits.length;
  [...$("hits").children].forEach((item, number) =>
    item.setAttribute("aria-selected", String(number === state.hit)));
  $("query").setAttribute("aria-activedescendant", `hit${state.hit}`);
  $("hits").children[state.hit].scrollIntoView({block: "nearest"});
}

function take(number) {
  const hit = state.hits[Math.max(number, 0)];
  if (!hit) return;
  hideHits();
  const mention = state.replacing;
  if (mention) {
    const suggested = mention.concept;
    Object.assign(mention, {concept: hit.concept, name: hit.name, decision: "other"});
    choose(state.mentions.indexOf(mention));
    keep(mention, suggested);
  } else {
    open(hit.concept);
  }
}

function hideHits() {
  state.hits = [];
  $("hits").hidden = true;
  $("query").setAttribute("aria-expanded", "false");
  $("query").removeAttribute("aria-activedescendant");
}

/* ---- concept and neighbourhood */

async function open(id, focus = true) {
  try {
    const path = encodeURIComponent(id);
    const [concept, around] = await Promise.all([
      ask(`v1/concepts/${path}`).then((answer) => answer.json()),
      ask(`v1/neighbours/${path}?limit=12`).then((answer) => answer.json())]);
    state.concept = id;
    $("concept").hidden = false;
    $("concept-title").textContent = `${concept.name} (${concept.id})`;
    const definition = concept.definitions[0];
    $("definition").textContent = definition ? definition.text : state.words.noDefinition;
    $("facts").replaceChildren(...facts(concept));
    draw(concept, around.neighbours);
    if (focus) $("concept-title").focus();
  } catch (problem) {
    say(problem.message);
  }
}

function facts(concept) {
  const byLanguage = new Map();
  for (const name of concept.names) {
    if (!byLanguage.has(name.language)) byLanguage.set(name.language, new Set());
    byLanguage.get(name.language).add(name.text);
  }
  const rows = [...byLanguage].map(([language, names]) =>
    [`${state.words.names} ${language}`, [...names].slice(0, 20).join("; ")]);
  const types = concept.types.map((type) => type.label || type.code).join("; ");
  if (types) rows.push([state.words.types, types]);
  const ids = concept.ids.map((each) => each.id).slice(0, 20).join("; ");
  if (ids) rows.push([state.words.ids, ids]);
  const above = concept.parents.map((parent) => parent.name).join("; ");
  if (above) rows.push([state.words.parents, above]);
  return rows.flatMap(([name, value]) => [make("dt", name), make("dd", value, {dir: "auto"})]);
}

function draw(concept, neighbours) {
  const shown = neighbours.slice(0, 16), middle = [320, 210];
  const graph = $("graph");
  graph.setAttribute("aria-label", `${state.words.neighbours}: ${concept.name}`);
  const lines = [], nodes = [node(concept.name, concept.id, middle)];
  shown.forEach((each, number) => {
    const angle = 2 * Math.PI * number / shown.length - Math.PI / 2;
    const place = [middle[0] + 235 * Math.cos(angle), middle[1] + 175 * Math.sin(angle)];
    const line = document.createElementNS(SVG, "line");
    const ends = {x1: middle[0], y1: middle[1], x2: place[0], y2: place[1]};
    for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value);
    const label = document.createElementNS(SVG, "text");
    label.setAttribute("x", 0.4 * middle[0] + 0.6 * place[0]);
    label.setAttribute("y", 0.4 * middle[1] + 0.6 * place[1]);
    label.setAttribute("text-anchor", "middle");
    label.textContent = each.direction === "out" ? `${each.relation} →` : `← ${each.relation}`;
    lines.push(line, label);
    nodes.push(node(each.name, each.concept, place));
  });
  graph.replaceChildren(...lines, ...nodes);
  $("related").replaceChildren(...shown.map((each) => make("li", [
    make("span", each.direction === "out" ? `${each.relation} → ` : `← ${each.relation} `,
      {class: "quiet"}),
    button(each.name, () => open(each.concept))])));
}

function node(name, id, [x, y]) {
  const short = name.length > 22 ? `${name.slice(0, 20)}...` : name;
  const wide = 12 + Array.from(short).reduce((sum, char) => sum + (char > "\u2fff" ? 12 : 7), 0);
  const group = document.createElementNS(SVG, "g");
  const box = document.createElementNS(SVG, "rect");
  const text = document.createElementNS(SVG, "text");
  const title = document.createElementNS(SVG, "title");
  title.textContent = `${name} (${id})`;
  const left = Math.min(Math.max(x - wide / 2, 2), 638 - wide);
  for (const [key, value] of Object.entries({x: left, y: y - 11, width: wide, height: 22, rx: 4})) {
    box.setAttribute(key, value);
  }
  text.setAttribute("x", left + wide / 2);
  text.setAttribute("y", y + 4);
  text.setAttribute("text-anchor", "middle");
  text.textContent = short;
  for (const [key, value] of Object.entries({class: "node", tabindex: 0, role: "button",
    "aria-label": name})) group.setAttribute(key, value);
  group.append(title, box, text);
  group.addEventListener("click", () => open(id));
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter") open(id);
  });
  return group;
}

/* ---- keys and events */

function onKey(event) {
  const typing = event.target.matches("input, textarea");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    find();
  } else if (event.key === "Escape") {
    hideHits();
    state.replacing = null;
    if (typing) event.target.blur();
  } else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const acts = {j: () => step(1), k: () => step(-1), c: () => decide("correct"),
      w: () => decide("wrong"), o: () => decide("other"), "/": look,
      "?": () => $("keys").showModal()};
    if (acts[event.key]) {
      event.preventDefault();
      acts[event.key]();
    }
  }
}

function onQueryKey(event) {
  const acts = {ArrowDown: () => moveHit(1), ArrowUp: () => moveHit(-1),
    Enter: () => take(state.hit)};
  if (acts[event.key] && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    acts[event.key]();
  }
}

document.addEventListener("keydown", onKey);
$("query").addEventListener("keydown", onQueryKey);
$("query").addEventListener("input", suggest);
$("query").addEventListener("blur", hideHits);
$("find").addEventListener("click", find);
$("use-key").addEventListener("click", () => {
  state.key = $("key").value.trim();
  sessionStorage.setItem("key", state.key);
  $("key").value = "";
  $("key-row").hidden = true;
  state.review = undefined;
  say("");
});
$("threshold").addEventListener("input", show);
$("help").addEventListener("click", () => $("keys").showModal());
$("language").addEventListener("click", () =>
  speak(document.documentElement.lang === "en" ? "zh" : "en"));
$("example").addEventListener("click", () => {
  $("text").value = state.words.sample;
  find();
});
async function read(file) {
  if (!file) return;
  $("text").value = await file.text();
  find();
}

$("file").addEventListener("change", () => read($("file").files[0]));
for (const kind of ["dragover", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;  // text is dragged as ever
    event.preventDefault();
    if (kind === "drop") read(event.dataTransfer.files[0]);
  });
}
for (const element of document.querySelectorAll("[data-decide]")) {
  element.addEventListener("click", () => decide(element.dataset.decide));
}
for (const element of document.querySelectorAll("[data-copy]")) {
  element.addEventListener("click", () =>
    copy(element.dataset.copy).catch((problem) => say(problem.message)));
}
speak((navigator.language || "en").startsWith("zh") ? "zh" : "en");

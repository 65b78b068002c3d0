"use strict";
/* The page of a review. What comes from the service is only ever set as text. */

const PAGE = 50;
const DECIDED = {approve: "approved", reject: "rejected", nil: "nil"};
const state = {words: {}, rows: [], at: -1, chosen: 0, approvals: 1, busy: null,
  owner: null, key: sessionKey()};

const current = () => state.rows[state.at];
const term = () => current() && decisions.shown(current());
const decisions = new Decisions((row, problem) => {
  if (problem) say(row.refused ? "" : `${state.words.notYet} ${problem.message}`);
  show();
  if (!decisions.waiting) trying(progress);
}, () => viewer());

/* One thing at a time. A key that is pressed meanwhile does nothing: it was meant for what was
   there before. Another queue or filter waits its turn. */
async function doing(act, waits = false) {
  while (state.busy) {
    if (!waits) return;
    await state.busy;
  }
  let free;
  state.busy = new Promise((resolve) => { free = resolve; });
  try {
    await act();
  } catch (problem) {
    say(problem.message);
  } finally {
    state.busy = null;
    free();
  }
}

function reviewer() {
  const name = viewer();
  if (!name) {
    $("reviewer").focus();
    throw new Error(state.words.mustName);
  }
  return name;
}

/* ---- language */

function speak(language) {
  state.words = {...WORDS[language], ...REVIEW_WORDS[language]};
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-say]")) {
    element.textContent = state.words[element.dataset.say];
  }
  $("query").placeholder = state.words.searchLabel;
  const other = language === "en" ? "zh" : "en";
  $("language").textContent = other === "zh" ? "中文" : "English";
  $("language").lang = other;
  $("key-list").replaceChildren(...state.words.reviewKeys.flatMap(
    ([keys, what]) => [make("dt", make("kbd", keys)), make("dd", what)]));
  choices("status", {waiting: state.words.waiting, ...state.words.statuses, "": state.words.all});
  choices("flag", {"": state.words.all, ...state.words.flags});
  show();
}

function choices(id, values) {
  const chosen = $(id).options.length ? $(id).value : null;
  $(id).replaceChildren(...Object.entries(values).map(
    ([value, text]) => make("option", text, {value})));
  if (chosen in values) $(id).value = chosen;
}

/* ---- queues and terms */

async function open() {
  const answer = await ask("v1/review");
  state.owner = answer.reviewer;
  if (state.owner) $("reviewer").value = state.owner;
  $("reviewer").readOnly = Boolean(state.owner);
  if (!answer.open) return say(state.words.noReview);
  const chosen = $("queue").value;
  $("queue").replaceChildren(...answer.queues.map((each) =>
    make("option", each.queue, {value: each.queue})));
  if (answer.queues.some((each) => each.queue === chosen)) $("queue").value = chosen;
  if (answer.queues.length) await load();
  else say(state.words.empty);
}

function filters() {
  const values = {flag: $("flag").value, min_score: $("least").value, text: $("part").value.trim()};
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}

function query(limit) {
  const status = $("status").value;
  const waiting = status === "waiting";
  return decisions.asking({queue: $("queue").value, limit, ...filters(),
    ...(waiting ? {waits_for: viewer() || " "} : status ? {status} : {})});
}

const viewer = () => state.owner || $("reviewer").value.trim();

async function load() {
  await decisions.look($("queue").value);
  const {clock} = decisions;
  const {terms, total} = await ask(`v1/review/terms?${query(PAGE)}`);
  const rows = terms.map((each) => decisions.row(each.id, each, clock));
  const refused = [...decisions.rows.values()].filter((each) =>
    each.refused && each.stored.queue === $("queue").value && !rows.includes(each));
  Object.assign(state, {rows: [...refused, ...rows], at: -1});
  $("total").textContent = state.words.total(total);
  await progress();
  if (state.rows.length) return go(0);
  show();
  return say(state.words.empty);
}

async function progress() {
  const {queues} = await ask(`v1/review?${decisions.asking()}`);
  const own = queues.find((each) => each.queue === $("queue").value);
  if (!own) return;
  state.approvals = own.approvals;
  $("progress").max = Math.max(own.n_terms, 1);
  $("progress").value = own.n_decided;
  $("progress").setAttribute("aria-label", state.words.done(own.n_decided, own.n_terms));
  $("progress-said").textContent = state.words.done(own.n_decided, own.n_terms);
  $("export").hidden = false;
  $("export").href = `v1/review/export?queue=${encodeURIComponent(own.queue)}`;
}

function go(number) {
  state.at = number;
  const own = term();
  const left = own.candidates.findIndex((each) => !own.rejected.includes(each.concept));
  const proposed = own.candidates.findIndex((each) => each.concept === own.concept);
  state.chosen = proposed >= 0 ? proposed : Math.max(left, 0);
  $("comment").value = "";
  show();
  $("history").replaceChildren();
  clearTimeout(state.timer);
  state.timer = setTimeout(() => trying(() => reread(current())), 150);
}

function show() {
  const own = term(), words = state.words;
  $("terms").replaceChildren(...state.rows.map(rowItem));
  $("unstored").textContent = decisions.waiting ? words.unstored(decisions.waiting) : "";
  showRefused();
  $("acts").hidden = !own;
  if (!own) {
    for (const id of ["term-title", "facts", "state"]) $(id).textContent = "";
    for (const id of ["candidates", "history"]) $(id).replaceChildren();
    return;
  }
  $("term-title").textContent = own.text;
  $("facts").textContent = [words.frequency(own.frequency), own.code && `${words.code} ${own.code}`,
    own.part, own.context, words.flags[own.flag]].filter(Boolean).join(" · ");
  const who = [own.reviewer, own.second_reviewer].filter(Boolean).join(", ");
  $("state").textContent = [statusOf(current()),
    [own.name, own.concept && `(${own.concept})`].filter(Boolean).join(" "),
    who && `${words.by} ${who}`].filter(Boolean).join(" · ");
  $("candidates").replaceChildren(...own.candidates.map(candidateItem));
  $("terms").children[state.at].scrollIntoView({block: "nearest"});
}

/* The status of a row in words, with a mark while it is not stored. */
const statusOf = (row) => state.words.statuses[decisions.shown(row).status] +
  (row.waiting.length ? ` (${state.words.unstored(1)})` : "");

function rowItem(row, number) {
  const {text, frequency} = row.stored, mark = row.refused ? "⚠ " : "";
  return make("li", button(`${mark}${text} ×${frequency} · ${statusOf(row)}`, () => go(number),
    {"aria-current": number === state.at ? "true" : undefined}));
}

/* What was not stored, and why, until it was seen there. */
function showRefused() {
  const refused = state.rows.filter((row) => row.refused);
  $("conflict").replaceChildren(...refused.map((row) => make("p", [
    `${state.words.conflict} ${row.stored.text}: ${row.refused} `,
    button([make("kbd", "Esc"), " ", row === current() ? state.words.seen : state.words.goThere], toRefused)])));
  $("conflict").hidden = !refused.length;
}

function toRefused() {
  const row = current(), number = state.rows.findIndex((each) => each.refused);
  if (row && row.refused) {
    row.refused = "";
    show();
  } else if (number >= 0) {
    go(number);
  }
}

function candidateItem(each, number) {
  const own = term(), words = state.words;
  const numbers = [];
  if (each.score !== null) numbers.push(`${words.score} ${each.score.toFixed(3)}`);
  if (each.probability !== null) {
    numbers.push(`${words.probability} ${each.probability.toFixed(2)}`);
  }
  if (each.concept === own.suggestion) numbers.push(words.suggestion);
  const name = [make("kbd", `${number + 1}`), ` ${each.name} (${each.concept}) `];
  return make("li", button([...name, make("span", numbers.join(" · "), {class: "quiet"})],
    () => choose(number), {"aria-pressed": String(number === state.chosen),
      class: own.rejected.includes(each.concept) ? "rejected" : undefined}));
}

function choose(number) {
  if (!term() || number >= term().candidates.length) return;
  state.chosen = number;
  show();
}

/* Show what others changed; where it is the row in view, that is to be seen first. */
function changed(rows) {
  if (rows.includes(current())) current().refused = state.words.changedSince;
  show();
}

/* Read what is stored about a row. */
async function reread(row) {
  if (!row) return;
  const {history, isOther} = await decisions.read(row);
  if (isOther) changed([row]);
  if (row !== current()) return;
  $("history").replaceChildren(...history.map((each) => {
    const concept = each.after && each.after.concept;
    const said = [each.at.replace("T", " ").slice(0, 16), each.reviewer,
      state.words.actions[each.action], concept, each.comment].filter(Boolean).join(" · ");
    return make("li", each.undone ? make("s", said) : said);
  }));
}

/* Look for what others decided meanwhile. */
async function watch() {
  if (document.hidden || state.busy || !$("queue").value) return;
  const others = await decisions.look($("queue").value);
  if (others.length) changed(others);
  if (others.length) await progress();
}

/* ---- decisions */

function decide(action, other) {
  const row = current();
  if (!row || state.busy) return;
  const who = reviewer(), comment = $("comment").value, {approvals} = state;
  const {concept = null, name = null} = action === "nil" ? {} : other || term().candidates[state.chosen] || {};
  if (action !== "nil" && !concept) return ACTS.other();
  const preview = (seen) => {
    const second = seen.status === "proposed" && seen.action === action && seen.concept === concept;
    const status = approvals === 1 || second ? DECIDED[action] : "proposed";
    return {...seen, status, action, concept, name, reviewer: second ? seen.reviewer : who,
      second_reviewer: second ? who : null};
  };
  const done = decisions.change(row, `v1/review/terms/${row.key}/decision`, ({version}) =>
    ({action, version, reviewer: who, comment, ...(concept && {concept, name})}), preview);
  if (!done) return;
  say(`${row.stored.text}: ${state.words.statuses[term().status]}`);
  if (state.at + 1 < state.rows.length) {
    go(state.at + 1);
  } else {
    state.at += 1;  // nothing is in view until all is stored
    show();
    decisions.idle().then(() => state.at === state.rows.length && doing(load));
  }
}

function undo() {
  const last = decisions.undo(reviewer());
  if (!last) return say(state.words.nothing);
  if (last.batch) return doing(() => undoBatch(last.batch));
  if (!state.rows.includes(last.row)) state.rows.unshift(last.row);
  go(state.rows.indexOf(last.row));
  return say(state.words.undone);
}

const retried = (problem) => say(`${state.words.notYet} ${problem.message}`);

async function undoBatch(batch) {
  await insist("v1/review/undo", {batch, reviewer: reviewer(), change: newId()}, retried);
  await load();
  say(state.words.undone);
}

async function bulk(action) {
  const chosen = filters();
  if (!Object.keys(chosen).length) return say(state.words.needsFilter);
  const who = reviewer();
  await decisions.idle();
  const waiting = new URLSearchParams(
    {queue: $("queue").value, limit: 1, waits_for: who, ...chosen});
  const {total} = await ask(`v1/review/terms?${waiting}`);
  if (!total || !await confirmed(state.words.ask[action](total))) return undefined;
  const {flag, text, min_score: least} = chosen;
  const done = await insist("v1/review/bulk", {action, queue: $("queue").value, reviewer: who,
    expected: total, comment: $("comment").value, change: newId(), ...(flag && {flag}), ...(text && {text}),
    ...(least !== undefined && {min_score: Number(least)})}, retried);
  decisions.log.push({batch: done.batch});
  await load();
  return say(state.words.changed(done.n_changed, done.n_skipped));
}

/* ---- search of another concept */

const search = searchField({
  take(hit) {
    $("query").value = "";
    $("query").blur();
    trying(() => decide("approve", hit));
  },
});

/* ---- keys and events */

const ACTS = {
  approve: () => trying(() => decide("approve")),
  reject: () => trying(() => decide("reject")),
  nil: () => trying(() => decide("nil")),
  undo: () => state.busy || trying(undo),
  other: () => {
    say(state.words.pickOther);
    $("query").focus();
  },
  seen: toRefused,
  next: () => state.at + 1 < state.rows.length && go(state.at + 1),
  previous: () => state.at > 0 && go(state.at - 1),
};
const KEYS = {a: "approve", r: "reject", n: "nil", u: "undo", o: "other", "/": "other", j: "next",
  k: "previous", Escape: "seen"};

function onKey(event) {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && typing) {
    search.hide();
    event.target.blur();
  } else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey &&
    !document.querySelector("dialog[open]")) {
    const act = KEYS[event.key] ? ACTS[KEYS[event.key]]
      : /^[1-9]$/.test(event.key) ? () => choose(Number(event.key) - 1)
      : event.key === "c" ? () => $("comment").focus()
      : event.key === "?" ? () => $("keys").showModal() : null;
    if (!act) return;
    event.preventDefault();
    act();
  }
}

function onSubmit(id, act) {
  $(id).addEventListener("submit", (event) => {
    event.preventDefault();
    doing(act, true);
  });
}

document.addEventListener("keydown", onKey);
$("comment").addEventListener("keydown", (event) => {
  if (event.key === "Enter") event.target.blur();
});
$("help").addEventListener("click", () => $("keys").showModal());
$("language").addEventListener("click", () =>
  speak(document.documentElement.lang === "en" ? "zh" : "en"));
$("queue").addEventListener("change", () => doing(load, true));
$("export").addEventListener("click", (event) => {
  if (!state.key) return;
  event.preventDefault();  // a link carries no key
  trying(async () => saveAs(await (await request($("export").getAttribute("href"))).blob(), "review.sssom.tsv"));
});
onSubmit("filters", load);
onSubmit("who", async () => {
  state.key = $("key").value.trim() || state.key;
  $("key").value = "";
  sessionStorage.setItem("key", state.key);
  sessionStorage.setItem("reviewer", $("reviewer").value.trim());
  await open();
});
for (const element of document.querySelectorAll("[data-act]")) {
  element.addEventListener("click", () => ACTS[element.dataset.act]());
}
for (const element of document.querySelectorAll("[data-bulk]")) {
  element.addEventListener("click", () => doing(() => bulk(element.dataset.bulk)));
}
setInterval(() => trying(watch), LOOK_AGAIN);
$("reviewer").value = sessionStorage.getItem("reviewer") || "";
speak((navigator.language || "en").startsWith("zh") ? "zh" : "en");
doing(open);

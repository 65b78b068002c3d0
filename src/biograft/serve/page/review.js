"use strict";
/* The page of a review. What comes from the service is only ever set as text. */

const PAGE = 50;
const state = {words: {}, terms: [], at: -1, chosen: 0, total: 0, undo: [],
  busy: null, owner: null, key: sessionStorage.getItem("key") || ""};

const term = () => state.terms[state.at];

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
  const name = state.owner || $("reviewer").value.trim();
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
  if (term()) show();
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
  const who = state.owner || $("reviewer").value.trim() || " ";
  return new URLSearchParams({queue: $("queue").value, limit, ...filters(),
    ...(waiting ? {waits_for: who} : status ? {status} : {})});
}

async function load() {
  const answer = await ask(`v1/review/terms?${query(PAGE)}`);
  state.terms = answer.terms;
  state.total = answer.total;
  state.at = -1;
  $("total").textContent = state.words.total(answer.total);
  await progress();
  if (state.terms.length) return go(0);
  for (const id of ["term-title", "facts", "state"]) $(id).textContent = "";
  for (const id of ["candidates", "history", "terms"]) $(id).replaceChildren();
  return say(state.words.empty);
}

async function progress() {
  const {queues} = await ask("v1/review");
  const own = queues.find((each) => each.queue === $("queue").value);
  if (!own) return;
  $("progress").max = Math.max(own.n_terms, 1);
  $("progress").value = own.n_decided;
  $("progress").setAttribute("aria-label", state.words.done(own.n_decided, own.n_terms));
  $("progress-said").textContent = state.words.done(own.n_decided, own.n_terms);
  $("export").hidden = Boolean(state.key);  // a link carries no key
  $("export").href = `v1/review/export?queue=${encodeURIComponent(own.queue)}`;
}

function go(number) {
  state.at = number;
  const own = term();
  const left = own.candidates.findIndex((each) => !own.rejected.includes(each.concept));
  const proposed = own.candidates.findIndex((each) => each.concept === own.concept);
  state.chosen = proposed >= 0 ? proposed : Math.max(left, 0);
  $("comment").value = "";
  $("conflict").hidden = true;
  show();
  showHistory();
}

function show() {
  const own = term(), words = state.words;
  $("term-title").textContent = own.text;
  $("facts").textContent = [words.frequency(own.frequency), own.code && `${words.code} ${own.code}`,
    own.part, own.context, words.flags[own.flag]].filter(Boolean).join(" · ");
  const who = [own.reviewer, own.second_reviewer].filter(Boolean).join(", ");
  $("state").textContent = [words.statuses[own.status],
    [own.name, own.concept && `(${own.concept})`].filter(Boolean).join(" "),
    who && `${words.by} ${who}`].filter(Boolean).join(" · ");
  $("candidates").replaceChildren(...own.candidates.map(candidateItem));
  $("terms").replaceChildren(...state.terms.map((each, number) => make("li", button(
    `${each.text} ×${each.frequency} · ${words.statuses[each.status]}`, () => go(number),
    {"aria-current": number === state.at ? "true" : undefined}))));
  const current = $("terms").children[state.at];
  if (current) current.scrollIntoView({block: "nearest"});
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

async function showHistory() {
  const own = term();
  try {
    const {history} = await ask(`v1/review/terms/${own.id}`);
    if (own !== term()) return;
    $("history").replaceChildren(...history.map((each) => {
      const concept = each.after && each.after.concept;
      const said = [each.at.replace("T", " ").slice(0, 16), each.reviewer,
        state.words.actions[each.action], concept, each.comment].filter(Boolean).join(" · ");
      return make("li", each.undone ? make("s", said) : said);
    }));
  } catch (problem) {
    say(problem.message);
  }
}

/* ---- decisions */

async function decide(action, other) {
  const own = term();
  if (!own) return;
  const candidate = other || own.candidates[state.chosen];
  const body = {action, version: own.version, reviewer: reviewer(), comment: $("comment").value};
  if (action !== "nil" && candidate) {
    Object.assign(body, {concept: candidate.concept, name: candidate.name});
  }
  let done;
  try {
    done = await ask(`v1/review/terms/${own.id}/decision`, body);
  } catch (problem) {
    if (problem.status !== 409 || !problem.term) throw problem;
    state.terms[state.at] = problem.term;
    go(state.at);
    $("conflict").textContent = `${state.words.conflict} ${problem.message}`;
    $("conflict").hidden = false;
    return;
  }
  state.undo.push({event: done.event, term: own.id});
  state.terms[state.at] = done;
  say(`${own.text}: ${state.words.statuses[done.status]}`);
  if (state.at + 1 < state.terms.length) {
    go(state.at + 1);  // the next key may be pressed at once
    progress().catch((problem) => say(problem.message));
  } else {
    await load();
  }
}

async function undo() {
  const last = state.undo.pop();
  if (!last) return say(state.words.nothing);
  const body = {reviewer: reviewer(), ...(last.batch ? {batch: last.batch} : {event: last.event})};
  const done = await ask("v1/review/undo", body);
  const number = state.terms.findIndex((each) => each.id === last.term);
  if (last.batch) {
    await load();
  } else if (number >= 0) {
    state.terms[number] = done;
    go(number);
    await progress();
  } else {
    state.terms.unshift(done);
    go(0);
    await progress();
  }
  return say(state.words.undone);
}

async function bulk(action) {
  const chosen = filters();
  if (!Object.keys(chosen).length) return say(state.words.needsFilter);
  const who = reviewer();
  const waiting = new URLSearchParams(
    {queue: $("queue").value, limit: 1, waits_for: who, ...chosen});
  const {total} = await ask(`v1/review/terms?${waiting}`);
  if (!total || !await confirmed(state.words.ask[action](total))) return undefined;
  const {flag, text, min_score: least} = chosen;
  const done = await ask("v1/review/bulk", {action, queue: $("queue").value, reviewer: who,
    expected: total, comment: $("comment").value, ...(flag && {flag}), ...(text && {text}),
    ...(least !== undefined && {min_score: Number(least)})});
  state.undo.push({batch: done.batch});
  await load();
  return say(state.words.changed(done.n_changed, done.n_skipped));
}

/* ---- search of another concept */

const search = searchField({
  take(hit) {
    $("query").value = "";
    $("query").blur();
    doing(() => decide("approve", hit));
  },
});

/* ---- keys and events */

const ACTS = {
  approve: () => doing(() => decide("approve")),
  reject: () => doing(() => decide("reject")),
  nil: () => doing(() => decide("nil")),
  undo: () => doing(undo),
  other: () => {
    say(state.words.pickOther);
    $("query").focus();
  },
  next: () => state.at + 1 < state.terms.length && go(state.at + 1),
  previous: () => state.at > 0 && go(state.at - 1),
};
const KEYS = {a: "approve", r: "reject", n: "nil", u: "undo", o: "other", "/": "other", j: "next",
  k: "previous"};

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
$("reviewer").value = sessionStorage.getItem("reviewer") || "";
speak((navigator.language || "en").startsWith("zh") ? "zh" : "en");
doing(open);

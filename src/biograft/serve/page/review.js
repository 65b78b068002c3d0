"use strict";
/* The page of a review. What comes from the service is only ever set as text. */

const PAGE = 50;
const DECIDED = {approve: "approved", reject: "rejected", nil: "nil"};
const RELATIONS = ["exact", "broad", "narrow", "close", "related"];
const FORMATS = ["sssom", "csv", "xlsx", "usagi", "omop", "fhir", "all"];
const state = {words: {}, rows: [], at: -1, chosen: 0, approvals: 1, busy: null, sampling: null,
  adding: false, concepts: new Map(), beside: "", owner: null, key: sessionKey()};

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
  $("key-list").replaceChildren(...state.words.reviewKeys.flatMap(([keys, what]) =>
    [make("dt", keys.split(" ").flatMap((key) => [key === "…" ? key : make("kbd", key), " "])), make("dd", what)]));
  $("terms").setAttribute("aria-label", state.words.terms);
  $("hits").setAttribute("aria-label", state.words.candidates);
  document.title = `biograft ${state.words.review.toLowerCase()}`;
  choices("format", Object.fromEntries(FORMATS.map((name) => [name, state.words.exports[name]])));
  choices("status", {waiting: state.words.waiting, ...state.words.statuses, "": state.words.all});
  choices("flag", {"": state.words.all, ...state.words.flags});
  state.beside = "";
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
  let answer;
  try {
    answer = await ask("v1/review");
  } catch (problem) {
    if (problem.status !== 401) throw problem;
    $("key").focus();
    return say(state.words.needKey);
  }
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
  state.sampling = null;
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
  $("agree").hidden = own.approvals < 2;
  $("progress").max = Math.max(own.n_terms, 1);
  $("progress").value = own.n_decided;
  $("progress").setAttribute("aria-label", state.words.done(own.n_decided, own.n_terms));
  $("progress-said").textContent = state.words.done(own.n_decided, own.n_terms);
}

function go(number) {
  state.at = number;
  const own = term();
  const left = own.candidates.findIndex((each) => !own.rejected.includes(each.concept));
  const proposed = own.candidates.findIndex((each) => each.concept === own.concept);
  state.chosen = proposed >= 0 ? proposed : Math.max(left, 0);
  $("comment").value = "";
  show();
  for (const id of ["history", "targets"]) $(id).replaceChildren();
  $("targets-row").hidden = true;
  clearTimeout(state.timer);
  state.timer = setTimeout(() => trying(() => reread(current())), 150);
}

function show() {
  const own = term(), words = state.words;
  $("terms").replaceChildren(...state.rows.map(rowItem));
  $("unstored").textContent = decisions.waiting ? words.unstored(decisions.waiting) : "";
  showRefused();
  $("acts").hidden = $("candidates-title").hidden = !own;
  if (!own) {
    for (const id of ["term-title", "state"]) $(id).textContent = "";
    for (const id of ["facts", "candidates", "history"]) $(id).replaceChildren();
    $("targets-row").hidden = true;
    return besideNothing();
  }
  $("term-title").textContent = own.text;
  $("facts").replaceChildren(...[words.frequency(own.frequency), own.code && `${words.code} ${own.code}`,
    own.part && words.partOf(own.part), own.context, words.flags[own.flag], reasonOf(own.reason)].filter(Boolean).map(chip));
  const who = [own.reviewer, own.second_reviewer].filter(Boolean).join(", ");
  const relation = own.action === "approve" && own.relation !== "exact" && words.relations[own.relation];
  $("state").textContent = own.status === "open" ? "" : [statusOf(current()), relation,
    [own.name, own.concept && `(${own.concept})`].filter(Boolean).join(" "),
    who && `${words.by} ${who}`].filter(Boolean).join(" · ");
  $("candidates").replaceChildren(...own.candidates.map(candidateItem));
  $("terms").children[state.at].scrollIntoView({block: "nearest"});
  return trying(showConcept);
}

/* Why a term is doubtful: a reason, or words of it with their status (`fever: absent`). */
function reasonOf(reason) {
  const {reasons, status} = state.words, [, said, value] = /^(.*): (\w+)$/.exec(reason) || [];
  return reasons[reason] || (status[value] ? `${said}: ${status[value]}` : reason);
}

const chip = (text) => make("span", text, {class: "chip", dir: "auto"});

/* ---- the concept beside the term */

function besideNothing() {
  state.beside = "";
  $("beside-title").textContent = state.words.besideTitle;
  $("definition").textContent = state.words.besideEmpty;
  for (const id of ["beside-facts", "why", "tree", "names"]) $(id).replaceChildren();
  $("beside-more").hidden = true;
}

/* A concept is asked for once for each term, also before its term comes in view. */
function conceptOf(own, concept) {
  const path = `v1/review/terms/${own.id}/concept?${new URLSearchParams({concept})}`;
  if (!state.concepts.has(path)) {
    if (state.concepts.size > 500) state.concepts.clear();
    const found = ask(path);
    found.catch(() => state.concepts.delete(path));
    state.concepts.set(path, found);
  }
  return state.concepts.get(path);
}

async function showConcept() {
  const own = term(), candidate = own.candidates[state.chosen];
  const id = own.concept || (candidate && candidate.concept), key = `${own.id} ${id}`;
  if (!id) return besideNothing();
  if (state.beside === key) return undefined;
  state.beside = key;
  const found = await conceptOf(own, id);
  if (state.beside === key) drawConcept(found);
  const next = state.rows[state.at + 1];
  const first = next && next.stored.candidates[0];
  if (first) conceptOf(next.stored, first.concept).catch(() => {});
  return undefined;
}

function drawConcept(found) {
  const words = state.words;
  $("beside-more").hidden = found.status === "missing";
  if (found.status === "missing") {
    $("beside-title").textContent = found.id;
    $("beside-facts").replaceChildren(chip(words.missing));
    $("why").textContent = "";
    $("definition").textContent = found.detail;
    return;
  }
  $("beside-title").replaceChildren(`${found.name} `, make("span", found.id, {class: "id"}));
  const types = found.types.map((type) => words.typeNames[type.code] || type.label || type.code);
  $("beside-facts").replaceChildren(...[found.vocabulary, words.current, ...types].filter(Boolean).map(chip));
  const {name, similarity} = found.why;
  $("why").textContent = name ? [words.likest(name.text, similarity), words.kinds[name.kind] || name.kind,
    name.language, name.source].filter(Boolean).join(" · ") : "";
  const {lang} = document.documentElement, {definitions} = found;
  const definition = definitions.find((each) => each.language === lang) || definitions[0];
  $("definition").textContent = definition ? definition.text : words.noDefinition;
  const own = make("li", make("strong", found.name));
  own.append(make("ul", found.children.slice(0, 12).map((each) => make("li", each.name))));
  const more = found.children.length - 12;
  if (more > 0) own.lastChild.append(make("li", words.more(more), {class: "quiet"}));
  const above = found.parents.map((each) => make("li", each.name));
  if (above.length) above.at(-1).append(make("ul", own));
  $("tree").replaceChildren(...(above.length ? above : [own]));
  const byLanguage = Map.groupBy ? Map.groupBy(found.names, (each) => each.language) : new Map([["", found.names]]);
  $("names").replaceChildren(...[...byLanguage].flatMap(([language, names]) => [
    make("dt", `${words.names} ${language}`),
    make("dd", [...new Set(names.map((each) => each.text))].slice(0, 20).join("; "), {dir: "auto"})]));
}

/* The status of a row in words, with a mark while it is not stored. */
const statusOf = (row) => state.words.statuses[decisions.shown(row).status] +
  (row.waiting.length ? ` (${state.words.unstored(1)})` : "");

function rowItem(row, number) {
  const {text, frequency} = row.stored, mark = row.refused ? "⚠ " : "";
  return make("li", button([make("span", `${mark}${text}`, {dir: "auto"}),
    make("span", ` ×${frequency} · ${statusOf(row)}`, {class: "quiet"})], () => go(number),
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
  if (each.probability !== null) numbers.push(`${words.probability} ${each.probability.toFixed(2)}`);
  if (each.concept === own.suggestion) numbers.push(words.suggestion);
  const name = [make("kbd", `${number + 1}`), make("span", [each.name || each.concept, " ",
    make("span", each.concept, {class: "id"})], {dir: "auto"})];
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
  const {history, targets, isOther} = await decisions.read(row);
  if (isOther) changed([row]);
  if (row !== current()) return;
  $("targets-row").hidden = !targets.length;
  $("targets").replaceChildren(...targets.map((each) => make("li", button([each.name || each.part, " ",
    make("span", [each.concept, state.words.relations[each.relation], state.words.statuses[each.status]]
      .filter(Boolean).join(" · "), {class: "quiet"})], () => goTo(each)))));
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

/* Bring a term into view that may not be among those listed. */
function goTo(stored) {
  const row = decisions.row(stored.id, stored, decisions.clock);
  if (!state.rows.includes(row)) state.rows.splice(state.at + 1, 0, row);
  go(state.rows.indexOf(row));
}

/* ---- decisions */

function decide(action, other, relation = "exact") {
  const row = current();
  if (!row || state.busy) return;
  const who = reviewer(), comment = $("comment").value, {approvals} = state;
  const {concept = null, name = null} = action === "nil" ? {} : other || term().candidates[state.chosen] || {};
  if (action !== "nil" && !concept) return ACTS.other();
  const preview = (seen) => {
    const second = seen.status === "proposed" && seen.action === action && seen.concept === concept &&
      (action !== "approve" || seen.relation === relation);
    const status = approvals === 1 || second ? DECIDED[action] : "proposed";
    return {...seen, status, action, concept, name, relation, reviewer: second ? seen.reviewer : who,
      second_reviewer: second ? who : null};
  };
  const done = decisions.change(row, `v1/review/terms/${row.key}/decision`, ({version}) =>
    ({action, version, reviewer: who, comment, ...(concept && {concept, name}),
      ...(action === "approve" && {relation})}), preview);
  if (!done) return;
  say(`${row.stored.text}: ${state.words.statuses[term().status]}`);
  if (state.at + 1 < state.rows.length) {
    go(state.at + 1);
  } else {
    state.at += 1;  // nothing is in view until all is stored
    show();
    decisions.idle().then(() => state.at === state.rows.length &&
      doing(state.sampling ? () => bulk("approve") : load));
  }
}

function undo() {
  const last = decisions.undo(reviewer());
  if (!last) return doing(undoEarlier);
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

/* Take back what was done before the page was opened: a bulk decision at once. */
async function undoEarlier() {
  const {events} = await ask(`v1/review/history?${decisions.asking({limit: 500, queue: $("queue").value})}`);
  const last = events.find((each) => each.reviewer === reviewer() && !each.undone && DECIDED[each.action]);
  if (!last) return say(state.words.nothing);
  const n = events.filter((each) => each.batch === last.batch).length;
  return await confirmed(state.words.undoEarlier(last.text, n)) ? undoBatch(last.batch) : undefined;
}

/* Decide the same about all terms of the filters: to approve them, a sample is checked before. */
async function bulk(action) {
  const chosen = state.sampling || filters();
  if (!Object.keys(chosen).length) return say(state.words.needsFilter);
  const who = reviewer(), isApproval = action === "approve";
  await decisions.idle();
  let total, question;
  if (isApproval) {
    const sample = await ask(`v1/review/sample?${decisions.asking({queue: $("queue").value, ...chosen})}`);
    total = sample.n_terms;
    if (sample.to_check.length && total) return startSample(sample, chosen);
    question = total && state.words.sampled(sample);
  } else {
    ({total} = await ask(`v1/review/terms?${decisions.asking({queue: $("queue").value, limit: 1, waits_for: who, ...chosen})}`));
    question = state.words.nilOf(total);
  }
  if (!total) {
    if (state.sampling) await load();
    return say(state.words.noneLeft);
  }
  if (!await confirmed(question)) return undefined;
  const {flag, text, min_score: least} = chosen;
  const done = await insist("v1/review/bulk", {action, queue: $("queue").value, reviewer: who,
    expected: total, comment: $("comment").value, change: newId(), leave_risky: isApproval,
    ...(flag && {flag}), ...(text && {text}), ...(least !== undefined && {min_score: Number(least)})}, retried);
  decisions.log.push({batch: done.batch});
  await load();
  return say(state.words.changed(done.n_changed, done.n_skipped));
}

async function startSample(sample, chosen) {
  if (!state.sampling && !await confirmed(state.words.askSample(sample))) return;
  Object.assign(state, {sampling: chosen, at: -1,
    rows: sample.to_check.map((each) => decisions.row(each.id, each, decisions.clock))});
  $("total").textContent = state.words.inSample(sample);
  go(0);
  say(state.words.checkSample);
}

/* ---- a further concept, agreement, export */

async function addTarget({concept, name}) {
  const row = current(), body = {concept, name, relation: "exact", reviewer: reviewer(),
    comment: $("comment").value, change: newId()};
  const added = await insist(`v1/review/terms/${row.key}/targets`, body, retried);
  decisions.log.push({batch: added.batch});
  goTo(added);
  say(state.words.targetAdded(added.name || concept));
}

async function agreement() {
  const words = state.words, queue = $("queue").value;
  const {pairs, disagreements} = await ask(`v1/review/agreement?${decisions.asking({queue})}`);
  $("pairs").replaceChildren(...(pairs.length ? pairs.map((each) => make("li", words.agreed(each)))
    : [make("li", words.noPairs, {class: "quiet"})]));
  const said = (each) => `${each.reviewer}: ${[words.actions[each.action], each.relation !== "exact" &&
    words.relations[each.relation], each.name || each.concept].filter(Boolean).join(" ")}`;
  $("disagreements").replaceChildren(...(disagreements.length ? disagreements.map((each) => make("li", button(
    [each.text, " ", make("span", [...each.opinions.map(said), words.statuses[each.status]].join(" · "),
      {class: "quiet"})], () => trying(async () => {
      $("agreed").close();
      goTo(await ask(`v1/review/terms/${each.id}?${decisions.asking()}`));
    })))) : [make("li", words.noDisagreement, {class: "quiet"})]));
  $("agreed").showModal();
}

async function download() {
  const to = $("format").value;
  const answer = await request(`v1/review/export?${decisions.asking({queue: $("queue").value, to})}`);
  const [, name] = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition")), 
    lost = decodeURIComponent(answer.headers.get("x-left-out") || "");
  saveAs(await answer.blob(), name);
  say([state.words.downloaded(name), lost && state.words.lost(lost)].filter(Boolean).join(" "));
}

/* ---- search of another concept */

const search = searchField({
  take(hit) {
    $("query").value = "";
    $("query").blur();
    trying(() => state.adding ? addTarget(hit) : decide("approve", hit));
  },
});

/* ---- keys and events */

const ACTS = {
  ...Object.fromEntries(RELATIONS.map((each) => [each, () => trying(() => decide("approve", null, each))])),
  reject: () => trying(() => decide("reject")),
  nil: () => trying(() => decide("nil")),
  undo: () => state.busy || trying(undo),
  other: () => lookFor(false),
  target: () => term() && lookFor(true),
  bulk: () => doing(() => bulk("approve")),
  bulkNil: () => doing(() => bulk("nil")),
  agreement: () => trying(agreement),
  export: () => trying(download),
  seen: toRefused,
  next: () => state.at + 1 < state.rows.length && go(state.at + 1),
  previous: () => state.at > 0 && go(state.at - 1),
};

function lookFor(adding) {
  state.adding = adding;
  say(adding ? state.words.pickTarget : state.words.pickOther);
  $("query").focus();
}

const KEYS = {a: "exact", b: "broad", w: "narrow", s: "close", e: "related", t: "target", B: "bulk", g: "agreement",
  x: "export", r: "reject", n: "nil", u: "undo", o: "other", "/": "other", j: "next",
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
      : event.shiftKey && /^Digit[1-9]$/.test(event.code) ? () => approveAt(Number(event.code.at(-1)) - 1)
      : event.key === "f" ? () => $("flag").focus()
      : event.key === "c" ? () => $("comment").focus()
      : event.key === "?" ? () => $("keys").showModal() : null;
    if (!act) return;
    event.preventDefault();
    act();
  }
}

function approveAt(number) {
  const candidate = term() && term().candidates[number];
  if (candidate) trying(() => decide("approve", candidate));
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
onSubmit("exports", download);
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
setInterval(() => trying(watch), LOOK_AGAIN);
$("reviewer").value = sessionStorage.getItem("reviewer") || "";
speak((navigator.language || "en").startsWith("zh") ? "zh" : "en");
doing(open);

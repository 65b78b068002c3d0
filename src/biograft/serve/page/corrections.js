"use strict";
/* Corrections of a note: decisions, statuses, concepts and marks, with undo and history, and their
   export. All of it stays in the page; decisions also go to a review where one is open. */

const AXES = {polarity: ["affirmed", "negated"], certainty: ["confirmed", "possible", "unlikely"],
  time: ["current", "past", "future"], course: ["", "active", "resolved", "recurrent"],
  experiencer: ["patient", "family", "contact", "donor"], plan: ["", "planned"],
  condition: ["", "conditional", "hypothetical"]};
const FORMATS = ["jsonl", "csv", "tsv", "fhir", "omop", "brat", "bioc-json", "bioc-xml", "pubtator", "conll",
  "conll-iob1", "conll-iobes", "char-tags", "ddi", "cmeee", "cmedqaner", "cehrner", "json"];
const EXPORTED = ["start", "end", "concept", "name", "score", "types", "status", "axes", "corrected", "section", "given"];

/* ---- one change at a time, each of which can be undone */

function change(number, what, patch, about = "") {
  const mention = state.mentions[number];
  const before = Object.fromEntries(Object.keys(patch).map((key) => [key, mention[key]]));
  const done = {number, what, before, after: patch, about, at: new Date()};
  state.log.push(done);
  state.undone = [];
  apply(done, patch, 1);
}

function apply({number}, values, by) {
  const mention = state.mentions[number], before = startOf(mention), suggested = mention.concept;
  Object.assign(mention, values);
  mention.changed += by;
  state.dirty = true;
  if ("start" in values || "gone" in values || "decision" in values) repaint(before, startOf(mention));
  dress(number);
  refresh();
  showDetail();
  showLog();
  if ("decision" in values) keep(mention, suggested);
}

function undo() {
  const last = state.log.pop();
  if (!last) return say(state.words.nothing);
  state.undone.push(last);
  apply(last, last.before, -1);
  back(last.number);
  return say(`${state.words.undone} ${told(last)}`);
}

function redo() {
  const last = state.undone.pop();
  if (!last) return say(state.words.nothing);
  state.log.push(last);
  apply(last, last.after, 1);
  back(last.number);
  return say(`${state.words.redone} ${told(last)}`);
}

function back(number) {
  if (!state.mentions[number].gone) choose(number);
  else if (state.shown.length) choose(state.shown[0]);
}

function told({number, what, about}) {
  const words = state.words;
  const value = what !== "status" ? about
    : `${words.axis[about[0]]} ${words.status[about[1]] || words.value[about[1]]}`;
  return [state.mentions[number].text, words.done[what], value].filter(Boolean).join(" · ");
}

function showLog() {
  $("history").hidden = !state.log.length;
  $("undo").disabled = !state.log.length;
  $("log").replaceChildren(...state.log.slice(-200).reverse().map((each) => make("li", [
    told(each), " ", make("span", each.at.toTimeString().slice(0, 5), {class: "quiet"})])));
}

/* ---- decisions */

function decide(decision) {
  const mention = state.mentions[state.at];
  if (!mention || mention.gone) return;
  const {row} = mention.record;
  if (row && row.refused) return say(`${state.words.conflict} ${row.refused} ${state.words.escSeen}`);
  if (decision === "other") {
    say(state.words.pick);
    state.replacing = mention;
    $("query").value = "";
    $("query").focus();
    search.offer(candidatesOf(mention));
    if (!mention.candidates.length) trying(() => offerCandidates(mention));
    return;
  }
  state.replacing = null;
  const next = mention.decision === decision ? null : decision;
  change(state.at, next || "reset", {decision: next});
}

/* Candidates of a mention that came from a file, or has none. */
async function offerCandidates(mention) {
  const {mentions: [{candidates}]} = await ask("v1/mentions", {mentions: [mention.text]});
  mention.candidates = candidates;
  if (state.replacing === mention && !$("query").value) search.offer(candidatesOf(mention));
}

function accept() {
  const mention = state.mentions[state.at];
  if (mention && mention.decision !== "correct") decide("correct");
  step(1);
}

function replaceConcept(mention, hit) {
  const number = state.mentions.indexOf(mention);
  change(number, "other", {concept: hit.concept, name: hit.name, types: hit.types || [], decision: "other"},
    `${hit.name} (${hit.concept})`);
  choose(number);
  say(`${mention.text} → ${hit.name}`);
}

/* Where a review is open, what was said about a finding is kept there: its own words only, which
   findings with the same words share. */
const decisions = new Decisions((row, problem) => {
  if (problem && !row.refused) say(`${state.words.notYet} ${problem.message}`);
  else if (problem) refused(row, problem);
  else if (!row.waiting.length && !row.refused) say(state.words.kept);
  state.mentions.forEach((mention, number) => {
    if (mention.record.row === row) dress(number);
  });
  refresh();
  showDetail();
}, () => state.who);

async function watch() {
  if (document.hidden || !state.open) return;
  for (const row of await decisions.look("findings")) {
    if (!state.mentions.some((each) => each.record.row === row && !isKept(each))) continue;
    row.refused = state.words.changedSince;
    decisions.told(row, {});
  }
}

async function keep(mention, suggested) {
  if (!mention.concept) return;
  const {text, decision, concept, name, record} = mention;
  state.review ??= insist("v1/review", undefined, (problem) => say(problem.message));
  const {open, reviewer = null} = await state.review;
  state.open = open;
  if (!open) return;
  const who = state.who = reviewer || sessionStorage.getItem("reviewer") || "page";
  const row = record.row ??= decisions.row(text.toLowerCase().replace(/\s+/g, " ").trim(), {});
  if (row.last && row.last === record.kept) row.last = decisions.undo(who, record.kept);
  const preview = (seen) => ({...seen, action: decision === "wrong" ? "reject" : "approve", concept});
  if (decision) {
    row.last = record.kept = decisions.change(row, "v1/review/findings", ({version = 0}) =>
      ({text, reviewer: who, suggested, decision, concept, name, version}), preview);
  }
}

/* Show what is stored where a decision was refused; a key that only reads decides in the page. */
function refused(row, {status}) {
  if (status === 403) {
    row.refused = "";
    state.open = false;
    state.review = Promise.resolve({open: false});
    say(state.words.pageOnly);
    return;
  }
  say(`${state.words.conflict} ${row.refused} ${state.words.escSeen}`);
  const {action, concept, name} = row.stored;
  row.last = null;
  const all = state.docs.flatMap((each) => each.mentions);
  for (const mention of all.filter((each) => each.record.row === row && !isKept(each))) {
    const {linked} = mention.record, approved = concept === linked.concept ? "correct" : "other";
    const decision = {approve: approved, reject: "wrong"}[action] ?? null;
    Object.assign(mention, {decision, ...(decision ? {concept, name: name || concept} : linked)});
    if (state.mentions.includes(mention)) repaint(startOf(mention));
  }
}

/* Whether the review holds what a finding shows, or there is none. */
function isKept({decision, concept, record: {row}}) {
  if (state.open === false || !row) return state.open === false || !decision;
  const {action} = row.stored, wanted = {correct: "approve", other: "approve", wrong: "reject"}[decision];
  return !row.waiting.length && (action || undefined) === wanted && (!wanted || row.stored.concept === concept);
}

/* ---- status */

/* The status in one word that axes give, as `biograft.clinical` orders them. */
function statusOf(axes) {
  const {experiencer, condition, plan, time, polarity, certainty} = axes;
  if (experiencer === "family") return "family";
  if (experiencer !== "patient") return "other_person";
  if (condition === "hypothetical" || plan || time === "future") return "hypothetical";
  if (polarity === "negated") return "absent";
  if (certainty !== "confirmed") return "possible";
  if (condition === "conditional") return "conditional";
  return time === "past" ? "historical" : "present";
}

function axesOf(mention) {
  return {...Object.fromEntries(Object.entries(AXES).map(([axis, [first]]) => [axis, first])), ...mention.axes};
}

function setAxis(axis, value) {
  const mention = state.mentions[state.at];
  if (!mention || mention.gone) return;
  const axes = {...axesOf(mention), [axis]: value};
  const corrected = [...new Set([...mention.corrected, axis])];
  change(state.at, "status", {axes, status: statusOf(axes), corrected}, [axis, value]);
  const words = state.words;
  say(`${mention.text}: ${words.axis[axis]} ${words.status[value] || words.value[value]}`);
}

function cycle(axis) {
  const mention = state.mentions[state.at];
  if (!mention) return;
  const values = AXES[axis];
  setAxis(axis, values[(values.indexOf(axesOf(mention)[axis]) + 1) % values.length]);
}

function showAxes(mention) {
  const words = state.words, axes = axesOf(mention);
  if (state.axesIn !== words) {
    state.axesIn = words;
    $("axes").replaceChildren(...Object.entries(AXES).map(([axis, values], number) => {
      const chooser = make("select", values.map((value) =>
        make("option", words.status[value] || words.value[value], {value})), {id: `axis-${axis}`});
      chooser.addEventListener("change", () => setAxis(axis, chooser.value));
      return make("label", [make("span", [make("kbd", `${number + 1}`), ` ${words.axis[axis]}`]), chooser],
        {for: `axis-${axis}`});
    }));
  }
  for (const [axis, [first]] of Object.entries(AXES)) {
    const chooser = $(`axis-${axis}`);
    chooser.value = axes[axis];
    chooser.classList.toggle("set", axes[axis] !== first);
  }
}

async function why() {
  const mention = state.mentions[state.at], list = $("evidence");
  const is = list.hidden && Boolean(mention);
  $("why").setAttribute("aria-expanded", String(is));
  list.hidden = true;
  if (!is) return;
  const answer = await ask("v1/assertions", {text: state.text, spans: [[mention.start, mention.end]]});
  const {triggers} = answer.assertions[0];
  list.replaceChildren(...(triggers.length ? triggers.map((each) => make("li", [
    make("q", each.text), ` → ${each.flag} `, make("span", each.rule, {class: "quiet"})]))
    : [make("li", state.words.noTrigger)]));
  list.hidden = false;
}

/* ---- marks: words that are selected by mouse, or by arrows */

function picked() {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  if (!$("marked").contains(range.startContainer) || !$("marked").contains(range.endContainer)) return null;
  const offset = (node, at) => {
    const before = document.createRange();
    before.setStart($("marked"), 0);
    before.setEnd(node, at);
    return before.toString().length;
  };
  return trimmed(offset(range.startContainer, range.startOffset), offset(range.endContainer, range.endOffset));
}

function trimmed(start, end) {
  const words = state.text.slice(start, end), bare = words.trim();
  const from = start + words.indexOf(bare);
  return bare ? {start: from, end: from + bare.length} : null;
}

function add() {
  const span = picked();
  if (span) return put(span, null);
  return select(null);
}

function move() {
  const mention = state.mentions[state.at];
  if (!mention || mention.gone) return undefined;
  const span = picked();
  return span ? put(span, state.at) : select(state.at);
}

/* Begin to select words by arrows: those after the finding that is chosen, or its own. */
function select(number) {
  const mention = state.mentions[state.at];
  const span = number === null ? wordAfter(mention ? endOf(mention) : 0) || wordAfter(0)
    : {start: startOf(mention), end: endOf(mention)};
  if (!span) return;
  state.span = {...span, number, isNew: true};
  $("marked").focus({preventScroll: true});
  showSpan();
  say(state.words.marking);
}

function wordAfter(at) {
  const words = [...segmenter.segment(state.text.slice(at, at + 400))];
  const word = words.find((each) => each.isWordLike);
  if (!word) return at + 400 < state.text.length ? wordAfter(at + 400) : null;
  return {start: at + word.index, end: at + word.index + word.segment.length};
}

function wordBefore(at) {
  const from = Math.max(0, at - 400);
  const word = [...segmenter.segment(state.text.slice(from, at))].reverse().find((each) => each.isWordLike);
  if (!word) return from ? wordBefore(from) : null;
  return {start: from + word.index, end: from + word.index + word.segment.length};
}

/* The next word that begins with a letter. */
function wordWith(letter, at) {
  const search = new RegExp(`(?<![\\p{L}\\p{N}])${letter}`, "giu");
  search.lastIndex = at;
  const found = search.exec(state.text);
  return found && wordAfter(found.index);
}

const SPAN_KEYS = {
  ArrowRight: ({end}) => wordAfter(end),
  ArrowLeft: ({start}) => wordBefore(start),
  ArrowDown: ({end}) => {
    const line = state.text.indexOf("\n", end);
    return line < 0 ? null : wordAfter(line);
  },
  ArrowUp: ({start}) => {
    const line = state.text.lastIndexOf("\n", start - 1);
    return line < 0 ? wordAfter(0) : wordAfter(state.text.lastIndexOf("\n", line - 1) + 1);
  },
  "Shift+ArrowRight": ({start, end}) => ({start, end: (wordAfter(end) || {end}).end}),
  "Shift+ArrowLeft": ({start, end}) => {
    const last = wordBefore(end), before = last && wordBefore(last.start);
    return before && before.end > start ? {start, end: before.end} : null;
  },
  "]": ({start, end}) => end < state.text.length ? {start, end: unit(point(end) + 1)} : null,
  "[": ({start, end}) => point(end) - 1 > point(start) ? {start, end: unit(point(end) - 1)} : null,
  "}": ({start, end}) => point(start) + 1 < point(end) ? {start: unit(point(start) + 1), end} : null,
  "{": ({start, end}) => start > 0 ? {start: unit(point(start) - 1), end} : null,
};

/* A key while words are selected; whether it was one of these. */
function onSpanKey(event) {
  const {number} = state.span;
  const act = SPAN_KEYS[event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key];
  if (event.key === "Escape" || event.key === "Enter") {
    const span = trimmed(state.span.start, state.span.end);
    state.span = null;
    getSelection().removeAllRanges();
    say("");
    if (event.key === "Enter" && span) put(span, number);
    else if (state.marks[state.at]) state.marks[state.at].focus();
  } else if (act) {
    state.span = {...state.span, ...act(state.span), isNew: false};
    showSpan();
  } else if (/^[\p{L}\p{N}]$/u.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const from = state.span.isNew ? state.span.start : state.span.end;
    state.span = {...state.span, ...(wordWith(event.key, from) || wordWith(event.key, 0)), isNew: false};
    showSpan();
  } else if (event.key !== "Tab") {
    return !["Shift", "Control", "Alt", "Meta"].includes(event.key) && !event.ctrlKey && !event.metaKey;
  }
  return true;
}

/* Select the words in the text, and scroll to them. */
function showSpan() {
  const place = (at) => {
    const walker = document.createTreeWalker(state.blocks[blockAt(at)].element, NodeFilter.SHOW_TEXT);
    let left = at - state.blocks[blockAt(at)].start, node = walker.nextNode();
    for (let next; left > node.length && (next = walker.nextNode()); node = next) left -= node.length;
    return [node, Math.min(left, node.length)];
  };
  const {start, end} = state.span;
  getSelection().setBaseAndExtent(...place(start), ...place(end));
  const box = $("marked"), scroll = () => {
    if (!getSelection().rangeCount) return;
    const seen = getSelection().getRangeAt(0).getBoundingClientRect(), frame = box.getBoundingClientRect();
    if (seen.top < frame.top || seen.bottom > frame.bottom) box.scrollTop += seen.top - frame.top - 80;
  };
  scroll();
  requestAnimationFrame(scroll);
}

/* Keep a span: of a new finding, or of one whose mark is moved. */
async function put({start, end}, number) {
  const span = {start: point(start), end: point(end), text: state.text.slice(start, end)};
  getSelection().removeAllRanges();
  const same = state.mentions.findIndex((each) => !each.gone && each.start === span.start && each.end === span.end);
  if (same >= 0) {
    choose(same);
    say(state.words.overlap);
    return;
  }
  if (number !== null) {
    change(number, "span", span, span.text);
    choose(number);
    return;
  }
  const {text, mentions} = state;
  const [linked, asserted] = await Promise.all([
    ask("v1/mentions", {mentions: [span.text]}),
    ask("v1/assertions", {text, spans: [[span.start, span.end]]})]);
  if (mentions !== state.mentions) return;  // another note was opened meanwhile
  const [{concept, name, score, candidates}] = linked.mentions;
  const [{status, axes, section}] = asserted.assertions;
  const types = concept ? candidates[0].types : [];
  mentions.push({...fresh({...span, concept, name, score, candidates, types, status, axes, section}), gone: true});
  change(mentions.length - 1, "add", {gone: false});
  choose(mentions.length - 1);
  say(`${state.words.added} ${span.text} → ${name || state.words.nil}`);
}

/* ---- export */

/* The mentions of a document that are exported: in the order of its file, or of the text. */
function kept({mentions}) {
  const all = mentions.filter((each) => !each.gone && !isWrong(each) && isSure(each));
  return all.some((each) => each.given) ? all : all.sort((a, b) => a.start - b.start || a.end - b.end);
}

const corrected = (documents) => documents.map(({id, text, given, ...document}) => ({id, text, given,
  mentions: kept(document).map((each) => Object.fromEntries(EXPORTED.map((key) => [key, each[key] ?? null])))}));

async function exported(to) {
  const called = (name) => name.replace(/^note/, state.name || "note");
  if (to === "json") {
    const shown = state.docs.map(({id, text, ...document}) => ({id, text,
      mentions: kept(document).map(({record, gone, off, changed, corrected: axes, ...mention}) => mention)}));
    const text = JSON.stringify(shown.length > 1 ? {documents: shown} : shown[0], null, 1);
    return {blob: new Blob([text], {type: "application/json"}), name: called("note.json"), lost: ""};
  }
  const answer = await request(`v1/export?to=${to}`, {documents: corrected(state.docs)});
  const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") || "");
  return {blob: await answer.blob(), name: called(name ? name[1] : "note"), lost: decodeURIComponent(answer.headers.get("x-lost") || "")};
}

/* ---- a second annotator */

async function compare(files) {
  if (!files.length) return;
  const {documents} = await opened(files);
  const found = await ask("v1/agreement", {first: corrected(state.docs), second: corrected(documents.map(
    (each) => ({...each, mentions: each.mentions.map(fresh)})))});
  const words = state.words, numbers = words.agreementOf;
  const rows = [["spans", found.spans.f1.toFixed(1)], ["mentions", found.mentions.f1.toFixed(1)],
    ...Object.entries(found.kappa).map(([name, value]) => [name, value === null ? "–" : value.toFixed(3)]),
    ["both", found.n_both], ["documents", found.n_documents]];
  $("agreed").replaceChildren(...rows.flatMap(([name, value]) => [make("dt", numbers[name]), make("dd", value)]));
  const side = (each) => each ? [each[0] || words.nil, words.status[each[1]]].filter(Boolean).join(", ") : words.notMarked;
  $("differences").replaceChildren(...found.differences.slice(0, 500).map((each) => make("li", [
    button(each.text, () => goTo(each)), make("div", `${each.document} · ${side(each.first)} ≠ ${side(each.second)}`,
      {class: "quiet"})])));
  $("no-difference").hidden = found.differences.length > 0;
  $("agreement").hidden = false;
  $("welcome").hidden = true;
  $("agreement-title").focus();
}

/* Choose the finding in which annotators differ; where there is none, select its words. */
function goTo({document, start, end}) {
  const number = state.docs.findIndex((each) => each.id === document);
  if (number !== state.doc) leaf(number - state.doc);
  const at = state.mentions.findIndex((each) => !each.gone && each.start === start && each.end === end);
  if (at >= 0) return choose(at);
  state.span = {start: unit(start), end: unit(end), number: null};
  $("marked").focus({preventScroll: true});
  showSpan();
  return say(state.words.marking);
}

async function copy() {
  const to = $("format").value, {blob, name, lost} = await exported(to);
  if (name.endsWith(".zip")) return save(blob, name, lost);
  await navigator.clipboard.writeText(await blob.text());
  return say([state.words.copied(to.toUpperCase()), lost && state.words.lost(lost)].filter(Boolean).join(" "));
}

async function download() {
  const {blob, name, lost} = await exported($("format").value);
  save(blob, name, lost);
}

function save(blob, name, lost) {
  saveAs(blob, name);
  state.dirty = false;
  say([state.words.downloaded(name), lost && state.words.lost(lost)].filter(Boolean).join(" "));
}

/* ---- keys and events */

const ANYWHERE = {"/": look, "?": () => $("keys").showModal()};
const READING = {j: () => step(1), k: () => step(-1), c: () => decide("correct"), w: () => decide("wrong"),
  o: () => decide("other"), m: () => trying(add), e: () => trying(move), y: () => trying(why), u: undo, U: redo,
  n: () => leaf(1), p: () => leaf(-1), a: () => $("other").click(),
  i: () => trying(edit), f: () => $("status").focus(), x: () => trying(download), Delete: () => decide("wrong")};
Object.keys(AXES).forEach((axis, number) => { READING[number + 1] = () => cycle(axis); });
const ON_FINDING = {ArrowDown: () => step(1), ArrowUp: () => step(-1), Enter: accept};

function toFindings() {
  if ($("marked").hidden) return;
  (state.marks[state.at] || $("marked")).focus();
}

function onKey(event) {
  if (document.querySelector("dialog[open]")) return;
  const typing = event.target.matches("input:not([type='range']), textarea, select");
  if (state.span && !typing) {
    if (onSpanKey(event)) event.preventDefault();
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    find();
  } else if (event.key === "Escape") {
    search.hide();
    state.replacing = null;
    if (typing) event.target.blur();
    else if (state.mentions[state.at]?.record.row) state.mentions[state.at].record.row.refused = "";
    toFindings();
  } else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const onFinding = event.target.matches(".finding, #body button") && ON_FINDING[event.key];
    const act = onFinding || ANYWHERE[event.key] || (!$("marked").hidden && READING[event.key]);
    if (!act) return;
    event.preventDefault();
    act();
  }
}

const on = (id, kind, act) => $(id).addEventListener(kind, act);

document.addEventListener("keydown", onKey);
on("find", "click", find);
on("use-key", "click", () => {
  state.key = $("key").value.trim();
  sessionStorage.setItem("key", state.key);
  $("key").value = "";
  $("key-row").hidden = true;
  state.review = undefined;
  say("");
});
on("threshold", "input", refresh);
for (const id of ["status", "type", "section"]) on(id, "change", refresh);
on("clear", "click", () => {
  for (const id of ["status", "type", "section"]) $(id).value = "";
  $("threshold").value = 0;
  refresh();
  toFindings();
});
on("help", "click", () => $("keys").showModal());
on("language", "click", () => speak(document.documentElement.lang === "en" ? "zh" : "en"));
on("example", "click", () => {
  $("text").value = state.words.sample;
  find();
});
on("blank", "click", () => {
  if (!$("text").value.trim()) return;
  begin($("text").value, []);
  say(state.words.teach);
});
on("edit", "click", () => trying(edit));
on("file", "change", () => trying(async () => {
  await read($("file").files);
  $("file").value = "";  // the same file may be opened again
}));
on("other", "change", () => trying(async () => {
  await compare($("other").files);
  $("other").value = "";
}));
on("document", "change", () => leaf(Number($("document").value) - state.doc));
on("before", "click", () => leaf(-1));
on("after", "click", () => leaf(1));
on("undo", "click", undo);
on("why", "click", () => trying(why));
on("copy", "click", () => trying(copy));
on("download", "click", () => trying(download));
for (const [id, act] of [["add", add], ["move", move]]) {
  on(id, "pointerdown", (event) => event.preventDefault());  // the selection stays
  on(id, "click", () => trying(act));
}
on("marked", "click", (event) => {
  const mark = event.target.closest(".finding");
  if (mark && !picked()) choose(Number(mark.dataset.number));
});
on("body", "click", (event) => {
  const row = event.target.closest("[data-row]");
  if (row) choose(Number(row.dataset.row), "table");
});
on("rows", "scroll", () => showRows());
addEventListener("resize", () => $("result").hidden || showRows(true));
addEventListener("beforeunload", (event) => {
  if (state.dirty) event.preventDefault();
});
for (const kind of ["dragover", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;  // text is dragged as ever
    event.preventDefault();
    if (kind === "drop") trying(() => read([...event.dataTransfer.files]));
  });
}
for (const element of document.querySelectorAll("[data-decide]")) {
  element.addEventListener("click", () => decide(element.dataset.decide));
}
for (const element of document.querySelectorAll("[data-step]")) {
  element.addEventListener("click", () => step(Number(element.dataset.step)));
}
setInterval(() => trying(watch), LOOK_AGAIN);
speak((navigator.language || "en").startsWith("zh") ? "zh" : "en");

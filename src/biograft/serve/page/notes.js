"use strict";
/* A note with its findings: marks in the text, the table beside it, and the finding that is chosen.
   Offsets of findings count characters, those of the page UTF-16 units; `unit` and `point` convert.
   The text is drawn in blocks that the browser lays out when they are seen, and the table has only
   the rows in view, so that a note of a megabyte with thousands of findings answers each key. */

const ROW = 48, BLOCK = 6000, UNCERTAIN = ["possible", "hypothetical", "conditional"];
const segmenter = new Intl.Segmenter(undefined, {granularity: "word"});

/* ---- reading a note */

async function find() {
  const text = $("text").value;
  if (state.waiting || !text.trim() || $("input").hidden) return;
  state.waiting = true;
  say(state.words.working);
  try {
    const answer = await ask("v1/link", {text});
    begin(text, answer.mentions);
    say(answer.mentions.length ? state.words.found(answer.mentions.length) : state.words.none);
  } catch (problem) {
    say(problem.message);
  } finally {
    state.waiting = false;
  }
}

function fresh({concept, name, ...rest}) {
  return {concept, name, candidates: [], corrected: [], ...rest, decision: null, gone: false, changed: 0,
    record: {linked: {concept, name}, row: null, kept: null}};
}

function begin(text, mentions) {
  show([{id: "note", text, mentions, given: {}}]);
}

/* Show documents, one at a time; corrections of each are kept while another is read. */
function show(documents) {
  state.docs = documents.map((each) => ({...each, units: unitsOf(each.text), mentions: each.mentions.map(fresh),
    log: [], undone: [], at: -1}));
  state.dirty = false;
  $("documents").hidden = documents.length < 2;
  $("agreement").hidden = true;
  turnTo(0);
}

function turnTo(number) {
  const {text, units, mentions, log, undone, at} = state.docs[number];
  Object.assign(state, {doc: number, text, units, mentions, log, undone, at: -1, replacing: null, span: null});
  for (const id of ["status", "type", "section"]) $(id).value = "";
  state.sort = {key: "text", up: true};
  $("text").value = text;
  $("detail").hidden = $("concept").hidden = true;
  reading(true);
  paint();
  refresh();
  showLog();
  showDocuments();
  $("marked").scrollTop = 0;
  if (state.shown.length) choose(state.shown.includes(at) ? at : state.shown[0]);
  else $("marked").focus();
}

function leaf(by) {
  const n = state.docs.length;
  state.docs[state.doc].at = state.at;
  if (n > 1) turnTo((state.doc + by + n) % n);
}

function showDocuments() {
  $("document").replaceChildren(...state.docs.map(({id, log, mentions}, number) => make("option",
    `${number + 1} / ${state.docs.length} · ${id} (${mentions.filter((each) => !each.gone).length})${log.length ? " ✎" : ""}`,
    {value: number})));
  $("document").value = state.doc;
}

function reading(is) {
  $("input").hidden = is;
  for (const id of ["marked", "reading", "result"]) $(id).hidden = !is;
  $("welcome").hidden = is;
  if (!is) for (const id of ["detail", "concept", "history"]) $(id).hidden = true;
}

async function edit() {
  const n = state.docs.reduce((sum, each) => sum + each.log.length, 0);
  if (n && !await confirmed(state.words.drop(n))) return;
  state.dirty = false;
  reading(false);
  $("text").focus();
}

/* Open files of text or annotations: as they are marked, as they are linked, or without marks, so
   that another annotator does not see those of the first. */
async function read(files) {
  if (!files.length) return;
  if (!$("marked").hidden) await edit();
  if ($("input").hidden) return;
  say(state.words.working);
  const {documents, formats, n_rejected} = await opened(files), marks = $("marks").value;
  const isMarked = marks === "given" && documents.some((each) => each.mentions.length);
  if (!isMarked) {
    for (const each of documents) {
      each.mentions = [];
      delete each.given.relations;  // of marks that are not shown
    }
    if (marks !== "none") await linkAll(documents);
  }
  const [form] = formats;
  if (isMarked && FORMATS.includes(form)) $("format").value = form;
  state.name = files.length === 1 ? files[0].name.replace(/(\.\w+)+$/, "") : "notes";
  show(documents);
  say([state.words.opened(documents.length), n_rejected && state.words.rejected(n_rejected)].filter(Boolean).join(" "));
}

async function opened(files) {
  const bytes = (file) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const sent = await Promise.all([...files].map(async (file) => (
    {name: file.webkitRelativePath || file.name, content: file.size ? await bytes(file) : ""})));
  const answer = await ask("v1/open", {files: sent});
  if (!answer.documents.length) throw new Error(state.words.noDocument);
  return answer;
}

async function linkAll(documents) {
  for (let first = 0; first < documents.length; first += 16) {
    const part = documents.slice(first, first + 16);
    const linked = (await ask("v1/link", {texts: part.map((each) => each.text)})).documents;
    part.forEach((each, n) => { each.mentions = linked[n].mentions; });
  }
}

/* ---- offsets */

function unitsOf(text) {
  if (!/[\ud800-\udbff]/.test(text)) return null;
  const units = [];
  for (let at = 0; at < text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) units.push(at);
  units.push(text.length);
  return units;
}

const unit = (offset) => state.units ? state.units[offset] : offset;
const point = (at) => state.units ? lowest(state.units, (each) => each >= at) : at;
const startOf = (mention) => unit(mention.start);
const endOf = (mention) => unit(mention.end);

/* The first index of a sorted list for which a test holds. */
function lowest(list, test) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(list[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

/* ---- words for findings */

const sureness = (mention) => mention.probability ?? mention.score ?? (mention.given ? 1 : 0);
const isSure = (mention) => mention.changed > 0 || sureness(mention) >= Number($("threshold").value);
const typeOf = (mention) => (mention.types && mention.types[0]) || "";
const nameOf = (mention) => mention.name || mention.concept || state.words.nil;
const typeName = (type) => state.words.typeNames[type] || type;
const sectionName = (section) => state.words.sections[section] || section;
const isWrong = (mention) => mention.decision === "wrong";

function hueOf(type) {
  if (!state.hues.has(type)) state.hues.set(type, Math.round(state.hues.size * 137.508 + 195) % 360);
  return state.hues.get(type);
}

/* The status and the axes of a finding in words, but for those that are seen otherwise. */
function said(mention, ...seen) {
  const values = new Set([mention.status, ...Object.values(mention.axes || {})]);
  for (const each of seen) values.delete(each);
  return [...values].map((value) => state.words.status[value]).filter(Boolean);
}

/* ---- marks in the text */

function paint() {
  const spans = state.mentions.filter((each) => !each.gone).map((each) => [startOf(each), endOf(each)])
    .sort((a, b) => a[0] - b[0]);
  const inside = (at) => {
    const n = lowest(spans, ([start]) => start >= at);
    return spans.slice(Math.max(0, n - 3), n).some(([, end]) => end > at);
  };
  state.blocks = [];
  for (let start = 0; start < state.text.length || !state.blocks.length;) {
    let end = start + BLOCK;
    do {
      const line = state.text.indexOf("\n", end);
      end = line < 0 ? state.text.length : line + 1;
    } while (end < state.text.length && inside(end));
    end = Math.min(end, state.text.length);
    state.blocks.push({start, end, element: make("div", undefined, {class: "block"})});
    start = end;
  }
  state.marks = new Array(state.mentions.length);
  const starts = state.blocks.map(() => []);
  state.mentions.forEach((mention, number) => {
    if (!mention.gone) starts[blockAt(startOf(mention))].push(number);
  });
  state.blocks.forEach((block, n) => fill(block, starts[n]));
  $("marked").replaceChildren(...state.blocks.map((block) => block.element));
}

const blockAt = (at) => Math.max(0, lowest(state.blocks, (block) => block.start > at) - 1);

/* Draw a block of the text. Where findings overlap, the first and longest is marked, and stands
   for the others; what is no finding gives way. */
function fill(block, numbers) {
  const order = numbers.sort((a, b) => {
    const [x, y] = [state.mentions[a], state.mentions[b]];
    return x.start - y.start || isWrong(x) - isWrong(y) || y.end - x.end || a - b;
  });
  const parts = [];
  let done = block.start, last = null;
  order.forEach((number, n) => {
    const mention = state.mentions[number], start = startOf(mention);
    const next = state.mentions[order[n + 1]];
    const gives = isWrong(mention) && next && next.start < mention.end && !isWrong(next);
    if (start < done || gives) {
      state.marks[number] = last;
      return;
    }
    const end = Math.min(endOf(mention), block.end);
    last = make("mark", state.text.slice(start, end), {role: "button", tabindex: "-1", "data-number": number});
    state.marks[number] = last;
    parts.push(state.text.slice(done, start), last);
    dress(number);
    done = end;
  });
  parts.push(state.text.slice(done, block.end));
  block.element.replaceChildren(...parts);
}

/* Draw again the blocks in which a finding stands, or stood. */
function repaint(...offsets) {
  const focused = $("marked").contains(document.activeElement) && document.activeElement !== $("marked");
  for (const block of new Set(offsets.map((at) => state.blocks[blockAt(at)]))) {
    const numbers = state.mentions.map((_, number) => number).filter((number) => {
      const mention = state.mentions[number], start = startOf(mention);
      return !mention.gone && start >= block.start && start < block.end;
    });
    fill(block, numbers);
  }
  if (focused && state.marks[state.at]) state.marks[state.at].focus({preventScroll: true});
}

function dress(number) {
  const mark = state.marks[number];
  if (!mark || Number(mark.dataset.number) !== number) return;
  const mention = state.mentions[number], name = nameOf(mention);
  const classes = ["finding"];
  if (!mention.concept) classes.push("nil");
  if (mention.status === "absent") classes.push("absent");
  if (UNCERTAIN.includes(mention.status)) classes.push("possible");
  if (mention.decision) classes.push(mention.decision);
  if (mention.off) classes.push("off");
  if (mention.text.length < 20 && !mention.text.includes("\n")) classes.push("short");
  if (number === state.at) classes.push("chosen");
  const status = said(mention).join(", "), label = said(mention, "present").join(" · ");
  mark.className = classes.join(" ");
  mark.title = [name, status].filter(Boolean).join(", ");
  mark.setAttribute("aria-label", [mention.text, name, status].filter(Boolean).join(", "));
  if (label && mention.status) mark.dataset.label = label;
  else delete mark.dataset.label;
  mark.tabIndex = number === state.at ? 0 : -1;
  mark.style.setProperty("--hue", hueOf(typeOf(mention)));
}

/* ---- the table */

const COLUMNS = {text: (each) => each.start, name: (each) => each.name || "", status: (each) => each.status || "",
  type: typeOf, section: (each) => each.section || "", score: (each) => -sureness(each)};
const FACETS = {
  status: (each) => [isWrong(each) ? "wrong" : each.status || "", ...(each.changed ? ["changed"] : []),
    ...(each.concept ? [] : ["nil"])],
  type: (each) => [typeOf(each)],
  section: (each) => [each.section || ""],
};

/* Choose the findings that are shown, count them by each filter, and draw the table. */
function refresh() {
  const wanted = Object.fromEntries(Object.keys(FACETS).map((name) => [name, $(name).value]));
  const counts = {status: new Map(), type: new Map(), section: new Map()};
  const shown = [];
  let all = 0;
  state.mentions.forEach((mention, number) => {
    if (mention.gone) return;
    all += 1;
    const sure = isSure(mention);
    const values = Object.fromEntries(Object.entries(FACETS).map(([name, read]) => [name, read(mention)]));
    const misses = Object.keys(FACETS).filter((name) => wanted[name] && !values[name].includes(wanted[name].slice(1)));
    for (const name of Object.keys(FACETS)) {
      for (const value of values[name]) {
        const counted = sure && misses.every((miss) => miss === name);
        counts[name].set(value, (counts[name].get(value) || 0) + counted);
      }
    }
    const off = !sure || misses.length > 0;
    if (off !== Boolean(mention.off)) {
      mention.off = off;
      dress(number);
    }
    if (!off) shown.push(number);
  });
  const {key, up} = state.sort, read = COLUMNS[key];
  const keys = new Map(shown.map((number) => [number, read(state.mentions[number])]));
  const compare = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b);
  shown.sort((a, b) => (up ? 1 : -1) * compare(keys.get(a), keys.get(b)) ||
    state.mentions[a].start - state.mentions[b].start || a - b);
  state.shown = shown;
  for (const name of Object.keys(FACETS)) facet(name, counts[name], wanted[name]);
  $("shown").textContent = Number($("threshold").value).toFixed(2);
  $("count").textContent = state.words.some(shown.length, all);
  $("nothing").hidden = shown.length > 0;
  $("nothing").firstElementChild.textContent = all ? state.words.noMatch : state.words.teach;
  $("clear").hidden = !all;
  document.body.classList.toggle("empty", !all);
  for (const id of ["filters", "copy", "download", "format"]) {
    if (id === "filters") $(id).hidden = !all;
    else $(id).disabled = !all;
  }
  showColumns();
  showRows(true);
}

function facet(name, counts, wanted) {
  const words = {status: (value) => state.words.status[value] || state.words[value] || "–",
    type: (value) => typeName(value) || "–", section: (value) => sectionName(value) || "–"}[name];
  const label = {status: state.words.statusLabel, type: state.words.type, section: state.words.sectionLabel}[name];
  const values = [...counts.keys()].sort((a, b) => words(a).localeCompare(words(b)));
  $(name).replaceChildren(make("option", `${label}: ${state.words.all}`, {value: ""}), ...values.map((value) =>
    make("option", `${words(value)} (${counts.get(value)})`, {value: `=${value}`})));
  $(name).value = wanted;
}

function showColumns() {
  $("columns").replaceChildren(...Object.entries(state.words.columns).map(([key, name]) => make("th",
    button(name, () => sortBy(key)), {class: `c-${key}`, scope: "col", "aria-sort": state.sort.key !== key ? "none"
      : state.sort.up ? "ascending" : "descending"})));
}

function sortBy(key) {
  state.sort = {key, up: state.sort.key === key ? !state.sort.up : true};
  refresh();
  reveal(state.shown.indexOf(state.at));
  $("columns").children[Object.keys(COLUMNS).indexOf(key)].firstElementChild.focus();
}

/* Draw the rows in view, unless they are drawn. */
function showRows(anew = false) {
  const box = $("rows"), n = state.shown.length;
  const height = box.clientHeight || 400;
  const first = Math.max(0, Math.min(Math.floor(box.scrollTop / ROW) - 4, n - 1));
  const last = Math.min(n, first + Math.ceil(height / ROW) + 9);
  if (!anew && state.window && state.window[0] === first && state.window[1] === last) return;
  state.window = [first, last];
  const focused = $("body").contains(document.activeElement);
  const space = (rows) => {
    const row = make("tr", make("td", undefined, {colspan: 6}), {class: "space", "aria-hidden": "true"});
    row.firstElementChild.style.height = `${rows * ROW}px`;
    return row;
  };
  const rows = state.shown.slice(first, last).map((number, k) => line(number, first + k));
  $("body").replaceChildren(...(first ? [space(first)] : []), ...rows, ...(last < n ? [space(n - last)] : []));
  $("body").parentElement.setAttribute("aria-rowcount", n + 1);
  if (focused) focusRow();
}

function line(number, index) {
  const mention = state.mentions[number], words = state.words;
  const score = mention.score === null || mention.score === undefined ? "–" : sureness(mention).toFixed(2);
  const cells = {
    text: make("button", mention.text, {type: "button", tabindex: number === state.at ? "0" : "-1", dir: "auto"}),
    name: [make("div", nameOf(mention), {dir: "auto"}), make("div", mention.concept || "", {class: "id"})],
    status: make("div", chipsOf(mention, true)), type: make("div", typeName(typeOf(mention))),
    section: make("div", sectionName(mention.section || "")), score};
  return make("tr", Object.entries(cells).map(([key, content]) =>
    make("td", content, {class: `c-${key}`, title: {name: mention.name, section: cells.section.textContent}[key] || undefined})),
  {class: `line${isWrong(mention) ? " wrong" : ""}`, "aria-rowindex": index + 2, "data-row": number,
    "aria-selected": String(number === state.at)});
}

/* Status and decision as labels; in the table, the decision is a sign that stands first. */
function chipsOf(mention, brief = false) {
  const words = state.words, labels = said(mention, "present");
  const chips = labels.length ? labels.map((label) => make("span", label, {class: "chip"}))
    : mention.status ? [make("span", words.status.present, {class: "chip present"})] : [];
  if (!isKept(mention)) chips.push(make("span", brief ? "…" : words.unstored(1), {class: "chip", title: words.unstored(1)}));
  const [kind, sign] = isWrong(mention) ? ["wrong", "✕"] : ["changed", "✎"];
  if (!isWrong(mention) && !mention.changed) return chips;
  const decided = make("span", brief ? sign : words[kind], {class: `chip ${kind}`, title: words[kind]});
  return brief ? [decided, " ", ...chips] : [...chips, decided];
}

function focusRow() {
  const row = $("body").querySelector(`[data-row="${state.at}"] button`);
  if (row) row.focus({preventScroll: true});
}

/* Scroll the table until a row is in view. */
function reveal(index) {
  if (index < 0) return;
  const box = $("rows"), top = index * ROW, head = $("columns").offsetHeight;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + ROW + head > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW + head - box.clientHeight;
  showRows();
}

/* ---- the finding that is chosen */

function choose(number, from = "text") {
  const before = state.at;
  state.at = number;
  state.replacing = null;
  if (before >= 0 && before < state.mentions.length) dress(before);
  dress(number);
  if (before !== number) $("evidence").hidden = true;
  const row = (at) => $("body").querySelector(`[data-row="${at}"]`);
  reveal(state.shown.indexOf(number));
  for (const [at, is] of [[before, false], [number, true]]) {
    if (!row(at) || (at === number && !is)) continue;
    row(at).setAttribute("aria-selected", String(is));
    row(at).querySelector("button").tabIndex = is ? 0 : -1;
  }
  showDetail();
  const mention = state.mentions[number];
  clearTimeout(state.timer);
  state.opening += 1;
  if (mention.concept && mention.name) state.timer = setTimeout(() => trying(() => openConcept(mention.concept, false)), 60);
  else $("concept").hidden = true;
  const mark = state.marks[number];
  if (mark) {
    mark.scrollIntoView({block: "nearest", behavior: "instant"});
    if (Number(mark.dataset.number) !== number) mark.tabIndex = 0;
  }
  if (from === "table") focusRow();
  else if (mark) mark.focus({preventScroll: true});
}

function step(by) {
  const shown = state.shown;
  if (!shown.length) return;
  const now = shown.indexOf(state.at);
  const next = now < 0 ? (by > 0 ? 0 : shown.length - 1) : (now + by + shown.length) % shown.length;
  choose(shown[next], $("body").contains(document.activeElement) ? "table" : "text");
}

function showDetail() {
  const mention = state.mentions[state.at], words = state.words;
  if (!mention || mention.gone) {
    $("detail").hidden = true;
    return;
  }
  $("detail").hidden = false;
  $("detail-title").textContent = mention.text;
  const about = [typeName(typeOf(mention)), sectionName(mention.section || "")].filter(Boolean);
  if (mention.ambiguous && mention.ambiguous.length) {
    about.push(`${words.ambiguous} ${mention.ambiguous.join(", ")}`);
  }
  $("said").replaceChildren(...chipsOf(mention), make("span", about.join(" · "), {class: "quiet"}));
  showAxes(mention);
  $("candidates").replaceChildren(...mention.candidates.map((candidate) => {
    const evidence = (candidate.evidence || [])
      .map((each) => `${each.generator} #${each.rank} ${each.name}`).join("; ");
    const numbers = [`${words.score} ${candidate.score.toFixed(3)}`];
    if (candidate.probability !== null && candidate.probability !== undefined) {
      numbers.push(`${words.probability} ${candidate.probability.toFixed(2)}`);
    }
    return make("li", [
      button([`${candidate.name} `, make("span", candidate.concept, {class: "id"})],
        () => trying(() => openConcept(candidate.concept))),
      make("div", `${numbers.join(", ")} · ${evidence || candidate.matched}`, {class: "quiet"})],
    {"aria-current": candidate.concept === mention.concept ? "true" : undefined});
  }));
  mark();
}

function mark() {
  const mention = state.mentions[state.at];
  for (const element of document.querySelectorAll("[data-decide]")) {
    element.setAttribute("aria-pressed", String(
      Boolean(mention) && mention.decision === element.dataset.decide));
  }
}

/* Draw everything again, in another language. */
function redraw() {
  state.mentions.forEach((mention, number) => mention.gone || dress(number));
  refresh();
  showDetail();
  showLog();
}

/* The types of a concept that was chosen in the search, which the search does not give. */
function typed(concept) {
  const mention = state.mentions[state.at];
  if (!mention || mention.concept !== concept.id || (mention.types && mention.types.length)) return;
  mention.types = concept.types.map((type) => type.code);
  dress(state.at);
  refresh();
  showDetail();
}

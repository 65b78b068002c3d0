"use strict";
/* What the page of notes is made of: its state, language, and concepts. What comes from the
   knowledge base or from a text is only ever set as text. */

const state = {words: WORDS.en, docs: [], doc: 0, text: "", units: null, mentions: [], shown: [], marks: [], blocks: [], at: -1,
  sort: {key: "text", up: true}, log: [], undone: [], span: null, waiting: false, hues: new Map(),
  opening: 0, concept: null, replacing: null,
  dirty: false, key: sessionKey()};

/* ---- language */

function speak(language) {
  const words = state.words = WORDS[language];
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-say]")) {
    element.textContent = words[element.dataset.say];
  }
  $("query").placeholder = words.searchLabel;
  $("text").placeholder = words.paste;
  $("hits").setAttribute("aria-label", words.candidates);
  $("hints").textContent = words.hints;
  $("marked").setAttribute("aria-label", words.text);
  const other = language === "en" ? "zh" : "en";
  $("language").textContent = other === "zh" ? "中文" : "English";
  $("language").lang = other;
  const kbd = (keys) => keys.split(" ").flatMap((key) =>
    [/^[^\w/?↑↓]$/.test(key) ? key : make("kbd", key), " "]);
  $("key-list").replaceChildren(...words.keyList.flatMap(
    ([keys, what]) => [make("dt", kbd(keys)), make("dd", what)]));
  $("steps").replaceChildren(...words.steps.map(([what, keys]) => make("li", [`${what} `, ...kbd(keys)])));
  $("legend").replaceChildren(...words.legendList.map(([text, look, label, what]) => make("li", [
    make("span", text, {class: `finding ${look}`, "data-label": label || undefined}), make("span", what)])));
  const chosen = $("format").value;
  $("format").replaceChildren(...FORMATS.map((value) =>
    make("option", words.formats[value] || value, {value})));
  $("format").value = chosen || "jsonl";
  const marks = $("marks").value;
  $("marks").replaceChildren(...Object.entries(words.marksOf).map(([value, text]) => make("option", text, {value})));
  $("marks").value = marks || "given";
  if (state.blocks.length) redraw();
}

/* ---- search */

function look() {
  state.replacing = null;
  $("query").focus();
  $("query").select();
}

const candidatesOf = (mention) => mention.candidates.map((each) => ({...each, matched: each.name}));

const search = searchField({
  take(hit) {
    if (state.replacing) replaceConcept(state.replacing, hit);
    else trying(() => openConcept(hit.concept));
  },
  offered: () => state.replacing && candidatesOf(state.replacing),
});

/* ---- a concept and its place in the hierarchy */

const conceptOf = (id) => ask(`v1/concepts/${encodeURIComponent(id)}`);

async function openConcept(id, focus = true) {
  clearTimeout(state.timer);  // of a finding that was chosen before
  const number = ++state.opening;
  const [concept, around] = await Promise.all([conceptOf(id),
    ask(`v1/neighbours/${encodeURIComponent(id)}?limit=30`)]);
  if (number !== state.opening) return;
  state.concept = id;
  $("welcome").hidden = true;
  $("concept").hidden = false;
  $("concept-title").replaceChildren(`${concept.name} `, make("span", concept.id, {class: "id"}));
  const definition = concept.definitions[0];
  $("definition").textContent = definition ? definition.text : state.words.noDefinition;
  drawTree(concept);
  const kin = new Set([...concept.parents, ...concept.children].map((each) => each.id));
  const others = around.neighbours.filter((each) => !kin.has(each.concept)).slice(0, 12);
  $("around").hidden = !others.length;
  $("related").replaceChildren(...others.map((each) => make("li", [
    make("span", each.direction === "out" ? `${each.relation} → ` : `← ${each.relation} `, {class: "quiet"}),
    conceptButton(each.concept, each.name)])));
  $("facts").replaceChildren(...facts(concept));
  typed(concept);
  if (focus) $("concept-title").focus();
}

const conceptButton = (id, name) => button(name, () => trying(() => openConcept(id)));

function drawTree(concept) {
  const own = branch(concept.id, concept.name, concept.children, true);
  const above = concept.parents.map((each) => make("li", conceptButton(each.id, each.name)));
  if (above.length) above.at(-1).append(make("ul", own));
  $("tree").replaceChildren(...(above.length ? above : [own]));
}

/* One concept of the tree. Its children are asked for when it is unfolded. */
function branch(id, name, children, isOpen = false) {
  const list = make("ul", (children || []).map((each) => branch(each.id, each.name)));
  const fold = button(isOpen ? "▾" : "▸", () => trying(unfold), {class: "fold", "aria-expanded": String(isOpen),
    "aria-label": `${state.words.fold} ${name}`});
  const item = make("li", isOpen ? [make("strong", name), list] : [fold, conceptButton(id, name), list]);
  list.hidden = !isOpen || !list.children.length;

  async function unfold() {
    if (children === undefined) {
      ({children} = await conceptOf(id));
      list.append(...children.map((each) => branch(each.id, each.name)));
    }
    list.hidden = !list.hidden || !children.length;
    fold.textContent = list.hidden ? (children.length ? "▸" : "·") : "▾";
    fold.setAttribute("aria-expanded", String(!list.hidden));
  }
  return item;
}

function facts(concept) {
  const byLanguage = new Map();
  for (const name of concept.names) {
    if (!byLanguage.has(name.language)) byLanguage.set(name.language, new Set());
    byLanguage.get(name.language).add(name.text);
  }
  const rows = [...byLanguage].map(([language, names]) =>
    [`${state.words.names} ${language}`, [...names].slice(0, 20).join("; ")]);
  const types = concept.types.map((type) => state.words.typeNames[type.code] || type.label || type.code).join("; ");
  if (types) rows.push([state.words.types, types]);
  const ids = concept.ids.map((each) => each.id).slice(0, 20).join("; ");
  if (ids) rows.push([state.words.ids, ids]);
  return rows.flatMap(([name, value]) => [make("dt", name), make("dd", value, {dir: "auto"})]);
}

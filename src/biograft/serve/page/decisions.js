"use strict";
/* Changes of rows on their way to the service. A row shows its changes at once, and they are marked
   until they are stored. Those of one row are sent in their order, one after the other. A request
   whose answer fails, or does not come, is sent again with the same id, so that nothing is done
   twice. Where another reviewer was first, the changes of the row that wait were made without knowing
   of it: they are dropped, and nothing is changed until what is stored was seen. */

const PAUSES = [250, 1000, 2000, 5000], PATIENCE = 30000, LOOK_AGAIN = 5000;
const TEMPORARY = [undefined, 401, 408, 429, 500, 502, 503, 504];  // undefined: there was no answer

const newId = () => [...crypto.getRandomValues(new Uint8Array(8))]
  .map((byte) => byte.toString(16).padStart(2, "0")).join("");

/* Ask until there is an answer; each failure is told. */
async function insist(path, body, failed) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await ask(path, body, AbortSignal.timeout(PATIENCE));
    } catch (problem) {
      if (!TEMPORARY.includes(problem.status)) throw problem;
      failed(problem);
    }
    await new Promise((go) => { setTimeout(go, PAUSES[Math.min(tries, PAUSES.length - 1)]); });
  }
}

class Decisions {
  /* `told(row, problem)` is called when what a row shows may have changed; `viewer()` says for whom
     it is read. */
  constructor(told, viewer) {
    Object.assign(this, {told, rows: new Map(), log: [], clock: 0, seen: 0});
    this.asking = (values = {}) => new URLSearchParams({...values, reviewer: viewer()});
    addEventListener("beforeunload", (event) => {
      if (this.waiting) event.preventDefault();
    });
  }

  /* The row of a key. What was read of it counts if nothing was changed since it was asked for at
     `clock`: an answer may be overtaken by that to a change. */
  row(key, stored, clock = -1) {
    const row = this.rows.get(key) ?? {key, stored, waiting: [], sending: null, refused: "", clock: 0};
    this.rows.set(key, row);
    if (!row.waiting.length && row.clock <= clock) row.stored = stored;
    return row;
  }

  shown(row) {
    return row.waiting.reduce((seen, change) => change.show(seen), row.stored);
  }

  get waiting() {
    return [...this.rows.values()].reduce((n, row) => n + row.waiting.length, 0);
  }

  /* Change a row: `body(stored)` is what is sent, `show(seen)` what is seen until it is stored. Null
     where a refusal was not seen yet: the key may have been meant for what stood there before. */
  change(row, path, body, show) {
    if (row.refused) return null;
    return this.#put({row, path, body, show, id: newId(), before: this.shown(row)}, true);
  }

  /* Take back the last change, or one of them; `reviewer` says so. Null if there is none. */
  undo(reviewer, change = this.log.at(-1)) {
    if (!change) return null;
    this.log = this.log.filter((each) => each !== change);
    if (!change.row) return change;
    return this.#put({row: change.row, path: "v1/review/undo", body: () => ({event: change.event, reviewer}),
      show: () => change.before, id: newId()}, false);
  }

  #put(change, canUndo) {
    const {row} = change;
    row.waiting.push(change);
    row.clock = ++this.clock;
    if (canUndo) this.log.push(change);
    row.sending ??= this.#send(row);
    this.told(row, null);
    return change;
  }

  async #send(row) {
    await null;
    while (row.waiting.length) {
      const [{path, body, id}] = row.waiting, {version} = row.stored;
      let refusal = null;
      try {
        const stored = await insist(path, {...body(row.stored), change: id}, (problem) => this.told(row, problem));
        row.waiting.shift().event = stored.event;
        row.stored = stored;
        const isOthers = version && stored.version && stored.version !== version + 1;  // since then
        if (row.waiting.length && isOthers) refusal = new Error(state.words.changedSince);
      } catch (problem) {
        if (problem.term) row.stored = problem.term;
        refusal = problem;
      }
      row.clock = ++this.clock;
      if (refusal) this.#refuse(row, refusal.message);
      if (!row.waiting.length) row.sending = null;
      this.told(row, refusal);
    }
  }

  #refuse(row, why) {
    this.log = this.log.filter((each) => !row.waiting.includes(each));
    Object.assign(row, {waiting: [], refused: why});
  }

  /* Read a row again; return true if another reviewer had changed it. */
  async read(row) {
    const {clock} = this, {version} = row.stored;
    const {history, targets, ...stored} = await ask(`v1/review/terms/${row.stored.id}?${this.asking()}`);
    row.isOld = this.row(row.key, stored, clock).stored !== stored;  // overtaken by a change
    return {history, targets, isOther: row.stored === stored && stored.version !== version};
  }

  /* Read anew what was changed in a queue since the last look; the rows that others had changed. */
  async look(queue) {
    const limit = 50, {events} = await ask(`v1/review/history?${this.asking({limit, queue})}`);
    const since = events.filter((each) => each.id > this.seen), others = [];
    this.seen = Math.max(this.seen, ...since.map((each) => each.id));
    const isAll = since.length === limit, changed = new Set(since.map((each) => each.term_id));
    for (const row of this.rows.values()) row.isOld ||= isAll || changed.has(row.stored.id);
    for (const row of [...this.rows.values()].filter((each) => each.isOld && each.stored.id)) {
      if (row.waiting.length) continue;  // it is read later
      if ((await this.read(row)).isOther) others.push(row);
    }
    return others;
  }

  /* Wait until all is stored, or refused. */
  async idle() {
    while (this.waiting) await Promise.all([...this.rows.values()].map((row) => row.sending));
  }
}

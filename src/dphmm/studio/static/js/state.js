// What the page shows, in one object that never changes: a view, and the draft in it. A change
// makes another; undo and redo walk along a list of drafts.

export const TABS = ["policy", "budget", "noise", "time", "walk", "compare", "save", "live", "result"];

export function firstView() {
  return {
    world: { name: "paper" },
    draft: { changes: {}, edges: null },
    step: 10,
    stage: "released",
    axis: null,
    colour: "category",
    tool: "look",
    tab: "policy",
    moves: true,
    versions: [],
    other: -1,
    walk: { seed: 1, length: 48, people: 1, person: 0, compare: false, shown: 0, time: 1 },
    theme: null,
    zoom: null,
  };
}

// A view from a link may be old or made by hand: keep what has the right shape, no more.
export function restore(given) {
  const view = firstView();
  if (!given || typeof given !== "object") return view;
  for (const [name, value] of Object.entries(view)) {
    const other = given[name];
    if (other === undefined || other === null || (value !== null && typeof other !== typeof value)) continue;
    view[name] = value !== null && typeof value === "object" ? { ...value, ...other } : other;
  }
  const known = {
    tab: TABS,
    tool: ["look", "link", "lasso"],
    stage: ["released", "before"],
    colour: ["category", "prior", "posterior", "degree"],
    axis: [null, "radius", "epsilon", "interval", "budget"],
  };
  for (const [name, choices] of Object.entries(known))
    if (!choices.includes(view[name])) view[name] = choices[0];
  if (!Number.isInteger(view.step) || view.step < 1 || view.step > 500) view.step = firstView().step;
  if (!["k", "x", "y"].every((name) => Number.isFinite(view.zoom?.[name]))) view.zoom = null;
  for (const [name, usual] of Object.entries(firstView().walk)) if (typeof view.walk[name] !== typeof usual || view.walk[name] < 0) view.walk[name] = usual;
  view.draft = draftOf(view.draft);
  view.versions = Array.isArray(given.versions)
    ? given.versions.slice(0, 12).filter(isObject).map(({ name, draft }) => ({ name: String(name).slice(0, 40), draft: draftOf(isObject(draft) ? draft : {}) }))
    : [];
  return view;
}

function draftOf({ changes, edges }) {
  return { changes: isObject(changes) ? changes : {}, edges: Array.isArray(edges) ? edges : null };
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

export class Store {
  constructor(view) {
    this.view = view;
    this.past = [];
    this.future = [];
    this.kind = null;
    this.listeners = new Set();
  }

  listen(listener) {
    this.listeners.add(listener);
  }

  // `label` names an edit in the list of undo; moving one slider for a while is one edit.
  change(changes, label = null, kind = label) {
    if (label) {
      const { draft, step } = this.view;
      if (kind !== this.kind) this.past = [...this.past.slice(-99), { draft, step, label }];
      else this.past = [...this.past.slice(0, -1), { ...this.past[this.past.length - 1], label }];
      this.future = [];
      this.edited = kind !== this.kind;
    }
    this.kind = label && kind !== label ? kind : null;
    this.put(changes);
  }

  put(changes) {
    const before = this.view;
    this.view = Object.freeze({ ...before, ...changes });
    for (const listener of this.listeners) listener(this.view, before);
  }

  walk(changes) {
    this.change({ walk: { ...this.view.walk, ...changes } });
  }

  // Go along the list: -1 undoes the last edit, 1 redoes the next, more go further.
  go(by) {
    const { draft, step } = this.view;
    const from = by < 0 ? [...this.past] : [...this.future];
    const to = by < 0 ? [...this.future] : [...this.past];
    let here = { draft, step };
    for (let i = 0; i < Math.abs(by) && from.length; i += 1) {
      const next = from.pop();
      to.push({ ...here, label: next.label });
      here = { draft: next.draft, step: next.step };
    }
    [this.past, this.future] = by < 0 ? [from, to] : [to, from];
    this.kind = null;
    this.put(here);
  }

  keep() {
    return { draft: this.view.draft, step: this.view.step, past: this.past, future: this.future };
  }

  recall(kept) {
    this.past = kept?.past ?? [];
    this.future = kept?.future ?? [];
    this.kind = null;
  }
}

const same = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

// The value of a setting: as it was changed, or as the file has it.
export function valueOf(view, world, key) {
  const { changes } = view.draft;
  if (key in changes) return changes[key];
  if (key.startsWith("when.") && "when" in changes) return undefined;
  return world.settings[key] ?? undefined;
}

// A draft with other values; what is as in the file again is no change.
export function withValues(draft, world, values) {
  const changes = { ...draft.changes };
  for (const [key, value] of Object.entries(values)) {
    if (key.startsWith("when.")) delete changes.when;
    if (same(value, world.settings[key])) delete changes[key];
    else changes[key] = value;
  }
  return { ...draft, changes };
}

// Without a schedule: none of its keys is left.
export function withoutSchedule(draft, world) {
  const kept = Object.entries(draft.changes).filter(([key]) => !key.startsWith("when"));
  const has = Object.keys(world.settings).some((key) => key.startsWith("when."));
  return { ...draft, changes: { ...Object.fromEntries(kept), ...(has ? { when: null } : {}) } };
}

// A draft as one of the file that `saved` was written to: what was edited while it was saved.
export function rebase(draft, saved, from, to) {
  const undone = Object.keys(saved.changes).filter((key) => !(key in draft.changes));
  const values = { ...Object.fromEntries(undone.map((key) => [key, from.settings[key] ?? null])), ...draft.changes };
  const { when, ...others } = values;
  const bare = { changes: {}, edges: null };
  const edges = edgesOf(draft, from);
  return { ...withValues(when === null ? withoutSchedule(bare, to) : bare, to, others), edges: same(edges, to.edges) ? null : edges };
}

export const edgesOf = (draft, world) => draft.edges ?? world.edges;

export function pairKey(a, b) {
  return a < b ? `${a},${b}` : `${b},${a}`;
}

// The draft with some edges of one's own more, or fewer; the layer is switched on by drawing.
export function withEdges(draft, world, more, fewer = []) {
  const gone = new Set(fewer.map(([a, b]) => pairKey(a, b)));
  const all = new Map(edgesOf(draft, world).map(([a, b]) => [pairKey(a, b), [a, b]]));
  for (const key of gone) all.delete(key);
  for (const [a, b] of more) all.set(pairKey(a, b), [Math.min(a, b), Math.max(a, b)]);
  const edges = [...all.values()].toSorted((x, y) => x[0] - y[0] || x[1] - y[1]);
  const { "policy.edges": off, ...changes } = draft.changes;
  return {
    changes: more.length || off === undefined ? changes : draft.changes,
    edges: same(edges, world.edges) ? null : edges,
  };
}

// The fragment of a link: it stays in the browser and is never sent.
export async function toFragment(view, fingerprint) {
  const content = JSON.stringify({ ...view, fingerprint });
  const packed = new Blob([content]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return `#v2.${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

export async function fromFragment(fragment) {
  if (!fragment.startsWith("#v2.") || fragment.length > 200000) return null;
  try {
    const text = atob(fragment.slice(4).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(unpacked).text());
  } catch {
    return null;
  }
}

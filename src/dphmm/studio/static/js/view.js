// What the page shows, in one object: everything that a link can restore, and undo can undo.

export const EMPTY_POLICY = { base: "none", radius: "1", links: [], unlinks: [], cliques: [] };

export function firstView() {
  return {
    world: { name: "paper" },
    policy: { ...EMPTY_POLICY, base: "categories" },
    epsilon: "1",
    moment: {},
    colour: "category",
    tool: "look",
    tab: "policy",
    brush: 0,
    moves: true,
    walk: {
      seed: 1,
      length: 24,
      start: 0,
      limit: "20",
      repair: "min_error",
      compare: false,
      other: { policy: "complete", epsilon: "1", mechanism: "knorm" },
      pinned: null,
      shown: 0,
      time: 1,
      mechanism: "knorm",
    },
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
    if (other === undefined || other === null) continue;
    if (value === null || typeof other === typeof value) {
      view[name] =
        Array.isArray(value) || typeof value !== "object" || value === null ? other : { ...value, ...other };
    }
  }
  const known = {
    tab: ["policy", "time", "walk", "download"],
    tool: ["look", "link", "lasso", "paint", "possible"],
    colour: ["category", "prior", "posterior", "degree"],
  };
  for (const [name, choices] of Object.entries(known)) {
    if (!choices.includes(view[name])) view[name] = choices[0];
  }
  for (const name of ["links", "unlinks", "cliques"]) {
    if (!Array.isArray(view.policy[name]) || !view.policy[name].every(Array.isArray)) view.policy[name] = [];
  }
  if (!Array.isArray(view.policy.categories)) delete view.policy.categories;
  if (given.moment) view.moment = { ...given.moment };
  if (given.world) view.world = { ...given.world };
  return view;
}

export class Store {
  constructor(view) {
    this.view = view;
    this.past = [];
    this.listeners = new Set();
    this.lastKind = null;
  }

  listen(listener) {
    this.listeners.add(listener);
  }

  // `kind` names an undoable change; moving one slider for a while is one such change.
  change(changes, kind = null) {
    if (kind && kind !== this.lastKind) {
      const { policy, moment, epsilon } = this.view;
      this.past.push(JSON.stringify({ policy, moment, epsilon }));
      if (this.past.length > 100) this.past.shift();
    }
    this.lastKind = kind && kind.startsWith("slide") ? kind : null;
    const before = this.view;
    this.view = { ...before, ...changes };
    for (const listener of this.listeners) listener(this.view, before);
  }

  walk(changes) {
    this.change({ walk: { ...this.view.walk, ...changes } });
  }

  policy(changes, kind) {
    this.change({ policy: { ...this.view.policy, ...changes } }, kind);
  }

  undo() {
    const last = this.past.pop();
    if (last) this.change(JSON.parse(last));
  }

  forget() {
    this.past = [];
    this.lastKind = null;
  }
}

export function pairKey(a, b) {
  return a < b ? `${a},${b}` : `${b},${a}`;
}

// Link two states that are not linked, unlink two that are; `linked` is how things are now.
export function toggleLink(policy, a, b, linked) {
  const pair = [Math.min(a, b), Math.max(a, b)];
  const without = (pairs) => pairs.filter(([x, y]) => pairKey(x, y) !== pairKey(a, b));
  const links = without(policy.links);
  const unlinks = without(policy.unlinks);
  if (linked) unlinks.push(pair);
  else links.push(pair);
  return { links, unlinks };
}

// The fragment of a link: it stays in the browser and is never sent.
export async function toFragment(view) {
  const packed = new Blob([JSON.stringify(view)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return `#v1.${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

export async function fromFragment(fragment) {
  if (!fragment.startsWith("#v1.") || fragment.length > 200000) return null;
  try {
    const text = atob(fragment.slice(4).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(unpacked).text());
  } catch {
    return null;
  }
}

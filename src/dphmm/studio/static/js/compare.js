// A beside B: what is seen now, and a version that was kept, on two maps that move together and
// with the same scale, and what differs between them in numbers and in links.

import { h, fill, word, short, length } from "./elements.js";
import { StateMap } from "./map.js";
import { sceneOf, sideOf, tellState } from "./scene.js";
import { valueOf } from "./state.js";

const OPENED = { name: "As opened", draft: { changes: {}, edges: null } };
const MOST_VERSIONS = 12;

export const otherOf = (view) => view.versions[view.other] ?? OPENED;

const NAMES = {
  epsilon: "price ε",
  limit: "budget",
  start: "start",
  mechanism: "noise",
  shape: "shape",
  gamma: "γ",
  repair: "repair",
  full_rank: "full rank",
  delta: "δ",
  estimate: "estimate",
  "policy.complete": "rule: everybody",
  "policy.category": "rule: category",
  "policy.distance": "rule: distance",
  "policy.one_step": "rule: one step",
  "policy.edges": "drawn links",
};

// The settings of which two drafts have different values: [name, of A, of B].
export function settingsApart(a, b, world) {
  const keys = new Set([...Object.keys(a.changes), ...Object.keys(b.changes)]);
  const shown = (value) => (value === undefined || value === null || value === false ? "–" : value === true ? "on" : typeof value === "object" ? JSON.stringify(value) : String(value));
  const rows = [...keys]
    .filter((key) => key !== "when")
    .map((key) => [NAMES[key] ?? key.replace("when.", "speaks: "), shown(valueOf({ draft: a }, world, key)), shown(valueOf({ draft: b }, world, key))])
    .filter(([, one, other]) => one !== other);
  if ("when" in a.changes !== "when" in b.changes) rows.push(["speaks", "when" in a.changes ? "always" : "as in the file", "when" in b.changes ? "always" : "as in the file"]);
  return rows;
}

export class Compare {
  // parts: { panel, results, holder }; act: { answers, map, context, say, goTo(draft, label) }
  constructor(parts, store, act) {
    Object.assign(this, { ...parts, store, act, b: null, key: "", sequence: 0 });
    this.name = h("input", { type: "text", id: "version-name", maxLength: 40, placeholder: "a name", autocomplete: "off", "aria-label": "Name of this version" });
    this.name.addEventListener("keydown", (event) => event.key === "Enter" && this.keep());
    this.list = h("ul", { className: "layers", id: "versions", "aria-label": "Version B" });
    fill(
      this.panel,
      h("h2", {}, "Two versions side by side"),
      h("p", {}, "A is what you are editing. Keep a version under a name, go on editing, and see both at once."),
      h("div", { className: "row" }, this.name, h("button", { type: "button", id: "keep-version", className: "primary", onclick: () => this.keep() }, "Keep this version")),
      h("h3", {}, "B is"),
      this.list,
      h("p", { className: "note" }, "Versions stay with this page and its link; Save writes only A."),
    );
  }

  keep() {
    const { view } = this.store;
    const name = this.name.value.trim() || `Version ${view.versions.length + 1}`;
    const versions = [...view.versions.filter((one) => one.name !== name), { name, draft: view.draft }].slice(-MOST_VERSIONS);
    this.name.value = "";
    this.store.change({ versions, other: versions.length - 1 });
    this.act.say(`Kept ${name}. It is B now.`);
  }

  remove(place) {
    const { versions, other } = this.store.view;
    const left = versions.filter((_, i) => i !== place);
    this.store.change({ versions: left, other: other === place ? -1 : other > place ? other - 1 : other });
  }

  showList(view) {
    const row = ({ name, draft }, place) => {
      const id = `version-${place + 1}`;
      return h(
        "li",
        { className: `layer version${view.other === place ? " on" : ""}` },
        h("input", { type: "radio", name: "version", id, checked: view.other === place, onchange: () => this.store.change({ other: place }) }),
        h("label", { htmlFor: id, className: "layer-name" }, name),
        h(
          "span",
          { className: "row version-actions" },
          h("button", { type: "button", className: "small", "aria-label": `Edit ${name} as A`, disabled: draft === view.draft, onclick: () => this.act.goTo(draft, `Go to ${name}`) }, "Edit as A"),
          place < 0 ? null : h("button", { type: "button", className: "small", "aria-label": `Remove ${name}`, onclick: () => this.remove(place) }, "×"),
        ),
      );
    };
    fill(this.list, row(OPENED, -1), view.versions.map(row));
  }

  show(view, world) {
    this.showList(view);
    const on = view.tab === "compare";
    document.getElementById("studio").classList.toggle("beside", on);
    if (!on) return this.closeMap();
    if (!this.map) this.openMap();
    if (this.map.world !== world) this.map.show(world, this.act.map.places);
    const other = otherOf(view);
    const key = JSON.stringify([world.world, view.step, other.draft]);
    if (key !== this.key) {
      Object.assign(this, { key, b: null });
      this.ask(world, view, other.draft, key);
    }
    const apart = JSON.stringify([key, view.draft]);
    if (apart !== this.apart) {
      Object.assign(this, { apart, links: null });
      this.askLinks(world, view, other.draft, apart);
    }
    this.draw();
    return this.tell(view, world);
  }

  openMap() {
    this.holder.hidden = false;
    const inner = h("div", { className: "map", id: "map-b" });
    const card = h("div", { className: "hover-card", hidden: true });
    fill(this.holder, inner, card, h("p", { className: "map-name" }, "B"));
    this.map = new StateMap(inner);
    const { map } = this.act;
    this.map.onzoom = (transform) => map.follow(transform);
    this.stop = map.onfollow((transform) => this.map?.follow(transform));
    const svg = this.map.svg.node();
    svg.addEventListener("pointermove", (event) => {
      const state = this.b && this.map.scene ? this.map.stateAt(...globalThis.d3.pointer(event, svg)) : null;
      card.hidden = state === null;
      if (state !== null) card.textContent = `B: ${tellState(state, { ...this.act.context(), answer: this.b })}`;
    });
    svg.addEventListener("pointerleave", () => {
      card.hidden = true;
    });
  }

  closeMap() {
    if (!this.map) return;
    this.stop();
    this.map.close();
    this.map = null;
    this.holder.hidden = true;
    fill(this.holder);
  }

  async ask(world, view, draft, key) {
    const asked = { world: world.world, ...draft, step: view.step };
    const { answers } = this.act;
    const part = async (path, read) => {
      const found = await answers.compute(path, asked);
      if (key !== this.key) return;
      this.b = { ...this.b, ...read(found) };
      this.refresh();
    };
    try {
      await part("/api/effects", (effects) => ({ effects, released: effects.released }));
      if (key === this.key && !this.b.released) await part("/api/released", (released) => ({ released }));
      if (key === this.key) await part("/api/expected", (expected) => ({ expected }));
    } catch (error) {
      if (key !== this.key) return;
      this.key = "";  // the next change asks again
      this.act.say(error.message);
    }
  }

  async askLinks(world, view, draft, apart) {
    try {
      const links = await this.act.answers.compute("/api/between", { world: world.world, step: view.step, runs: [view.draft, draft] });
      if (apart !== this.apart) return;
      this.links = links;
      this.refresh();
    } catch (error) {
      if (apart !== this.apart) return;
      this.apart = "";
      this.act.say(error.message);
    }
  }

  refresh() {
    const { view } = this.store;
    if (view.tab !== "compare") return;
    this.act.redraw();
    this.tell(view, this.act.context().world);
  }

  // The largest value of either version, so that one colour means one number on both maps.
  most(view) {
    const now = this.act.answers.now;
    if (!this.b || !now) return null;
    const largest = (values) => values.reduce((a, b) => Math.max(a, b), 0);
    return {
      degree: Math.max(largest(sideOf(view, now).degree), largest(sideOf(view, this.b).degree)),
      prior: Math.max(largest(now.effects.prior), largest(this.b.effects.prior)),
    };
  }

  // What only A or only B links, as the map of either shows it.
  only(which) {
    const flat = this.links?.[which]?.drawn ?? [];
    return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
  }

  // What is on B's map, and how many of its links are: both maps share one legend.
  draw() {
    this.holder.classList.toggle("stale", !this.b);
    if (!this.map || !this.b) return null;
    const context = { ...this.act.context(), answer: this.b, most: this.most(this.store.view), added: this.only("only_b") };
    const scene = sceneOf(context);
    this.map.set(scene);
    return { scene, edges: this.b.effects.edges };
  }

  tell(view, world) {
    const now = this.act.answers.now;
    if (!now) return undefined;
    const [a, b] = [now.released, this.b?.released];
    const off = (value) => (value === null || value === undefined ? "…" : length(value, world.unit));
    const change = (one, other) => {
      if ([one, other].some((value) => value === undefined || value === null)) return "";
      if (one === other) return "same";
      if (!other) return "more";
      if (one > 3 * other) return `${short(Number((one / other).toPrecision(2)))} times`;
      const share = Math.round(100 * (one / other - 1));
      return share ? `${share > 0 ? "+" : "−"}${Math.abs(share)}%` : "hardly";
    };
    const row = (label, id, read, write, differ = change) => {
      const [one, other] = [a && read(a, now), b && read(b, this.b)];
      return h(
        "tr",
        { "data-row": id },
        h("th", { scope: "row" }, label),
        [one, other].map((value) => h("td", {}, value === undefined || value === null ? "…" : write(value))),
        h("td", {}, differ(one, other)),
      );
    };
    // Two bounds tell nothing of a difference.
    const exact = now.effects.edges.exact && this.b?.effects.edges.exact;
    const links = (value) => `${exact ? "" : "≤ "}${short(value)}`;
    const count = (one, other) => (one === undefined || other === undefined ? "" : one === other ? "same" : `${one > other ? "+" : "−"}${short(Math.abs(one - other))}`);
    const settings = settingsApart(view.draft, otherOf(view).draft, world);
    const apart = this.links;
    return fill(
      this.results,
      h(
        "div",
        { className: "card" },
        h("h2", {}, `A beside B: ${otherOf(view).name}`),
        h(
          "table",
          { id: "compare-table" },
          h("thead", {}, h("tr", {}, h("td", {}), ["A", "B", "A against B"].map((text) => h("th", { scope: "col" }, text)))),
          h(
            "tbody",
            {},
            row(word("error", "off by"), "error", (side) => side.mean_error, off),
            row("in hindsight", "hindsight", (_, all) => all.expected?.mean_error.smoothed, off),
            row(word("degree of protection", "hides among"), "least", (side) => side.least, short, count),
            row(word("exposed"), "exposed", (side) => side.exposed.length, short, count),
            row(word("edge", "links"), "links", (side, all) => all.effects.edges.count + side.added.length, links, exact ? count : () => ""),
          ),
        ),
      ),
      h(
        "div",
        { className: "card" },
        h("h2", {}, "Links"),
        h("p", { id: "links-apart" }, !apart ? "Counting…" : apart.only_a === null ? "There are too many links to compare them one by one." : `${short(apart.only_a.count)} only in A, ${short(apart.only_b.count)} only in B, ${short(apart.both)} in both.`),
      ),
      h(
        "div",
        { className: "card" },
        h("h2", {}, "Settings"),
        settings.length
          ? h(
              "table",
              { id: "settings-apart" },
              h("thead", {}, h("tr", {}, h("td", {}), ["A", "B"].map((text) => h("th", { scope: "col" }, text)))),
              h("tbody", {}, settings.map(([name, one, other]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, one), h("td", {}, other)))),
            )
          : h("p", {}, "A and B have the same settings."),
      ),
    );
  }
}

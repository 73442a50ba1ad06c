// The policy as a list of layers: each rule of the file is shown, switched and edited by itself.

import { h, fill, word, short, count, showIn, toNumber } from "./elements.js";
import { edgesOf, valueOf, withEdges, withValues } from "./state.js";

const LAYERS = [
  ["distance", "Distance", "distance", "alike if close"],
  ["category", "Category", "categories", "alike within each"],
  ["one_step", "One step", "one-step", "next from one place"],
  ["edges", "Drawn links", "edge", "what you draw on the map"],
  ["complete", "Everybody", "complete", "all places alike"],
];
const SHOWN = 6;

export class LayersPanel {
  constructor(holder, store, world) {
    Object.assign(this, { store, world, kept: {} });
    this.guide = h("div", {});
    this.switches = {};
    this.notes = {};
    this.editors = {};
    const rows = LAYERS.map(([name, label, term, about]) => {
      this.switches[name] = h("input", {
        type: "checkbox",
        id: `layer-${name}`,
        onchange: (event) => this.toggle(name, event.target.checked),
      });
      this.notes[name] = h("span", { className: "layer-about" }, about);
      this.editors[name] = h("div", { className: "layer-editor" });
      return h(
        "li",
        { className: "layer", "data-layer": name },
        this.switches[name],
        h("label", { htmlFor: `layer-${name}`, className: "layer-name" }, label),
        word(term, "?"),
        this.notes[name],
        this.editors[name],
      );
    });
    this.radius = h("input", {
      type: "range",
      id: "radius",
      min: "0",
      "aria-label": "Distance, as a slider",
      oninput: () => this.set({ "policy.distance": this.radius.value }, `Distance ${this.radius.value}`, "slide distance"),
    });
    this.radiusText = h("input", {
      type: "text",
      id: "radius-text",
      inputMode: "decimal",
      "aria-label": "Distance",
      onchange: () => this.set({ "policy.distance": this.radiusText.value.trim() }, `Distance ${this.radiusText.value.trim()}`),
    });
    this.unit = h("span", {});
    fill(this.editors.distance, this.radius, h("span", { className: "with-unit" }, this.radiusText, this.unit));
    this.column = h("select", {
      id: "category-column",
      "aria-label": "Column of the categories",
      onchange: () => this.set({ "policy.category": this.column.value }, `Category ${this.column.value}`),
    });
    fill(this.editors.category, this.column);
    this.moves = h("input", {
      type: "checkbox",
      id: "moves",
      onchange: () => store.change({ moves: this.moves.checked }),
    });
    this.movesLabel = h("label", { className: "check" }, this.moves, (this.movesText = h("span", {})));
    fill(
      holder,
      this.guide,
      h("h2", {}, "Who must look like whom? The ", word("policy"), " says."),
      h("ul", { className: "layers", "aria-label": "Rules of the policy" }, rows),
      h("p", { className: "note" }, "Two places are linked if any rule that is on links them."),
      this.movesLabel,
    );
  }

  set(values, label, kind) {
    const { view } = this.store;
    this.store.change({ draft: withValues(view.draft, this.world(), values) }, label, kind);
  }

  toggle(name, on) {
    const { view } = this.store;
    const world = this.world();
    const label = `${LAYERS.find(([one]) => one === name)[1]} ${on ? "on" : "off"}`;
    const key = `policy.${name}`;
    if (name === "edges") {
      const { "policy.edges": _, ...changes } = view.draft.changes;
      const off = { ...changes, "policy.edges": null };
      return this.store.change({ draft: { ...view.draft, changes: on ? changes : off } }, label);
    }
    if (name === "complete" || name === "one_step")
      return this.set({ [key]: on || (world.settings[key] === undefined ? undefined : false) }, label);
    if (!on) this.kept[name] = valueOf(view, world, key);
    const usual = { distance: world.radius.usual, category: world.columns[0] }[name];
    return this.set({ [key]: on ? (this.kept[name] ?? world.settings[key] ?? usual) : null }, label);
  }

  show(view, world) {
    const value = (name) => valueOf(view, world, `policy.${name}`);
    const edges = edgesOf(view.draft, world);
    const off = view.draft.changes["policy.edges"] === null;
    const on = {
      distance: value("distance") !== undefined && value("distance") !== null,
      category: Boolean(value("category")),
      one_step: Boolean(value("one_step")),
      complete: Boolean(value("complete")),
      edges: edges.length > 0 && !off,
    };
    for (const [name] of LAYERS) {
      this.switches[name].checked = on[name];
      this.switches[name].closest("li").classList.toggle("on", on[name]);
      this.editors[name].hidden = !on[name];
    }
    this.switches.edges.disabled = !edges.length;
    this.switches.category.disabled = !world.columns.length;
    if (on.distance) {
      const distance = toNumber(value("distance")) || 0;
      const most = Math.max(Number(world.radius.most), distance);
      Object.assign(this.radius, { max: most, step: world.radius.step, value: distance });
      showIn(this.radiusText, value("distance"));
      this.unit.textContent = world.unit;
    }
    if (this.named !== world) {
      this.named = world;
      this.kept = {};
      fill(this.column, world.columns.map((name) => h("option", { value: name }, name)));
    }
    if (on.category) this.column.value = value("category");
    this.notes.edges.textContent = edges.length
      ? count(edges.length, "link")
      : "none yet";
    this.showEdges(view, world, edges);
    this.moves.checked = view.moves;
    this.movesLabel.hidden = !world.moves;
    this.movesText.textContent = world.all_moves ? " Show the model's moves" : " Show the model's likeliest moves";
  }

  showEdges(view, world, edges) {
    const name = ([a, b]) => `${world.labels[a]}–${world.labels[b]}`;
    const without = (pairs) => withEdges(view.draft, world, [], pairs);
    fill(
      this.editors.edges,
      h(
        "p",
        { className: "chips" },
        edges.slice(0, SHOWN).map((pair) =>
          h(
            "button",
            {
              type: "button",
              className: "chip",
              "aria-label": `Take the link ${name(pair)} away`,
              onclick: () => this.store.change({ draft: without([pair]) }, `Unlink ${name(pair)}`),
            },
            name(pair),
            " ×",
          ),
        ),
        edges.length > SHOWN ? `and ${short(edges.length - SHOWN)} more ` : null,
        edges.length
          ? h(
              "button",
              {
                type: "button",
                className: "text",
                onclick: () => this.store.change({ draft: without(edges) }, "Clear all links"),
              },
              "Clear all",
            )
          : null,
      ),
    );
  }
}

// The first thing a newcomer sees: three steps through the paper's example.
export function guide(holder, view, world, act) {
  if (view.world.name !== "paper") return fill(holder);
  const stepped = valueOf(view, world, "start") === "s1" && view.step === 2;
  const repaired = stepped && valueOf(view, world, "repair") !== "none";
  const step = (done, now, text, label, action) =>
    h(
      "li",
      { className: done ? "done" : now ? "now" : "" },
      text,
      now ? h("button", { type: "button", className: "primary", onclick: action }, label) : null,
    );
  return fill(
    holder,
    h(
      "div",
      { className: "guide" },
      h(
        "p",
        {},
        "Somebody moves between six states. Each answer tells a noisy temperature and noise level; " +
          "the policy links the states that must stay confusable.",
      ),
      h(
        "ol",
        {},
        step(
          stepped,
          !stepped,
          "It is known that they started in s1. Two steps later only four states are possible.",
          "Start at s1, step twice",
          act.step,
        ),
        step(
          repaired,
          stepped && !repaired,
          "The policy shrank with them: s3 has lost its partner s2 and is exposed.",
          "Repair with least error",
          act.repair,
        ),
        step(false, repaired, "Now every possible state is hidden again. Watch a simulated person.", "Take a walk", act.walk),
      ),
    ),
  );
}

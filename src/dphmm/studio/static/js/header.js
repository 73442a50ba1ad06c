// The top of the page: which scenario is shown, undo and redo with their list, light or dark.

import { h, fill, showIn } from "./elements.js";

const WORLDS = [
  ["paper", "The paper's example"],
  ["city", "A synthetic city"],
  ["grid", "A plain grid"],
  ["clinic", "A chain without a map"],
];

export class Header {
  constructor(store, own, open) {
    Object.assign(this, { store, open });
    this.select = h(
      "select",
      { id: "world", "aria-label": "Scenario", onchange: () => this.chosen() },
      WORLDS.map(([value, label]) => h("option", { value }, label)),
    );
    // A scenario of one's own stays in the list, whichever is looked at meanwhile.
    this.own = own ? { name: "own" } : null;
    this.ownOption = h("option", { value: "own" }, own);
    if (own) this.select.prepend(this.ownOption);
    const whole = (id, min, max, label) => h("input", { type: "number", id, min, max, "aria-label": label, onchange: () => this.chosen() });
    this.size = whole("city-size", 12, 40, "Cells on a side of the city");
    this.rows = whole("grid-rows", 1, 100, "Rows of the grid");
    this.columns = whole("grid-columns", 1, 100, "Columns of the grid");
    this.sizes = h("span", { className: "sizes" });
    fill(document.getElementById("world-choice"), this.select, this.sizes);
    [this.undo, this.redo, this.list, this.theme] = ["undo", "redo", "history", "theme"].map((id) => document.getElementById(id));
    this.undo.addEventListener("click", () => store.go(-1));
    this.redo.addEventListener("click", () => store.go(1));
    document.addEventListener("keydown", (event) => {
      const typing = event.target.matches?.("input[type=text], input[type=number]");
      // What is not seen is not undone.
      if (!(event.ctrlKey || event.metaKey) || typing || document.getElementById("studio").hidden) return;
      const by = { z: event.shiftKey ? 1 : -1, Z: 1, y: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      store.go(by);
    });
    this.theme.addEventListener("click", () => {
      store.change({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" });
    });
  }

  chosen() {
    const within = (input, usual) => {
      const value = Math.round(Number(input.value)) || usual;
      return Math.min(Number(input.max), Math.max(Number(input.min), value));
    };
    const name = this.select.value;
    if (name === "own") return this.open(this.own);
    const world = { name };
    if (name === "city") world.size = within(this.size, 24);
    if (name === "grid") Object.assign(world, { rows: within(this.rows, 20), columns: within(this.columns, 20) });
    return this.open(world);
  }

  // `anew`: also where somebody chose another scenario that could not be opened.
  show(view, world, anew = false) {
    if (anew) this.sized = null;
    const { name, size, rows, columns } = view.world;
    if (name === "own" || name === "file") {
      this.own = view.world;
      this.ownOption.textContent = world.title;
      if (!this.ownOption.isConnected) this.select.prepend(this.ownOption);
    }
    this.select.value = name === "file" ? "own" : name;
    // What somebody typed is theirs until the scenario of that size is there.
    if (this.sized !== view.world) {
      this.sized = view.world;
      for (const [input, value] of [[this.size, size ?? 24], [this.rows, rows ?? 20], [this.columns, columns ?? 20]])
        showIn(input, value);
    }
    if (this.sizes.dataset.of !== name) {
      this.sizes.dataset.of = name;
      fill(this.sizes, name === "city" ? [this.size, h("span", {}, "cells a side")] : name === "grid" ? [this.rows, h("span", {}, "×"), this.columns] : []);
    }
    const { past, future } = this.store;
    this.undo.disabled = !past.length;
    this.redo.disabled = !future.length;
    this.undo.title = past.length ? `Undo: ${past[past.length - 1].label} (Ctrl+Z)` : "Undo (Ctrl+Z)";
    this.redo.title = future.length ? `Redo: ${future[future.length - 1].label} (Ctrl+Y)` : "Redo (Ctrl+Y)";
    const entry = (label, by) =>
      h("li", {}, h("button", { type: "button", className: "text", "aria-current": by === 0 ? "step" : null, disabled: by === 0, onclick: () => this.store.go(by) }, label));
    fill(
      this.list.querySelector("ol"),
      entry("As opened", -past.length),
      past.map(({ label }, i) => entry(label, i + 1 - past.length)),
      future.toReversed().map(({ label }, i) => entry(`${label} (undone)`, i + 1)),
    );
    Object.assign(document.getElementById("world-about"), { textContent: world.about, title: world.about });
    document.title = `${world.title} · dphmm studio`;
    this.showTheme(view);
  }

  showTheme(view) {
    const dark = view.theme ? view.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.theme.textContent = dark ? "☀" : "☾";
  }
}

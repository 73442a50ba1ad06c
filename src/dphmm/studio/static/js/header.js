// The top of the page: which world is shown, undo, and light or dark.

import { h, fill } from "./elements.js";

const WORLDS = [
  ["paper", "The paper's example"],
  ["city", "A synthetic city"],
  ["grid", "A plain grid"],
  ["clinic", "A chain without a map"],
];

export class Header {
  constructor(store, own, open) {
    this.store = store;
    this.open = open;
    this.select = h(
      "select",
      { id: "world", "aria-label": "Scenario", onchange: () => this.chosen() },
      [...(own ? [["own", own]] : []), ...WORLDS].map(([value, label]) => h("option", { value }, label)),
    );
    this.size = h("input", {
      type: "number",
      min: 12,
      max: 40,
      id: "city-size",
      "aria-label": "Cells on a side of the city",
      onchange: () => this.chosen(),
    });
    this.rows = h("input", {
      type: "number",
      min: 1,
      max: 100,
      id: "grid-rows",
      "aria-label": "Rows of the grid",
      onchange: () => this.chosen(),
    });
    this.columns = h("input", {
      type: "number",
      min: 1,
      max: 100,
      id: "grid-columns",
      "aria-label": "Columns of the grid",
      onchange: () => this.chosen(),
    });
    this.sizes = h("span", { className: "sizes" });
    fill(document.getElementById("world-choice"), this.select, this.sizes);
    document.getElementById("undo").addEventListener("click", () => store.undo());
    document.addEventListener("keydown", (event) => {
      const typing = event.target.matches?.("input[type=text], input[type=number]");
      if ((event.ctrlKey || event.metaKey) && event.key === "z" && !event.shiftKey && !typing) {
        event.preventDefault();
        store.undo();
      }
    });
    this.theme = document.getElementById("theme");
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
    const world = { name };
    if (name === "city") world.size = within(this.size, 24);
    if (name === "grid")
      Object.assign(world, { rows: within(this.rows, 20), columns: within(this.columns, 20) });
    this.open(world);
  }

  show(view, world) {
    const { name, size, rows, columns } = view.world;
    this.select.value = name;
    this.size.value = size ?? 24;
    this.rows.value = rows ?? 20;
    this.columns.value = columns ?? 20;
    fill(
      this.sizes,
      name === "city"
        ? [this.size, h("span", {}, "cells a side")]
        : name === "grid"
          ? [this.rows, h("span", {}, "×"), this.columns]
          : [],
    );
    document.getElementById("undo").disabled = !this.store.past.length;
    if (world) document.getElementById("world-about").textContent = world.about;
    this.showTheme(view);
  }

  showTheme(view) {
    const dark = view.theme ? view.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.theme.textContent = dark ? "Light" : "Dark";
  }
}

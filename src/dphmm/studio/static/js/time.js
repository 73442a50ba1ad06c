// The time panel: what is known at the start, and every step of the timeline as `check` has it.

import { h, fill, field, word, short, count, length, showIn } from "./elements.js";
import { bars } from "./plots.js";
import { valueOf, withValues } from "./state.js";

export class TimePanel {
  constructor(holder, store, world) {
    Object.assign(this, { store, world });
    this.kind = h(
      "select",
      { id: "start-kind", onchange: () => this.choose(this.kind.value) },
      [
        ["uniform", "anywhere, all alike"],
        ["stationary", "as the model's long run"],
        ["label", "one place"],
        ["table", "as the file's table"],
      ].map(([value, text]) => h("option", { value }, text)),
    );
    this.start = h("input", { type: "text", id: "start-state", list: "state-names", autocomplete: "off", onchange: () => this.chosen() });
    this.names = h("datalist", { id: "state-names" });
    this.startField = field("Which place", this.start, "Type its name, or click it on the map with the tool Look.");
    this.back = h("button", { type: "button", id: "step-back", onclick: () => this.go(Math.min(this.store.view.step, this.time) - 1) }, "◀ Back");
    this.forward = h("button", { type: "button", id: "step-forward", className: "primary", onclick: () => this.go(this.store.view.step + 1) }, "Step ▶");
    this.tell = h("p", { id: "time-tell", className: "tell" });
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("id", "timeline-plot");
    this.svg.setAttribute("role", "img");
    this.rows = h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Steps as a table" });
    fill(
      holder,
      h("h2", {}, "What is known at the start, and what follows"),
      field("Somebody starts", this.kind),
      this.startField,
      this.names,
      h("div", { className: "row" }, this.back, this.forward),
      this.tell,
      h("h3", {}, word("possible", "Possible"), " and ", word("exposed"), " places at each step"),
      this.svg,
      this.rows,
      h("p", { className: "note" }, "Without any answer so far. Click a bar to go there. These are the lines of dphmm check."),
    );
  }

  show(view, world, effects) {
    if (this.named !== world) {
      this.named = world;
      fill(this.names, world.labels.slice(0, 400).map((label) => h("option", { value: label })));
    }
    // From a step on nothing changes; going back from beyond it begins there.
    this.time = effects.time;
    const stale = this.of && (this.of.draft !== view.draft || this.of.world !== world.world);
    for (const part of [this.svg, this.rows]) part.classList.toggle("stale", Boolean(stale));
    this.rows.setAttribute("aria-busy", String(Boolean(stale)));
    const start = valueOf(view, world, "start") ?? "uniform";
    const kind = typeof start !== "string" ? "table" : ["uniform", "stationary"].includes(start) ? start : "label";
    this.kind.value = kind;
    this.kind.querySelector('[value="table"]').hidden = kind !== "table" && typeof world.settings.start === "string";
    this.startField.hidden = kind !== "label";
    showIn(this.start, kind === "label" ? start : "");
    this.back.disabled = effects.time <= 1;
    this.forward.disabled = effects.lasts && view.step >= effects.time;
    const few = effects.possible && effects.possible.length <= 12;
    const named = few ? ` {${effects.possible.map((state) => world.labels[state]).join(", ")}}` : "";
    fill(
      this.tell,
      `At step ${effects.time}`,
      effects.lasts ? " and all that follow " : " ",
      h("strong", {}, count(effects.n_possible, "place")),
      ` ${effects.n_possible === 1 ? "is" : "are"} possible${named}.`,
    );
  }

  // `of`: the draft and scenario whose steps these are.
  showTimeline(steps, current, of) {
    this.of = of;
    for (const part of [this.svg, this.rows]) part.classList.remove("stale");
    this.rows.setAttribute("aria-busy", "false");
    bars(
      this.svg,
      steps.map((step) => ({ time: step.time, possible: step.possible, exposed: step.exposed_before })),
      current,
      (time) => this.go(time),
    );
    this.svg.setAttribute("aria-label", `Possible places by step: ${steps.map(({ possible }) => possible).join(", ")}; exposed before repair: ${steps.map(({ exposed_before: alone }) => alone).join(", ")}.`);
    const head = ["step", "possible", "exposed", "left", "among", "off by"];
    fill(
      this.rows,
      h(
        "table",
        { id: "timeline-table" },
        h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
        h(
          "tbody",
          {},
          steps.map((step) =>
            h(
              "tr",
              { className: step.time === current ? "now" : "", "data-step": step.time },
              h("th", { scope: "row" }, `${step.time}${step.lasts ? "…" : ""}`),
              h("td", {}, short(step.possible)),
              h("td", {}, short(step.exposed_before)),
              h("td", {}, short(step.exposed)),
              h("td", {}, short(step.least_protection)),
              h("td", {}, length(step.mean_error, this.named.unit)),
            ),
          ),
        ),
      ),
    );
  }

  set(start, label) {
    const { view } = this.store;
    this.store.change({ draft: withValues(view.draft, this.world(), { start }), step: 1 }, label);
  }

  choose(kind) {
    if (kind === "table") this.set(this.world().settings.start, "Start as in the file");
    else if (kind === "label") this.set(this.world().labels[0], `Start at ${this.world().labels[0]}`);
    else this.set(kind, `Start ${kind}`);
  }

  chosen() {
    const text = this.start.value.trim();
    if (this.named.labels.includes(text)) this.set(text, `Start at ${text}`);
    else this.start.setCustomValidity("There is no such place.");
    this.start.reportValidity();
    this.start.setCustomValidity("");
  }

  go(step) {
    this.store.change({ step: Math.max(1, Math.min(500, step)) }, `Step ${step}`, "slide step");
  }
}

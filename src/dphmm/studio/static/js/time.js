// The time panel: start somewhere, step forward, watch the possible set grow.

import { h, fill, field, word, short, count } from "./elements.js";
import { bars } from "./plots.js";

export class TimePanel {
  constructor(holder, store) {
    this.store = store;
    this.start = h("input", {
      type: "text",
      id: "start-state",
      list: "state-names",
      autocomplete: "off",
      placeholder: "nothing is known",
      onchange: () => this.chosen(),
    });
    this.names = h("datalist", { id: "state-names" });
    this.back = h("button", { type: "button", id: "step-back", onclick: () => this.step(-1) }, "◀ Back");
    this.forward = h(
      "button",
      { type: "button", id: "step-forward", className: "primary", onclick: () => this.step(1) },
      "Step ▶",
    );
    this.reset = h(
      "button",
      { type: "button", id: "time-reset", onclick: () => store.change({ moment: {} }, "reset") },
      "Reset",
    );
    this.tell = h("p", { id: "time-tell", className: "tell" });
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("id", "timeline-plot");
    this.svg.setAttribute("role", "img");
    this.plotCard = h(
      "div",
      {},
      h("h3", {}, word("possible", "Possible"), " and ", word("exposed"), " states over time"),
      this.svg,
      h("p", { className: "note" }, "Before any release and before any repair. Click a bar to go there."),
    );
    fill(
      holder,
      h("h2", {}, "Start somewhere and step the model forward"),
      field(
        "Known to start in",
        this.start,
        "Type a state, or choose the tool Possible and click states by hand.",
      ),
      this.names,
      h("div", { className: "row" }, this.back, this.forward, this.reset),
      this.tell,
      this.plotCard,
    );
  }

  show(view, world, effects) {
    const { moment } = view;
    if (this.named !== world) {
      this.named = world;
      fill(
        this.names,
        world.labels.slice(0, 300).map((label) => h("option", { value: label })),
      );
    }
    if (document.activeElement !== this.start) {
      this.start.value = moment.start === undefined ? "" : world.labels[moment.start];
    }
    const known = moment.start !== undefined || moment.states !== undefined;
    this.back.disabled = !known || !moment.steps;
    this.reset.disabled = !known;
    this.forward.disabled = !known;
    if (!known) {
      fill(this.tell, "Every state is possible: nothing is known about the start.");
      this.plotCard.hidden = true;
      return;
    }
    const steps = moment.steps ?? 0;
    const who = moment.start !== undefined ? world.labels[moment.start] : "the chosen states";
    const named =
      effects.possible && effects.possible.length <= 12
        ? ` {${effects.possible.map((state) => world.labels[state]).join(", ")}}`
        : "";
    fill(
      this.tell,
      `${count(steps, "step")} after ${who}, `,
      h("strong", {}, `${count(effects.n_possible, "state")}`),
      ` ${effects.n_possible === 1 ? "is" : "are"} possible${named}; the policy keeps `,
      h("strong", {}, `${count(effects.edges.count, "edge")}`),
      effects.exposed.length
        ? h(
            "span",
            { className: "alarm-text" },
            ` and ${count(effects.exposed.length, "state")} ${effects.exposed.length === 1 ? "is" : "are"} exposed.`,
          )
        : " and nobody is exposed.",
    );
    this.plotCard.hidden = false;
  }

  showTimeline(steps, current) {
    bars(this.svg, steps, current, (time) =>
      this.store.change({ moment: { ...this.store.view.moment, steps: time } }, "slide time"),
    );
    this.svg.setAttribute(
      "aria-label",
      `Possible states by step: ${steps.map(({ possible }) => possible).join(", ")}; ` +
        `exposed: ${steps.map(({ exposed }) => exposed).join(", ")}.`,
    );
  }

  chosen() {
    const text = this.start.value.trim();
    const state = this.named.labels.indexOf(text);
    if (text === "") this.store.change({ moment: {} }, "start");
    else if (state >= 0) this.store.change({ moment: { start: state, steps: 0 } }, "start");
    else this.start.setCustomValidity("There is no such state.");
    this.start.reportValidity();
    this.start.setCustomValidity("");
  }

  step(by) {
    const { moment } = this.store.view;
    const steps = Math.max(0, Math.min(500, (moment.steps ?? 0) + by));
    this.store.change({ moment: { ...moment, steps } }, "step");
  }
}

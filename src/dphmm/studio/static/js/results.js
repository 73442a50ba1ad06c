// What a walk leaves behind: tracks side by side, plots over time, and the clock below the map.

import { h, fill, word } from "./elements.js";
import { lines } from "./plots.js";
import { StateMap } from "./map.js";
import { token } from "./colours.js";

const KINDS = [
  ["raw", "as released"],
  ["smoothed", "smoothed"],
];
const newSvg = () => document.createElementNS("http://www.w3.org/2000/svg", "svg");

export class WalkResults {
  constructor(holder, bar, store) {
    Object.assign(this, { holder, bar, store, walked: null, minis: [], values: [] });
  }

  show(walked, world, places, view) {
    this.forget();
    Object.assign(this, {
      walked,
      world,
      lasts: Math.max(1, ...walked.runs.map(({ steps }) => steps.length)),
    });
    const names = ["A", "B"];
    const two = walked.runs.length > 1;
    this.slider = h("input", {
      type: "range",
      id: "walk-time",
      min: 1,
      max: this.lasts,
      step: 1,
      "aria-label": "Time of the walk",
      oninput: () => this.store.walk({ time: Number(this.slider.value) }),
    });
    this.clock = h("output", { htmlFor: "walk-time" });
    this.which = h(
      "div",
      { className: "segmented", role: "radiogroup", "aria-label": "Posterior shown on the map" },
      names
        .slice(0, walked.runs.length)
        .map((name, i) =>
          h(
            "button",
            { type: "button", role: "radio", "data-run": i, onclick: () => this.store.walk({ shown: i }) },
            `Posterior ${name}`,
          ),
        ),
    );
    const planar = world.answers_are_places;
    const tracks = walked.runs.flatMap((run, i) =>
      KINDS.map(([kind, title]) => {
        const drawing = planar ? h("div", { className: "mini-map" }) : newSvg();
        (planar ? this.minis : this.values).push({ drawing, kind, run, i });
        return h(
          "figure",
          { className: `mini run-${names[i].toLowerCase()}` },
          h("figcaption", {}, two ? `${names[i]}, ${title}` : title),
          drawing,
        );
      }),
    );
    const plot = (id, title) => {
      const svg = newSvg();
      svg.setAttribute("id", id);
      return [svg, h("figure", { className: "mini" }, h("figcaption", {}, title), svg)];
    };
    const [error, errorFigure] = plot(
      "error-plot",
      h("span", {}, "Error of the release (thin) and of the ", word("estimate")),
    );
    const [degree, degreeFigure] = plot(
      "degree-plot",
      word("degree of protection", "Degree of protection of the true state"),
    );
    const [ledger, ledgerFigure] = plot("ledger-plot", h("span", {}, "The ", word("ledger"), " filling up"));
    this.plots = { error, degree, ledger };
    fill(
      this.bar,
      h("label", { htmlFor: "walk-time" }, "Time ", this.clock),
      this.slider,
      two ? this.which : null,
    );
    fill(
      this.holder,
      two
        ? h(
            "p",
            { className: "ab-key" },
            h("span", { className: "key key-a" }),
            "A, this policy ",
            h("span", { className: "key key-b" }),
            "B, the second way",
          )
        : null,
      h("div", { className: planar ? "minis" : "minis wide-minis" }, tracks),
      errorFigure,
      degreeFigure,
      ledgerFigure,
    );
    const answers = walked.runs.flatMap(({ steps }) => steps.map(({ answer }) => answer));
    for (const mini of this.minis) {
      mini.map = new StateMap(mini.drawing, { interactive: false });
      mini.map.show(world, places, answers);
    }
    this.showTime(view);
  }

  showTime(view) {
    const walked = this.walked;
    if (!walked || !this.slider) return;
    const time = Math.min(view.walk.time, this.lasts);
    this.slider.value = String(time);
    this.clock.textContent = `${time} of ${this.lasts}`;
    for (const button of this.which.children)
      button.setAttribute("aria-checked", String(Number(button.dataset.run) === view.walk.shown));
    const kinds = ["a", "b"];
    const of = (key) =>
      walked.runs.map(({ steps }, i) => ({
        name: "AB"[i],
        values: steps.map((step) => step[key]),
        kind: kinds[i],
      }));
    lines(
      this.plots.error,
      [
        ...of("error").map((s) => ({ ...s, name: `released ${s.name}`, kind: `${s.kind} faint` })),
        ...of("estimate_error"),
      ],
      { time, label: "Error" },
    );
    lines(this.plots.degree, of("degree"), { time, label: "Degree of protection", least: 2 });
    const limit = walked.runs[0].limit?.value ?? null;
    lines(
      this.plots.ledger,
      of("spent").map((s) => ({ ...s, step: true })),
      { time, limit, label: "Spent" },
    );
    for (const { drawing, kind, run, i } of this.values) {
      const said =
        kind === "raw" ? run.steps.map(({ answer }) => answer[0]) : run.smoothed.map(([value]) => value);
      lines(
        drawing,
        [
          { name: "truth", values: walked.places.slice(0, time).map(([value]) => value), kind: "truth" },
          { name: kind, values: said.slice(0, time), kind: kinds[i] },
        ],
        { time, label: kind },
      );
    }
    for (const { map, kind, run } of this.minis) {
      const points = kind === "raw" ? run.steps.map(({ answer }) => answer) : run.smoothed;
      map.set({
        fills: Array(this.world.n_states).fill(token("land")),
        possible: null,
        plain: true,
        tracks: [
          { kind: "truth", points: walked.places, upto: time },
          { kind, points, upto: time },
        ],
      });
    }
  }

  forget() {
    this.walked = null;
    for (const { map } of this.minis) map.close();
    Object.assign(this, { minis: [], values: [] });
    fill(this.bar);
    fill(
      this.holder,
      h(
        "p",
        { className: "empty" },
        "Nothing was released yet. Run the walk to see the tracks, the errors, " +
          "the protection and the ledger here.",
      ),
    );
  }
}

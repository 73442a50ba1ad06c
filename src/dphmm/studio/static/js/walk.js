// The walk: a simulated person, released as the scenario says, played like a film.

import { h, fill, field, word, short, count, length, showIn } from "./elements.js";
import { lines } from "./plots.js";
import { otherOf } from "./compare.js";

const TICK = 350;
const newSvg = (id) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("id", id);
  return svg;
};
const ERRORS = [
  ["answer", "an answer"],
  ["estimate", "the estimate at the time"],
  ["lagged", "six steps later"],
  ["smoothed", "in hindsight"],
];

// What a film is made of besides the policy: with a version B, that as well.
const filmOf = ({ walk: { seed, length: steps, people, compare }, ...view }) => JSON.stringify([seed, steps, people, compare && otherOf(view).draft]);

export class WalkPanel {
  // run(at): simulate again; take(): save the map as it is now.
  constructor(holder, results, bar, store, run, take) {
    Object.assign(this, { store, results, bar, again: run, take, walked: null, timer: 0 });
    const whole = (name, low, high) =>
      h("input", {
        type: "number",
        id: `walk-${name}`,
        min: low,
        max: high,
        onchange: (event) => {
          const value = Math.round(Number(event.target.value));
          event.target.value = Math.min(high, Math.max(low, Number.isFinite(value) ? value : low));
          store.walk({ [name]: Number(event.target.value) });
        },
      });
    this.length = whole("length", 1, 600);
    this.seed = whole("seed", 0, 4294967295);
    this.people = whole("people", 1, 6);
    this.compare = h("input", { type: "checkbox", id: "compare", onchange: () => store.walk({ compare: this.compare.checked }) });
    this.other = h("p", { className: "note" });
    this.go = h("button", { type: "button", className: "primary wide", id: "run-walk", onclick: () => run() }, "Run the walk");
    this.result = h("div", { id: "walk-result" });
    fill(
      holder,
      h("h2", {}, "Watch people being released"),
      h("p", { className: "simulated" }, "These people are simulated. Their walks are drawn from the model and the noise from a seed, so these answers are for looking at, not private, and nobody's data is here."),
      h("div", { className: "fields" }, field("Steps", this.length), field("People", this.people), field("Seed", this.seed)),
      h("label", { className: "check" }, this.compare, " Compare with a second version, B"),
      this.other,
      h("div", { className: "row" }, this.go),
      this.result,
    );
  }

  show(view, world) {
    this.world = world;
    showIn(this.length, view.walk.length);
    showIn(this.seed, view.walk.seed);
    showIn(this.people, view.walk.people);
    this.compare.checked = view.walk.compare;
    this.other.textContent = !view.walk.compare
      ? ""
      : `A is what you are editing, B is ${view.versions[view.other] ? `"${view.versions[view.other].name}"` : "the scenario as it was opened"}; Compare keeps versions and chooses B.`;
    const stale = this.walked && (this.of.draft !== view.draft || this.of.world !== world.world || this.of.film !== filmOf(view));
    for (const part of [this.result, this.results]) part.classList.toggle("stale", Boolean(stale));
    // A picture says what the settings come to, so it is of a film of these.
    for (const button of this.result.querySelectorAll("#download-moment")) button.disabled = Boolean(stale);
    this.go.textContent = stale ? "Settings changed: run again" : "Run the walk";
  }

  request(view) {
    const { walk, draft } = view;
    const runs = [draft, ...(walk.compare ? [otherOf(view).draft] : [])];
    return { seed: walk.seed, length: walk.length, people: walk.people, person: walk.person, runs };
  }

  showResult(walked, view, world, places) {
    this.stop();
    Object.assign(this, { walked, world, places, of: { draft: view.draft, world: world.world, film: filmOf(view) } });
    const two = walked.runs.length > 1;
    const off = (value) => (value === null ? "–" : length(value, world.unit));
    const many = walked.others.length + 1;
    const all = (i, read) => [walked, ...walked.others].map(({ runs }) => read(runs[i]));
    fill(
      this.result,
      h(
        "table",
        {},
        h("caption", {}, many > 1 ? `Off by, on average over ${many} people` : "Off by, on average"),
        two ? h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col" }, "A"), h("th", { scope: "col" }, "B"))) : null,
        h(
          "tbody",
          {},
          ERRORS.map(([key, label]) =>
            h("tr", { "data-error": key }, h("th", { scope: "row" }, label), walked.mean_error.map((error) => h("td", {}, off(error[key])))),
          ),
          h("tr", {}, h("th", { scope: "row" }, many > 1 ? "answers in all" : "answers"), walked.runs.map((_, i) => h("td", {}, short(all(i, (run) => run.answers).reduce((a, b) => a + b, 0))))),
          h("tr", {}, h("th", { scope: "row" }, many > 1 ? "spent on one at most" : "spent"), walked.runs.map((_, i) => h("td", {}, short(Math.max(...all(i, (run) => run.spent.value)))))),
        ),
      ),
      walked.runs.map((run, i) => [run, all(i, ({ refused }) => refused).reduce((a, b) => a + b, 0)]).map(([run, refused], i) =>
        refused
          ? h("p", { className: "note" }, `${two ? `${"AB"[i]}: ` : ""}${count(refused, "answer")} would have cost more than the budget of ${run.limit.words}; nothing was said then.`)
          : null,
      ),
      h("div", { className: "row" }, h("button", { type: "button", id: "download-moment", onclick: () => this.take() }, "Map of this moment (SVG)")),
    );
    this.buildFilm(two);
    this.showTime(view);
  }

  buildFilm(two) {
    const last = this.walked.path.length;
    this.play = h("button", { type: "button", id: "play", onclick: () => this.toggle() }, "▶ Play");
    this.slider = h("input", { type: "range", id: "walk-time", min: 1, max: last, step: 1, "aria-label": "Time of the walk", oninput: () => this.store.walk({ time: Number(this.slider.value) }) });
    this.clock = h("output", { htmlFor: "walk-time" });
    this.which = two
      ? h(
          "fieldset",
          { className: "segmented" },
          h("legend", { className: "hidden" }, "Version on the map"),
          ["A", "B"].map((name, i) =>
            h("label", {}, h("input", { type: "radio", name: "run", value: i, onchange: () => this.store.walk({ shown: i }) }), name),
          ),
        )
      : null;
    const many = this.walked.others.length + 1;
    this.who = many > 1
      ? h(
          "fieldset",
          { className: "segmented" },
          h("legend", { className: "hidden" }, "Whose belief and numbers"),
          Array.from({ length: many }, (_, i) =>
            h("label", { title: `What is believed about person ${i + 1}` }, h("input", { type: "radio", name: "person", value: i, checked: i === this.walked.person, onchange: () => this.see(i) }), String(i + 1)),
          ),
        )
      : null;
    fill(this.bar, this.play, this.slider, this.clock, this.who, this.which);
    this.plots = { error: newSvg("error-plot"), ledger: newSvg("ledger-plot") };
    const figure = (title, svg) => h("figure", { className: "mini" }, h("figcaption", {}, title), svg);
    fill(
      this.results,
      two ? h("p", { className: "ab-key" }, h("span", { className: "key key-a" }), "A, as you see it ", h("span", { className: "key key-b" }), "B") : null,
      figure(h("span", {}, "Off by: answers as dots, the ", word("estimate"), " as a line"), this.plots.error),
      figure(h("span", {}, "The ", word("ledger"), " filling up"), this.plots.ledger),
    );
  }

  // Another of the people: the same film again, with what is believed about them.
  see(person) {
    this.stop();
    this.store.walk({ person });
    this.again(this.store.view.walk.time);
  }

  toggle() {
    if (this.timer) return this.stop();
    const { walk } = this.store.view;
    if (walk.time >= this.walked.path.length) this.store.walk({ time: 1 });
    this.timer = setInterval(() => {
      const { time } = this.store.view.walk;
      if (!this.walked || time >= this.walked.path.length) this.stop();
      else this.store.walk({ time: time + 1 });
    }, TICK);
    this.play.textContent = "❚❚ Pause";
    return undefined;
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    if (this.play) this.play.textContent = "▶ Play";
  }

  showTime(view) {
    if (!this.walked) return;
    const last = this.walked.path.length;
    const time = Math.min(view.walk.time, last);
    this.slider.value = String(time);
    const { times, zone } = this.walked;
    this.clock.textContent = `${times ? `${times[time - 1]}, step` : "step"} ${time} of ${last}`;
    this.clock.title = zone;
    for (const input of this.which?.querySelectorAll("input") ?? []) input.checked = Number(input.value) === view.walk.shown;
    const kinds = ["a", "b"];
    const of = (key) => this.walked.runs.map(({ steps }, i) => ({ name: "AB"[i], values: steps.map((step) => step[key]), kind: kinds[i] }));
    lines(this.plots.error, [...of("error").map((s) => ({ ...s, name: `answers ${s.name}`, kind: `${s.kind} dots` })), ...of("estimate_error")], { time, label: "Off by", unit: this.world.unit });
    const total = this.walked.runs[0].limit?.total?.value ?? null;
    lines(this.plots.ledger, of("spent").map((s) => ({ ...s, step: true })), { time, limit: total, label: "Spent" });
  }

  run(view) {
    return this.walked?.runs[view.walk.shown] ?? this.walked?.runs[0];
  }

  // The marks of the present moment on the map, with the trail that led there.
  tracks(view) {
    const run = this.run(view);
    if (!run) return [];
    const upto = Math.min(view.walk.time, run.steps.length);
    const many = this.walked.others.length;
    const name = (film) => (many ? String(film.number + 1) : null);
    if (!this.world.answers_are_places) {
      const here = ({ path }) => path.map((state) => [this.places[2 * state], this.places[2 * state + 1]]);
      return [this.walked, ...this.walked.others].map((film, i) => ({ kind: i ? "other" : "truth", points: here(film), upto, name: name(film) }));
    }
    const beside = this.walked.others.flatMap((film) => {
      const { steps } = film.runs[Math.min(view.walk.shown, film.runs.length - 1)];
      const answers = steps.slice(0, upto).filter(({ answer }) => answer).map(({ answer }) => answer);
      return [
        { kind: "other", points: film.places, upto, name: name(film) },
        { kind: "other-answers", points: answers, dots: true },
      ];
    });
    const said = run.steps.slice(0, upto).filter(({ answer }) => answer);
    const last = said[said.length - 1];
    return [
      ...beside,
      { kind: "truth", points: this.walked.places, upto, name: name(this.walked) },
      { kind: "smoothed", points: run.smoothed, upto },
      { kind: "lagged", points: run.lagged, upto: Math.max(0, upto - 6) },
      { kind: "answers", points: said.map(({ answer }) => answer), dots: true },
      ...(last && last.time === run.steps[upto - 1].time ? [{ kind: "answer", points: [last.answer], lone: true }] : []),
      { kind: "estimate", points: [run.steps[upto - 1].estimate], lone: true },
    ];
  }

  posterior(view) {
    const run = this.run(view);
    const step = run?.steps[Math.min(view.walk.time, run.steps.length) - 1];
    if (!step) return null;
    const values = Array(this.world.n_states).fill(0);
    step.posterior.states.forEach((state, i) => {
      values[state] = step.posterior.probabilities[i];
    });
    return values;
  }

  forget() {
    this.stop();
    this.walked = null;
    fill(this.result);
    fill(this.bar);
    fill(this.results, h("p", { className: "empty" }, "Nothing was released yet. Run the walk to see it on the map, how far off it is, and what it spends."));
  }
}


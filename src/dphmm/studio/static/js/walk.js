// The walk panel and its dock: a simulated person, released, and compared with a second way.

import { h, fill, field, word, short, count } from "./elements.js";
import { lines } from "./plots.js";
import { StateMap } from "./map.js";
import { token } from "./colours.js";

const POLICIES = { same: "the same policy", complete: "complete", categories: "categories", one_step: "one step",
  distance: "distance (this radius)", pinned: "the pinned policy" };

export class WalkPanel {
  constructor(holder, bar, dock, store, run) {
    Object.assign(this, { store, bar, dock, minis: [], values: [] });
    const { walk } = store.view;
    const input = (name, properties) => h("input", { ...properties,
      onchange: (event) => this.set(name, event.target) });
    this.inputs = {
      start: h("input", { type: "text", list: "state-names", autocomplete: "off", onchange: (event) => {
        const state = this.world.labels.indexOf(event.target.value.trim());
        if (state >= 0) store.walk({ start: state });
        else event.target.value = this.world.labels[store.view.walk.start];
      } }),
      length: input("length", { type: "number", min: 1, max: 200 }),
      seed: input("seed", { type: "number", min: 0, max: 4294967295 }),
      limit: input("limit", { type: "text", inputMode: "decimal" }),
    };
    this.repair = select(["min_error", "min_area", "nearest", "none"], ["least error", "least area", "nearest", "no repair"],
      (value) => store.walk({ repair: value }));
    this.compare = h("input", { type: "checkbox", id: "compare", onchange: () => store.walk({ compare: this.compare.checked }) });
    const other = (changes) => store.walk({ other: { ...store.view.walk.other, ...changes } });
    this.otherPolicy = select(Object.keys(POLICIES), Object.values(POLICIES), (policy) => other({ policy }));
    this.otherPolicy.id = "other-policy";
    this.otherEpsilon = h("input", { type: "text", inputMode: "decimal", id: "other-epsilon", onchange: (event) => {
      if (/^\d{1,4}(\.\d{1,6})?$/.test(event.target.value.trim()) && Number(event.target.value) > 0) other({ epsilon: event.target.value.trim() });
      else event.target.value = store.view.walk.other.epsilon;
    } });
    this.otherMechanism = select(["knorm", "laplace"], ["K-norm", "Laplace"], (mechanism) => other({ mechanism }));
    this.otherFields = h("div", { className: "subfields" },
      field("Policy of B", this.otherPolicy), field("ε of B", this.otherEpsilon), field("Noise of B", this.otherMechanism),
      h("button", { type: "button", onclick: () => store.walk({ pinned: store.view.policy, other: { ...store.view.walk.other, policy: "pinned" } }) },
        "Pin the current policy as B"));
    this.go = h("button", { type: "button", className: "primary wide", id: "run-walk", onclick: () => run() }, "Run the walk");
    this.again = h("button", { type: "button", onclick: () => {
      store.walk({ seed: (store.view.walk.seed + 1) % 4294967295 });
      run();
    } }, "Another person");
    this.result = h("div", { id: "walk-result" });
    fill(holder,
      h("h2", {}, "Watch a release"),
      h("p", { className: "simulated" }, "This person is simulated. The walk is drawn from the model and the noise from a seed, "
        + "so these releases are for looking at, not private, and nobody's data is here."),
      h("div", { className: "fields" }, field("Starts in", this.inputs.start), field("Steps", this.inputs.length),
        field("Seed", this.inputs.seed), field("Limit of ε", this.inputs.limit)),
      field(word("repair", "Repair"), this.repair),
      h("label", { className: "check" }, this.compare, " Compare with a second way, B"), this.otherFields,
      h("div", { className: "row" }, this.go, this.again), this.result);
    this.length = walk.length;
  }

  set(name, { value }) {
    const { walk } = this.store.view;
    if (name === "limit") {
      const text = value.trim();
      this.store.walk({ limit: text === "" || (/^\d{1,6}(\.\d{1,6})?$/.test(text) && Number(text) > 0) ? text : walk.limit });
    } else {
      const number = Math.round(Number(value));
      const [low, high] = name === "length" ? [1, 200] : [0, 4294967295];
      this.store.walk({ [name]: Number.isFinite(number) ? Math.min(high, Math.max(low, number)) : walk[name] });
    }
  }

  show(view, world) {
    this.world = world;
    const { walk } = view;
    this.inputs.start.value = world.labels[walk.start] ?? world.labels[0];
    for (const name of ["length", "seed", "limit"]) this.inputs[name].value = walk[name];
    this.repair.value = walk.repair;
    this.compare.checked = walk.compare;
    this.otherFields.hidden = !walk.compare;
    this.otherPolicy.value = walk.other.policy;
    this.otherPolicy.querySelector('[value="pinned"]').disabled = !walk.pinned;
    this.otherEpsilon.value = walk.other.epsilon;
    this.otherMechanism.value = walk.other.mechanism;
  }

  // What the server is asked: run A is the policy on the screen, run B the chosen second way.
  request(view) {
    const { walk, policy, epsilon } = view;
    const limit = walk.limit === "" ? {} : { limit: walk.limit };
    const runs = [{ policy, epsilon, repair: walk.repair, mechanism: "knorm", ...limit }];
    if (walk.compare) {
      const { other } = walk;
      const chosen = other.policy === "same" ? policy : other.policy === "pinned" ? (walk.pinned ?? policy)
        : { base: other.policy, radius: policy.radius };
      runs.push({ policy: chosen, epsilon: other.epsilon, repair: walk.repair, mechanism: other.mechanism, ...limit });
    }
    return { seed: walk.seed, length: walk.length, start: Math.min(walk.start, this.world.n_states - 1), runs };
  }

  showResult(walked, view) {
    this.walked = walked;
    this.lasts = Math.max(1, ...walked.runs.map(({ steps }) => steps.length));
    const names = ["A", "B"];
    const unit = this.world.unit;
    fill(this.result, walked.runs.map((run, i) => h("div", { className: `run run-${names[i].toLowerCase()}` },
      h("h3", {}, walked.runs.length > 1 ? `${names[i]}: ` : "", `ε = ${run.epsilon}, spent ${short(run.spent.value)}`
        + (run.limit ? ` of ${short(run.limit.value)}` : "")),
      h("table", {}, h("tbody", {},
        [["answer", "released"], ["estimate", "estimate"], ["smoothed", "smoothed"]].map(([key, label]) => h("tr", { "data-error": key },
          h("th", { scope: "row" }, key === "answer" ? label : word(key, label)),
          h("td", {}, run.mean_error[key] === null ? "–" : `${short(run.mean_error[key])} ${unit}`))))),
      run.refused ? h("p", { className: "alarm-text" }, `Stopped after ${count(run.steps.length, "release")}: the ledger's limit allows no more.`) : null)),
    h("p", { className: "note" }, "Errors are root mean squares over the walk."));
    this.buildDock(view);
  }

  buildDock(view) {
    const walked = this.walked;
    for (const { map } of this.minis) map.close();
    this.minis = [];
    if (!walked) return;
    const names = ["A", "B"];
    const two = walked.runs.length > 1;
    this.slider = h("input", { type: "range", id: "walk-time", min: 1, max: this.lasts, step: 1, "aria-label": "Time of the walk",
      oninput: () => this.store.walk({ time: Number(this.slider.value) }) });
    this.clock = h("output", { htmlFor: "walk-time" });
    this.which = h("div", { className: "segmented", role: "radiogroup", "aria-label": "Posterior shown on the map" }, names.slice(0, walked.runs.length).map((name, i) =>
      h("button", { type: "button", role: "radio", "data-run": i, onclick: () => this.store.walk({ shown: i }) }, `Posterior ${name}`)));
    const planar = this.world.answers_are_places;
    this.values = [];
    const tracks = planar ? walked.runs.flatMap((run, i) => [["raw", "as released"], ["smoothed", "smoothed"]].map(([kind, title]) => {
      const holder = h("div", { className: "mini-map" });
      this.minis.push({ holder, kind, run, i });
      return h("figure", { className: `mini run-${names[i].toLowerCase()}` }, h("figcaption", {}, two ? `${names[i]}, ${title}` : title), holder);
    })) : walked.runs.flatMap((run, i) => [["raw", "as released"], ["smoothed", "smoothed"]].map(([kind, title]) => {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      this.values.push({ svg, kind, run, i });
      return h("figure", { className: "mini" }, h("figcaption", {}, two ? `${names[i]}, ${title}` : title), svg);
    }));
    const plot = (id, title) => {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("id", id);
      return [svg, h("figure", { className: "mini" }, h("figcaption", {}, title), svg)];
    };
    const [error, errorFigure] = plot("error-plot", h("span", {}, "Error of the release (thin) and of the ", word("estimate")));
    const [degree, degreeFigure] = plot("degree-plot", word("degree of protection", "Degree of protection of the true state"));
    const [ledger, ledgerFigure] = plot("ledger-plot", h("span", {}, "The ", word("ledger"), " filling up"));
    this.plots = { error, degree, ledger };
    fill(this.bar, h("label", { htmlFor: "walk-time" }, "Time ", this.clock), this.slider, two ? this.which : null);
    fill(this.dock,
      two ? h("p", { className: "ab-key" }, h("span", { className: "key key-a" }), "A, this policy ", h("span", { className: "key key-b" }), "B, the second way") : null,
      h("div", { className: planar ? "minis" : "minis wide-minis" }, tracks), errorFigure, degreeFigure, ledgerFigure);
    const answers = walked.runs.flatMap(({ steps }) => steps.map(({ answer }) => answer));
    for (const mini of this.minis) {
      mini.map = new StateMap(mini.holder, { interactive: false });
      mini.map.show(this.world, this.places, answers);
    }
    this.showTime(view);
  }

  showTime(view) {
    const walked = this.walked;
    if (!walked || !this.slider) return;
    const time = Math.min(view.walk.time, this.lasts);
    this.slider.value = String(time);
    this.clock.textContent = `${time} of ${this.lasts}`;
    for (const button of this.which.children) button.setAttribute("aria-checked", String(Number(button.dataset.run) === view.walk.shown));
    const kinds = ["a", "b"];
    const of = (key) => walked.runs.map(({ steps }, i) => ({ name: "AB"[i], values: steps.map((step) => step[key]), kind: kinds[i] }));
    lines(this.plots.error, [...of("error").map((s) => ({ ...s, name: `released ${s.name}`, kind: `${s.kind} faint` })), ...of("estimate_error")],
      { time, label: "Error" });
    lines(this.plots.degree, of("degree"), { time, label: "Degree of protection", least: 2 });
    const limit = walked.runs[0].limit?.value ?? null;
    lines(this.plots.ledger, of("spent").map((s) => ({ ...s, step: true })), { time, limit, label: "Spent" });
    for (const { svg, kind, run, i } of this.values) {
      const said = kind === "raw" ? run.steps.map(({ answer }) => answer[0]) : run.smoothed.map(([value]) => value);
      lines(svg, [{ name: "truth", values: walked.places.slice(0, time).map(([value]) => value), kind: "truth" },
        { name: kind, values: said.slice(0, time), kind: kinds[i] }], { time, label: kind });
    }
    for (const { map, kind, run } of this.minis) {
      const points = kind === "raw" ? run.steps.map(({ answer }) => answer) : run.smoothed;
      map.set({ fills: Array(this.world.n_states).fill(token("land")), possible: null, plain: true,
        tracks: [{ kind: "truth", points: walked.places, upto: time }, { kind, points, upto: time }] });
    }
  }

  // The marks of the present moment on the large map.
  tracks(view) {
    const walked = this.walked;
    if (!walked) return [];
    const time = Math.min(view.walk.time, this.lasts);
    const { steps } = walked.runs[view.walk.shown] ?? walked.runs[0];
    const last = Math.min(time, steps.length);
    const step = steps[last - 1];
    if (!this.world.answers_are_places) {
      const here = walked.path.map((state) => [this.places[2 * state], this.places[2 * state + 1]]);
      return [{ kind: "truth", points: here, upto: last }];
    }
    return [
      { kind: "truth", points: walked.places, upto: last },
      ...(step ? [{ kind: "answer", points: [step.answer], lone: true }, { kind: "estimate", points: [step.estimate], lone: true }] : []),
    ];
  }

  posterior(view) {
    const run = this.walked?.runs[view.walk.shown] ?? this.walked?.runs[0];
    const step = run?.steps[Math.min(view.walk.time, run.steps.length) - 1];
    if (!step) return null;
    const values = Array(this.world.n_states).fill(0);
    step.posterior.states.forEach((state, i) => {
      values[state] = step.posterior.probabilities[i];
    });
    return values;
  }

  forget() {
    this.walked = null;
    for (const { map } of this.minis) map.close();
    this.minis = [];
    fill(this.result);
    fill(this.bar);
    fill(this.dock, h("p", { className: "empty" }, "Nothing was released yet. Run the walk to see the tracks, the errors, "
      + "the protection and the ledger here."));
  }
}

function select(values, labels, choose) {
  return h("select", { onchange: (event) => choose(event.target.value) },
    values.map((value, i) => h("option", { value }, labels[i])));
}

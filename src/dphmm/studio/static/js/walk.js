// The walk panel: a simulated person, released, and compared with a second way.

import { h, fill, field, word, short, count } from "./elements.js";

const POLICIES = {
  same: "the same policy",
  complete: "complete",
  categories: "categories",
  one_step: "one step",
  distance: "distance (this radius)",
  pinned: "the pinned policy",
};

const NOISES = { knorm: "K-norm", staircase: "staircase", laplace: "Laplace" };

export class WalkPanel {
  constructor(holder, results, store, run) {
    Object.assign(this, { store, results });
    const { walk } = store.view;
    const input = (name, properties) =>
      h("input", { ...properties, onchange: (event) => this.set(name, event.target) });
    this.inputs = {
      start: h("input", {
        type: "text",
        list: "state-names",
        autocomplete: "off",
        onchange: (event) => {
          const state = this.world.labels.indexOf(event.target.value.trim());
          if (state >= 0) store.walk({ start: state });
          else event.target.value = this.world.labels[store.view.walk.start];
        },
      }),
      length: input("length", { type: "number", min: 1, max: 200 }),
      seed: input("seed", { type: "number", min: 0, max: 4294967295 }),
      limit: input("limit", { type: "text", inputMode: "decimal" }),
    };
    this.repair = select(
      ["min_error", "min_area", "nearest", "none"],
      ["least error", "least area", "nearest", "no repair"],
      (value) => store.walk({ repair: value }),
    );
    this.mechanism = select(Object.keys(NOISES), Object.values(NOISES), (mechanism) =>
      store.walk({ mechanism }),
    );
    this.compare = h("input", {
      type: "checkbox",
      id: "compare",
      onchange: () => store.walk({ compare: this.compare.checked }),
    });
    const other = (changes) => store.walk({ other: { ...store.view.walk.other, ...changes } });
    this.otherPolicy = select(Object.keys(POLICIES), Object.values(POLICIES), (policy) => other({ policy }));
    this.otherPolicy.id = "other-policy";
    this.otherEpsilon = h("input", {
      type: "text",
      inputMode: "decimal",
      id: "other-epsilon",
      onchange: (event) => {
        if (/^\d{1,4}(\.\d{1,6})?$/.test(event.target.value.trim()) && Number(event.target.value) > 0)
          other({ epsilon: event.target.value.trim() });
        else event.target.value = store.view.walk.other.epsilon;
      },
    });
    this.otherMechanism = select(Object.keys(NOISES), Object.values(NOISES), (mechanism) =>
      other({ mechanism }),
    );
    this.otherFields = h(
      "div",
      { className: "subfields" },
      field("Policy of B", this.otherPolicy),
      field("ε of B", this.otherEpsilon),
      field("Noise of B", this.otherMechanism),
      h(
        "button",
        {
          type: "button",
          onclick: () =>
            store.walk({ pinned: store.view.policy, other: { ...store.view.walk.other, policy: "pinned" } }),
        },
        "Pin the current policy as B",
      ),
    );
    this.go = h(
      "button",
      { type: "button", className: "primary wide", id: "run-walk", onclick: () => run() },
      "Run the walk",
    );
    this.again = h(
      "button",
      {
        type: "button",
        onclick: () => {
          store.walk({ seed: (store.view.walk.seed + 1) % 4294967295 });
          run();
        },
      },
      "Another person",
    );
    this.result = h("div", { id: "walk-result" });
    fill(
      holder,
      h("h2", {}, "Watch a release"),
      h(
        "p",
        { className: "simulated" },
        "This person is simulated. The walk is drawn from the model and the noise from a seed, " +
          "so these releases are for looking at, not private, and nobody's data is here.",
      ),
      h(
        "div",
        { className: "fields" },
        field("Starts in", this.inputs.start),
        field("Steps", this.inputs.length),
        field("Seed", this.inputs.seed),
        field("Limit of ε", this.inputs.limit),
      ),
      field(word("repair", "Repair"), this.repair),
      field(word("noise", "Noise"), this.mechanism),
      h("label", { className: "check" }, this.compare, " Compare with a second way, B"),
      this.otherFields,
      h("div", { className: "row" }, this.go, this.again),
      this.result,
    );
    this.length = walk.length;
  }

  set(name, { value }) {
    const { walk } = this.store.view;
    if (name === "limit") {
      const text = value.trim();
      this.store.walk({
        limit: text === "" || (/^\d{1,6}(\.\d{1,6})?$/.test(text) && Number(text) > 0) ? text : walk.limit,
      });
    } else {
      const number = Math.round(Number(value));
      const [low, high] = name === "length" ? [1, 200] : [0, 4294967295];
      this.store.walk({
        [name]: Number.isFinite(number) ? Math.min(high, Math.max(low, number)) : walk[name],
      });
    }
  }

  show(view, world) {
    this.world = world;
    const { walk } = view;
    this.inputs.start.value = world.labels[walk.start] ?? world.labels[0];
    for (const name of ["length", "seed", "limit"]) this.inputs[name].value = walk[name];
    this.repair.value = walk.repair;
    this.mechanism.value = walk.mechanism;
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
    const runs = [{ policy, epsilon, repair: walk.repair, mechanism: walk.mechanism, ...limit }];
    if (walk.compare) {
      const { other } = walk;
      const chosen =
        other.policy === "same"
          ? policy
          : other.policy === "pinned"
            ? (walk.pinned ?? policy)
            : { base: other.policy, radius: policy.radius };
      runs.push({
        policy: chosen,
        epsilon: other.epsilon,
        repair: walk.repair,
        mechanism: other.mechanism,
        ...limit,
      });
    }
    return {
      seed: walk.seed,
      length: walk.length,
      start: Math.min(walk.start, this.world.n_states - 1),
      runs,
    };
  }

  showResult(walked, view) {
    this.walked = walked;
    const names = ["A", "B"];
    const unit = this.world.unit;
    fill(
      this.result,
      walked.runs.map((run, i) =>
        h(
          "div",
          { className: `run run-${names[i].toLowerCase()}` },
          h(
            "h3",
            {},
            walked.runs.length > 1 ? `${names[i]}: ` : "",
            `ε = ${run.epsilon}, spent ${short(run.spent.value)}` +
              (run.limit ? ` of ${short(run.limit.value)}` : ""),
          ),
          h(
            "table",
            {},
            h(
              "tbody",
              {},
              [
                ["answer", "released"],
                ["estimate", "estimate"],
                ["smoothed", "smoothed"],
              ].map(([key, label]) =>
                h(
                  "tr",
                  { "data-error": key },
                  h("th", { scope: "row" }, key === "answer" ? label : word(key, label)),
                  h("td", {}, run.mean_error[key] === null ? "–" : `${short(run.mean_error[key])} ${unit}`),
                ),
              ),
            ),
          ),
          run.refused
            ? h(
                "p",
                { className: "alarm-text" },
                `Stopped after ${count(run.steps.length, "release")}: the ledger's limit allows no more.`,
              )
            : null,
        ),
      ),
      h("p", { className: "note" }, "Errors are root mean squares over the walk."),
    );
    this.results.show(walked, this.world, this.places, view);
  }

  // The marks of the present moment on the large map.
  tracks(view) {
    const walked = this.walked;
    if (!walked) return [];
    const { steps } = walked.runs[view.walk.shown] ?? walked.runs[0];
    const last = Math.min(view.walk.time, steps.length);
    const step = steps[last - 1];
    if (!this.world.answers_are_places) {
      const here = walked.path.map((state) => [this.places[2 * state], this.places[2 * state + 1]]);
      return [{ kind: "truth", points: here, upto: last }];
    }
    return [
      { kind: "truth", points: walked.places, upto: last },
      ...(step
        ? [
            { kind: "answer", points: [step.answer], lone: true },
            { kind: "estimate", points: [step.estimate], lone: true },
          ]
        : []),
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
    fill(this.result);
    this.results.forget();
  }
}

function select(values, labels, choose) {
  return h(
    "select",
    { onchange: (event) => choose(event.target.value) },
    values.map((value, i) => h("option", { value }, labels[i])),
  );
}

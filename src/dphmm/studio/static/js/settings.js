// Budget and noise: every other setting of the file, each with its own control.

import { h, fill, field, word, lasts, showIn, toNumber } from "./elements.js";
import { valueOf, withValues, withoutSchedule } from "./state.js";

// ε on a slider that grows as people think of it: 0.05 to 20.
const EPSILONS = ["0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5", "7", "10", "20"];

const CHOICES = {
  mechanism: { knorm: "K-norm", staircase: "staircase", laplace: "Laplace", isotropic: "isotropic (K-norm)" },
  shape: { hull: "the policy's hull", enlarged: "enlarged hull", l1: "l1 ball" },
  repair: {
    min_error: "least error",
    min_area: "least area",
    nearest: "nearest",
    optimal: "optimal error (slow)",
    optimal_volume: "optimal area (slow)",
    none: "no repair",
  },
  estimate: { mean: "mean of the belief", median: "median of the belief" },
};
const TEXTS = { gamma: "best", delta: "0" };

class Settings {
  constructor(store, world) {
    Object.assign(this, { store, world, shown: [] });
  }

  set(values, label, kind) {
    const { view } = this.store;
    this.store.change({ draft: withValues(view.draft, this.world(), values) }, label, kind);
  }

  select(key, label) {
    const options = Object.entries(CHOICES[key]);
    const control = h(
      "select",
      { id: `set-${key}`, onchange: () => this.set({ [key]: control.value }, `${label}: ${CHOICES[key][control.value]}`) },
      options.map(([value, text]) => h("option", { value }, text)),
    );
    this.shown.push((view, world) => {
      control.value = valueOf(view, world, key) ?? options[0][0];
    });
    return control;
  }

  text(key, label, { placeholder = "", read = (text) => text, write = (value) => value ?? "" } = {}) {
    const control = h("input", {
      type: "text",
      id: `set-${key.replace(".", "-")}`,
      placeholder,
      autocomplete: "off",
      onchange: () => {
        const text = control.value.trim();
        this.set({ [key]: text === "" ? null : read(text) }, `${label} ${text || "none"}`);
      },
    });
    this.shown.push((view, world) => {
      showIn(control, write(valueOf(view, world, key)));
    });
    return control;
  }

  show(view, world, effects) {
    for (const show of this.shown) show(view, world, effects);
  }
}

export class NoisePanel extends Settings {
  constructor(holder, store, world) {
    super(store, world);
    const check = h("input", {
      type: "checkbox",
      id: "set-full_rank",
      onchange: () => this.set({ full_rank: check.checked }, `Full rank ${check.checked ? "on" : "off"}`),
    });
    this.shown.push((view, now) => {
      check.checked = valueOf(view, now, "full_rank") ?? true;
    });
    const gamma = field(word("gamma", "First step of the staircase (γ)"), this.text("gamma", "γ", { placeholder: TEXTS.gamma }));
    this.shown.push((view, now) => {
      gamma.hidden = valueOf(view, now, "mechanism") !== "staircase";
    });
    const mechanism = this.select("mechanism", "Noise");
    // A gamma belongs to a staircase; with other noise the file would be refused.
    mechanism.addEventListener("change", () => {
      if (mechanism.value !== "staircase" && valueOf(store.view, world(), "gamma"))
        this.set({ gamma: null, mechanism: mechanism.value }, `Noise: ${CHOICES.mechanism[mechanism.value]}`);
    }, true);
    fill(
      holder,
      h("h2", {}, "How answers are blurred, and who is repaired"),
      field(word("noise", "Noise"), mechanism),
      gamma,
      field(word("shape", "Shape of the noise"), this.select("shape", "Shape")),
      field(word("repair", "Repair of exposed places"), this.select("repair", "Repair")),
      h("label", { className: "check" }, check, " also until no answer rules places out (", word("rank", "full rank"), ")"),
      field(
        word("delta", "Unlikely places left out (δ)"),
        this.text("delta", "δ", { placeholder: TEXTS.delta, read: (text) => text, write: (value) => (value === "0" ? "" : (value ?? "")) }),
        "0 protects every possible place; more needs the rule Everybody.",
      ),
      field(word("estimate", "Estimate"), this.select("estimate", "Estimate")),
    );
  }
}

// How often it may speak, by one press: in steps, so that every clock knows them.
const OFTEN = [1, 2, 4, 12, 24, 96];

const steps = (text) => (/^\d+$/.test(text) ? Number(text) : text);

export class BudgetPanel extends Settings {
  constructor(holder, store, world) {
    super(store, world);
    this.epsilon = h("input", {
      type: "range",
      id: "epsilon",
      min: "0",
      max: String(EPSILONS.length - 1),
      step: "1",
      "aria-label": "Price ε, as a slider",
      oninput: () => {
        const value = EPSILONS[Number(this.epsilon.value)];
        this.set({ epsilon: value }, `ε ${value}`, "slide epsilon");
      },
    });
    this.amount = h("input", { type: "text", id: "limit-amount", inputMode: "decimal", placeholder: "no limit", autocomplete: "off", onchange: () => this.limit() });
    this.window = h("input", { type: "text", id: "limit-window", list: "windows", "aria-label": "Window of the budget", autocomplete: "off", onchange: () => this.limit() });
    this.speaks = h("p", { className: "tell", id: "speaks" });
    this.often = h("p", { className: "chips", id: "often", role: "group", "aria-label": "How often it speaks" });
    this.day = h("div", { id: "day" });
    this.fits = h("div", {});
    const every = this.text("when.every", "Speak every", { placeholder: "every step", read: steps });
    const clear = h(
      "button",
      { type: "button", className: "text", onclick: () => store.change({ draft: withoutSchedule(store.view.draft, world()) }, "Speak at every step") },
      "Speak at every step",
    );
    const hours = this.text("when.hours", "Hours", {
      placeholder: "08:00, 17:00-19:00",
      read: (text) => text.split(",").map((part) => part.trim()),
      write: (value) => (value ?? []).join(", "),
    });
    const hoursField = field("At these hours only", hours);
    this.shown.push((view, now) => {
      hoursField.hidden = !now.has_dates;
      clear.hidden = !["every", "hours", "error", "apart", "phase"].some((name) => valueOf(view, now, `when.${name}`) !== undefined);
    });
    fill(
      holder,
      h("h2", {}, "What a day may cost, and when it speaks"),
      h(
        "div",
        { className: "field" },
        h("label", { htmlFor: "limit-amount" }, word("limit", "Budget of a person")),
        h("span", { className: "pair" }, this.amount, " per ", this.window),
        h("datalist", { id: "windows" }, ["1 day", "12 hours", "1 hour", "24 steps", "100 steps", "in all"].map((value) => h("option", { value }))),
      ),
      h(
        "div",
        { className: "field" },
        h("label", { htmlFor: "set-epsilon" }, word("ε", "Price ε of an answer")),
        this.text("epsilon", "ε"),
        this.epsilon,
      ),
      field(word("schedule", "Speak every … steps, or a time like 2 h"), every),
      this.often,
      this.day,
      hoursField,
      h(
        "details",
        {},
        h("summary", {}, "More about when to speak"),
        field("Shifted by … steps", this.text("when.phase", "Shifted by", { placeholder: "0", read: steps })),
        field("At least so far apart", this.text("when.apart", "Apart", { placeholder: "1", read: steps })),
        field("Only when an estimate would be off by more than", this.text("when.error", "Speak above an error of", { placeholder: "always" })),
      ),
      clear,
      this.speaks,
      this.fits,
    );
  }

  limit() {
    const [amount, window] = [this.amount.value.trim(), this.window.value.trim()];
    const text = !amount ? null : !window || window === "in all" || amount.includes(",") ? amount : `${amount} per ${window}`;
    this.set({ limit: text }, `Budget ${text ?? "without limit"}`);
  }

  // A price of the setting before must not be taken for this one's, so it waits until it is fresh.
  show(view, world, effects, fresh = true) {
    super.show(view, world, effects);
    const epsilon = valueOf(view, world, "epsilon");
    const away = (text) => Math.abs(Math.log(text / toNumber(epsilon)));
    const nearest = EPSILONS.reduce((best, text, i) => (away(text) < away(EPSILONS[best]) ? i : best), 0);
    this.epsilon.value = String(nearest);
    this.epsilon.setAttribute("aria-valuetext", `ε ${epsilon}`);
    const limit = valueOf(view, world, "limit") ?? "";
    const [, amount, window] = /^([^,]*?) per ([^,]*)$/.exec(limit) ?? [null, limit, limit ? "in all" : ""];
    showIn(this.amount, amount);
    // A window that was typed before its amount is kept.
    const usual = this.window.value || (world.has_dates ? "1 day" : "100 steps");
    showIn(this.window, window || usual);
    const spoken = effects?.speaks;
    this.speaks.textContent = spoken?.words ?? `It speaks at every step (${world.time_step === "1" ? "a step has no length in time" : world.time_step}), ε ${epsilon} each time.`;
    this.showOften(view, world, effects);
    const lasting = effects?.lasting;
    const short = lasting && toNumber(lasting) < toNumber(epsilon);
    fill(
      this.fits,
      lasting && lasting !== epsilon
        ? h(
            "p",
            { className: short ? "warning" : "note" },
            short
              ? "The budget does not last: some answers will be refused. "
              : "The budget would allow a higher price. ",
            h(
              "button",
              { type: "button", className: "small", id: "fit-price", disabled: !fresh, onclick: () => this.set({ epsilon: lasting }, `ε ${lasting}, so that the budget lasts`) },
              `Spend it evenly: ε ${lasting}`,
            ),
          )
        : null,
    );
  }

  // A budget within a window is spent evenly, so a rarer answer is a clearer one.
  speakEvery(every) {
    const { view } = this.store;
    const world = this.world();
    const label = `Speak every ${lasts(every, world.time_step)}`;
    const bare = withoutSchedule(view.draft, world);
    const draft = every === 1 ? bare : withValues(bare, world, { "when.every": every, "when.phase": Math.floor(every / 2) });
    this.store.change({ draft }, label);
  }

  showOften(view, world, effects) {
    const now = effects?.every;
    fill(
      this.often,
      OFTEN.map((every) =>
        h(
          "button",
          { type: "button", className: "chip", "aria-pressed": String(every === now), onclick: () => this.speakEvery(every) },
          every === 1 ? "every step" : lasts(every, world.time_step),
        ),
      ),
    );
    fill(this.day, effects?.day ? dayStrip(effects.day) : null);
  }
}

// A day as a strip, with a tick at every moment at which it may speak.
function dayStrip(day) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 300 40");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `It may speak ${day.length} times on a day.`);
  const x = (part) => 6 + 288 * part;
  const add = (tag, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    svg.append(element);
  };
  add("rect", { x: 6, y: 4, width: 288, height: 16, rx: 4, class: "day-ground" });
  add("path", { d: day.map((part) => `M${x(part).toFixed(1)},5v14`).join(""), class: day.length > 100 ? "day-tick fine" : "day-tick" });
  for (const hour of [0, 6, 12, 18, 24]) add("text", { x: x(hour / 24), y: 35, class: "axis-text", "text-anchor": hour === 0 ? "start" : hour === 24 ? "end" : "middle" }, `${hour} h`);
  return h("figure", { className: "day" }, svg, h("figcaption", { className: "note" }, `${day.length === 1 ? "One moment" : `${day.length} moments`} of a day (UTC)`));
}

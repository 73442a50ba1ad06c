// The policy panel: choose a base, set its distance and ε, see what was drawn by hand.

import { h, fill, field, word, short, count } from "./elements.js";
import { categoryColour } from "./colours.js";
import { EMPTY_POLICY } from "./view.js";

const BASES = [
  ["complete", "Complete", "complete", "everybody alike"],
  ["categories", "Categories", "categories", "alike within each"],
  ["distance", "Distance", "distance", "alike if close"],
  ["one_step", "One step", "one-step", "alike as next steps"],
  ["none", "By hand", "edge", "only what you draw"],
];

// ε on a logarithmic slider: 0.05 to 20.
const EPSILONS = ["0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5", "7", "10", "20"];

export class PolicyPanel {
  constructor(holder, store) {
    this.store = store;
    this.guide = h("div", {});
    this.bases = h(
      "div",
      { className: "bases", role: "radiogroup", "aria-label": "Policy" },
      BASES.map(([base, label, , about]) =>
        h(
          "button",
          {
            type: "button",
            role: "radio",
            "data-base": base,
            onclick: () => store.policy({ ...EMPTY_POLICY, radius: store.view.policy.radius, base }, "base"),
          },
          h("span", { className: "base-name" }, label),
          h("span", { className: "base-about" }, about),
        ),
      ),
    );
    this.radius = h("input", {
      type: "range",
      id: "radius",
      min: "0",
      oninput: () => store.policy({ radius: this.radius.value }, "slide radius"),
    });
    this.radiusLabel = h("output", { htmlFor: "radius" });
    this.radiusField = h(
      "div",
      { className: "field" },
      h("label", { htmlFor: "radius" }, word("distance", "Distance"), " ", this.radiusLabel),
      this.radius,
    );
    this.epsilon = h("input", {
      type: "range",
      id: "epsilon",
      min: "0",
      max: String(EPSILONS.length - 1),
      step: "1",
      "aria-valuetext": "",
      oninput: () => store.change({ epsilon: EPSILONS[Number(this.epsilon.value)] }, "slide epsilon"),
    });
    this.epsilonText = h("input", {
      type: "text",
      inputMode: "decimal",
      className: "inline-number",
      "aria-label": "ε",
      onchange: () => {
        const text = this.epsilonText.value.trim();
        if (/^\d{1,4}(\.\d{1,6})?$/.test(text) && Number(text) > 0)
          store.change({ epsilon: text }, "epsilon");
        else this.epsilonText.value = store.view.epsilon;
      },
    });
    this.brush = h("div", { className: "brush" });
    this.drawn = h("div", { className: "drawn" });
    this.moves = h("input", {
      type: "checkbox",
      id: "moves",
      onchange: () => store.change({ moves: this.moves.checked }),
    });
    this.movesLabel = h("label", { className: "check" }, this.moves, " Show the model's moves");
    fill(
      holder,
      this.guide,
      h("h2", {}, "Who must look like whom? The ", word("policy"), " says."),
      this.bases,
      this.radiusField,
      h(
        "div",
        { className: "field" },
        h("label", { htmlFor: "epsilon" }, word("ε", "Price ε of a release"), " ", this.epsilonText),
        this.epsilon,
      ),
      this.brush,
      this.drawn,
      this.movesLabel,
    );
  }

  show(view, world, labels) {
    const { policy } = view;
    for (const button of this.bases.children) {
      button.setAttribute("aria-checked", String(button.dataset.base === policy.base));
    }
    this.radiusField.hidden = policy.base !== "distance";
    this.radius.max = world.radius.most;
    this.radius.step = world.radius.step;
    this.radius.value = policy.radius;
    this.radiusLabel.textContent = `${short(Number(policy.radius))} ${world.unit}`;
    const nearest = EPSILONS.reduce(
      (best, text, i) =>
        Math.abs(Math.log(text / view.epsilon)) < Math.abs(Math.log(EPSILONS[best] / view.epsilon))
          ? i
          : best,
      0,
    );
    this.epsilon.value = String(nearest);
    this.epsilon.setAttribute("aria-valuetext", `ε ${view.epsilon}`);
    if (document.activeElement !== this.epsilonText) this.epsilonText.value = view.epsilon;
    this.moves.checked = view.moves;
    this.movesLabel.hidden = !world.moves || world.n_states > 60;
    this.showBrush(view, labels);
    this.showDrawn(policy, world);
  }

  showBrush(view, labels) {
    if (view.tool !== "paint") return fill(this.brush);
    return fill(
      this.brush,
      h("p", { className: "note" }, "Paint states with:"),
      h(
        "div",
        { className: "chips", role: "radiogroup", "aria-label": "Category of the brush" },
        [...labels.names, "new category"].map((name, number) => {
          const swatch = h("span", { className: "swatch" });
          swatch.style.background = categoryColour(number);
          return h(
            "button",
            {
              type: "button",
              className: "chip",
              role: "radio",
              "aria-checked": String(view.brush === number),
              onclick: () => this.store.change({ brush: number }),
            },
            swatch,
            name,
          );
        }),
      ),
    );
  }

  showDrawn(policy, world) {
    const parts = [];
    if (policy.links.length) parts.push(count(policy.links.length, "link"));
    if (policy.unlinks.length) parts.push(`${policy.unlinks.length} unlinked`);
    if (policy.cliques.length) parts.push(count(policy.cliques.length, "clique"));
    if (policy.categories) parts.push("categories painted");
    if (!parts.length) {
      return fill(
        this.drawn,
        policy.base === "none"
          ? h(
              "p",
              { className: "empty" },
              "Nothing drawn yet. Choose Link above the map and pick two states, or draw a Lasso around several.",
            )
          : null,
      );
    }
    const name = ([a, b]) => `${world.labels[a]}–${world.labels[b]}`;
    const few =
      policy.links.length <= 6
        ? policy.links.map((pair) =>
            h(
              "button",
              {
                type: "button",
                className: "chip",
                title: "Take this link away",
                onclick: () =>
                  this.store.policy(
                    {
                      links: policy.links.filter((other) => other !== pair),
                    },
                    "unlink",
                  ),
              },
              name(pair),
              " ×",
            ),
          )
        : [];
    return fill(
      this.drawn,
      h(
        "p",
        {},
        h("strong", {}, "Drawn by hand: "),
        parts.join(", "),
        ". ",
        h(
          "button",
          {
            type: "button",
            className: "text",
            onclick: () =>
              this.store.policy(
                {
                  links: [],
                  unlinks: [],
                  cliques: [],
                  categories: undefined,
                },
                "clear",
              ),
          },
          "Clear",
        ),
      ),
      few.length ? h("p", { className: "chips" }, few) : null,
    );
  }
}

// The first thing a newcomer sees: three steps through the paper's example.
export function guide(holder, view, exposed, act) {
  if (view.world.name !== "paper") return fill(holder);
  const stepped = view.moment.start === 0 && view.moment.steps === 2;
  const repaired = stepped && !exposed.length;
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
        "Somebody moves between six states. Each release tells a noisy temperature and noise level; " +
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
        step(
          false,
          repaired,
          "Now every possible state is hidden again. Watch a simulated person being released.",
          "Take a walk",
          act.walk,
        ),
      ),
    ),
  );
}

// The right column: what the policy does, who is exposed, and what each repair would cost.

import { h, fill, word, number, fraction, short, count, atMost } from "./elements.js";
import { drawHullPanel } from "./hull.js";

const METHODS = { nearest: "nearest", min_area: "least area", min_error: "least error" };
const MOST_ROWS = 200;

export class Effects {
  // act: link(a, b), highlight(edges or null), repair(method), state(state)
  constructor(holder, act) {
    this.act = act;
    this.numbers = h("div", { className: "stats" });
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("id", "hull-plot");
    this.svg.setAttribute("role", "img");
    this.versus = h("div", { className: "versus" });
    this.exposure = h("div", { id: "exposure", "aria-live": "polite" });
    this.repairs = h("div", { id: "repairs" });
    this.list = h("div", { className: "state-list" });
    this.details = h(
      "details",
      { className: "card", ontoggle: () => this.listStates() },
      h("summary", {}, "All states as a table"),
      this.list,
    );
    fill(
      holder,
      h("div", { className: "card" }, h("h2", {}, "Effect"), this.numbers),
      h(
        "div",
        { className: "card", id: "exposure-card", tabIndex: -1 },
        h("h2", {}, "Who is ", word("exposed"), "?"),
        this.exposure,
        this.repairs,
      ),
      h(
        "div",
        { className: "card" },
        h("h2", {}, "The ", word("hull"), " and the ", word("l1 ball")),
        this.svg,
        this.versus,
      ),
      this.details,
    );
  }

  show(world, effects, epsilon, categories) {
    Object.assign(this, { world, effects, categories });
    const { hull } = effects;
    const stat = (name, value, note, id) =>
      h(
        "div",
        { className: "stat" },
        h("div", { className: "stat-name" }, word(name === "edges" ? "edge" : name, name)),
        h("div", { className: "stat-value", id }, value),
        h("div", { className: "stat-note" }, note),
      );
    const dimension = hull.dimension === 2 ? "area" : hull.dimension === 1 ? "length" : "volume";
    fill(
      this.numbers,
      stat(
        "mean squared error",
        number(hull.error),
        fraction(hull.error) || `at ε = ${epsilon}`,
        "stat-error",
      ),
      stat(
        "area",
        number(hull.area),
        world.unit ? `${world.unit}${hull.dimension > 1 ? "²" : ""}` : fraction(hull.area) || "of the hull",
        "stat-area",
      ),
      stat("rank", `${hull.rank}`, `of ${hull.dimension}`, "stat-rank"),
      stat(
        "edges",
        `${effects.edges.exact ? "" : "≤ "}${short(effects.edges.count)}`,
        effects.edges.drawn ? "on the map" : "not drawn",
        "stat-edges",
      ),
      stat("possible", short(effects.n_possible), `of ${short(world.n_states)}`, "stat-possible"),
      stat(
        "worst pair",
        effects.worst.value === null
          ? "∞"
          : h("span", {}, "e", h("sup", {}, atMost(effects.worst.value))),
        effects.worst.value === null ? "told apart" : "in odds",
        "stat-worst",
      ),
    );
    this.drawHull(null);
    this.svg.setAttribute(
      "aria-label",
      `Sensitivity hull with ${hull.corners} corners and area ${number(hull.area)}, ` +
        `inside an l1 ball of area ${number(hull.ball_area)}.`,
    );
    fill(
      this.versus,
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", {}, dimension), h("th", {}, "MSE"))),
        h(
          "tbody",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "row" }, h("span", { className: "key key-hull" }), "hull K"),
            h("td", {}, number(hull.area)),
            h("td", {}, number(hull.error)),
          ),
          h(
            "tr",
            {},
            h("th", { scope: "row" }, h("span", { className: "key key-ball" }), "l1 ball"),
            h("td", {}, number(hull.ball_area)),
            h("td", {}, number(hull.ball_error)),
          ),
        ),
      ),
      (this.released = h("p", { className: "note", id: "released-error" })),
    );
    this.showExposure();
    this.listStates();
  }

  drawHull(preview) {
    drawHullPanel(this.svg, this.effects.hull, preview, this.world.axes);
  }

  name(state) {
    return this.world.labels[state];
  }

  showExposure() {
    const { exposed, n_possible: possible } = this.effects;
    const card = document.getElementById("exposure-card");
    card.classList.toggle("alarm", exposed.length > 0);
    if (possible === 1) {
      fill(
        this.exposure,
        h(
          "p",
          {},
          h("strong", {}, `${this.name(exposed[0])} is the only possible state`),
          "; whoever knows the model knows it already, and nothing can hide it.",
        ),
      );
    } else if (!exposed.length) {
      fill(
        this.exposure,
        h("p", { className: "good" }, "Nobody: every possible state is hidden by another one."),
      );
    } else {
      const shown = exposed.slice(0, 12);
      fill(
        this.exposure,
        h(
          "p",
          {},
          h(
            "strong",
            {},
            exposed.length === 1
              ? `${this.name(exposed[0])} is exposed`
              : `${count(exposed.length, "state")} are exposed`,
          ),
          ": no other possible state hides ",
          exposed.length === 1 ? "it." : "them.",
        ),
        exposed.length > 1
          ? h(
              "p",
              { className: "chips" },
              shown.map((state) =>
                h(
                  "button",
                  {
                    type: "button",
                    className: "chip",
                    onclick: () => this.act.state(state),
                  },
                  this.name(state),
                ),
              ),
              exposed.length > shown.length ? ` and ${short(exposed.length - shown.length)} more` : null,
            )
          : null,
      );
    }
    fill(
      this.repairs,
      exposed.length && possible > 1
        ? h("p", { className: "note" }, "Working out what a repair would cost…")
        : null,
    );
  }

  showRepairs(answer) {
    if (answer.released_error) {
      fill(
        this.released,
        "An answer is off by ",
        h("output", { "data-value": answer.released_error }, short(answer.released_error)),
        ` ${this.world.unit} (root mean square) as it is released, on the lattice.`,
      );
    }
    if (answer.error) return fill(this.repairs, h("p", { className: "note" }, answer.error));
    const { exposed } = this.effects;
    if (!answer.methods.length || this.effects.n_possible < 2) return fill(this.repairs);
    const adds = answer.methods.some(({ edges }) => edges.length);
    if (!adds) return fill(this.repairs);
    const hint = (outline, edges) => ({
      onmouseenter: () => this.preview(outline, edges),
      onmouseleave: () => this.preview(null, null),
      onfocusin: () => this.preview(outline, edges),
      onfocusout: () => this.preview(null, null),
    });
    const methods = h(
      "table",
      { className: "repair-table", id: "methods" },
      h("caption", {}, "What each ", word("repair"), " would do"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["method", "edges", "area", "MSE", ""].map((text) => h("th", { scope: "col" }, text)),
        ),
      ),
      h(
        "tbody",
        {},
        answer.methods.map(({ method, edges, area, error, outline }) =>
          h(
            "tr",
            {
              "data-method": method,
              ...hint(outline, edges),
            },
            h("th", { scope: "row" }, word(method, METHODS[method])),
            h(
              "td",
              {},
              edges.length === 1
                ? `${this.name(edges[0][0])}–${this.name(edges[0][1])}`
                : short(edges.length),
            ),
            h("td", {}, number(area)),
            h("td", {}, number(error)),
            h(
              "td",
              {},
              h(
                "button",
                {
                  type: "button",
                  className: "small",
                  onclick: () => this.done(() => this.act.repair(edges)),
                },
                "Repair",
              ),
            ),
          ),
        ),
      ),
    );
    const others = answer.candidates.length
      ? h(
          "table",
          { className: "repair-table", id: "candidates" },
          h(
            "caption",
            {},
            `Partners for ${this.name(answer.state)}`,
            answer.n_candidates > answer.candidates.length
              ? ` (the nearest of ${short(answer.n_candidates)})`
              : "",
          ),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["partner", "area", "MSE", "picked by", ""].map((text) =>
                h("th", { scope: "col", className: text === "picked by" ? "picks" : "" }, text),
              ),
            ),
          ),
          h(
            "tbody",
            {},
            answer.candidates.map(({ state, area, error, outline, picked_by: picked }) =>
              h(
                "tr",
                {
                  "data-state": this.name(state),
                  ...hint(outline, [[answer.state, state]]),
                },
                h("th", { scope: "row" }, this.name(state)),
                h("td", {}, number(area)),
                h("td", {}, number(error)),
                h(
                  "td",
                  { className: "picks" },
                  picked.flatMap((method) => [h("span", { className: "pick" }, METHODS[method]), " "]),
                ),
                h(
                  "td",
                  {},
                  h(
                    "button",
                    {
                      type: "button",
                      className: "small",
                      onclick: () => this.done(() => this.act.link(answer.state, state)),
                    },
                    "Link",
                  ),
                ),
              ),
            ),
          ),
        )
      : null;
    fill(
      this.repairs,
      exposed.length
        ? null
        : h(
            "p",
            { className: "note" },
            "The hull is flat, so some states are told apart with certainty; a repair would widen it.",
          ),
      methods,
      others ? h("div", { className: "scroll" }, others) : null,
    );
    return undefined;
  }

  // The button that was pressed goes away; the focus stays where the answer appears.
  done(action) {
    document.getElementById("exposure-card").focus({ preventScroll: true });
    action();
  }

  preview(outline, edges) {
    this.drawHull(outline);
    this.act.highlight(edges, outline);
  }

  listStates() {
    if (!this.details.open || !this.effects) return;
    const { degree, exposed } = this.effects;
    const alone = new Set(exposed);
    const order = degree
      .map((_, state) => state)
      .sort((a, b) => alone.has(b) - alone.has(a) || (degree[b] > 0) - (degree[a] > 0) || a - b);
    fill(
      this.list,
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["state", "category", "hidden by", ""].map((text) => h("th", { scope: "col" }, text)),
          ),
        ),
        h(
          "tbody",
          {},
          order
            .slice(0, MOST_ROWS)
            .map((state) =>
              h(
                "tr",
                { className: degree[state] ? "" : "impossible" },
                h("th", { scope: "row" }, this.name(state)),
                h("td", {}, this.categories.names[this.categories.categories[state]]),
                h("td", {}, degree[state] ? short(degree[state] - 1) : "–"),
                h("td", {}, !degree[state] ? "impossible" : alone.has(state) ? "exposed" : ""),
              ),
            ),
        ),
      ),
      order.length > MOST_ROWS
        ? h("p", { className: "note" }, `The first ${MOST_ROWS} of ${short(order.length)}.`)
        : null,
    );
  }
}

// The right column: what the settings come to in words, before repair beside as released, and
// what each repair of an exposed place would cost.

import { h, fill, word, number, short, count, atMost, length } from "./elements.js";
import { drawHullPanel } from "./hull.js";
import { valueOf } from "./state.js";

const METHODS = { nearest: "nearest", min_area: "least area", min_error: "least error" };
const MOST_ROWS = 200;
const newSvg = () => document.createElementNS("http://www.w3.org/2000/svg", "svg");

export class Effects {
  // act: link(a, b), highlight(edges, outline), repair(method), state(state)
  constructor(holder, curve, act) {
    this.act = act;
    this.holder = holder;
    this.words = h("div", { className: "card", id: "headline-card" });
    this.sides = h("div", { className: "card", id: "sides" });
    this.exposure = h("div", { id: "exposure" });
    this.repairs = h("div", { id: "repairs" });
    this.svg = newSvg();
    this.svg.setAttribute("id", "hull-plot");
    this.svg.setAttribute("role", "img");
    this.facts = h("div", { id: "facts" });
    this.list = h("div", { className: "state-list" });
    this.table = h(
      "details",
      { className: "card", ontoggle: () => this.listStates() },
      h("summary", {}, "All places as a table"),
      this.list,
    );
    fill(
      holder,
      this.words,
      h(
        "div",
        { className: "card", id: "exposure-card", tabIndex: -1 },
        h("h2", {}, "Who is ", word("exposed"), "?"),
        this.exposure,
        this.repairs,
      ),
      this.sides,
      curve,
      h("details", { className: "card", id: "details", ontoggle: () => this.effects && this.drawHull(null) }, h("summary", {}, "Details"), this.svg, this.facts),
      this.table,
    );
  }

  // answer: what the server said, for which view, and what was said before the last edit.
  show(view, world, answer, categories) {
    Object.assign(this, { view, world, answer, effects: answer.effects, categories });
    this.showWords();
    this.showSides();
    this.showExposure();
    this.showDetails();
    this.listStates();
    this.showRepairs(answer.repairs);
  }

  name(state) {
    return this.world.labels[state];
  }

  off(value) {
    return value === null || value === undefined ? "…" : length(value, this.world.unit);
  }

  showWords() {
    const { released, expected, earlier, problem } = this.answer;
    const said = released?.headline;
    fill(
      this.words,
      h("h2", {}, `Step ${this.effects.time}`, this.effects.lasts ? " and all that follow" : ""),
      h(
        "p",
        { className: "headline", id: "headline" },
        said ? `${said}.` : (problem ?? "Repairing exposed places; this may take a while…"),
      ),
      said || problem
        ? null
        : h("button", { type: "button", id: "stop-repair", className: "small", onclick: () => this.act.stop() }, "Stop, and take the last edit back"),
      released && earlier ? change(earlier, released, this.world.unit) : null,
      expected?.mean_error.estimate
        ? h(
            "p",
            { id: "expected" },
            `${expected.silent ? "At a step, also one at which nothing is said, an" : "An"} estimate from all answers so far is off by about ${this.off(expected.mean_error.estimate)}, ` +
              `in hindsight by ${this.off(expected.mean_error.smoothed)} (${expected.people} simulated people).`,
          )
        : null,
      (released?.warnings ?? []).map((text) => h("p", { className: "warning" }, text)),
      this.effects.doubts.map((text) => h("p", { className: "note" }, text)),
    );
  }

  showSides() {
    const { before } = this.effects;
    const { released } = this.answer;
    const row = (label, id, read, bad = () => false) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, label),
        [before, released].map((side, i) =>
          h(
            "td",
            { id: `${i ? "released" : "before"}-${id}`, className: side && bad(side) ? "alarm-text" : "" },
            side ? read(side) : "…",
          ),
        ),
      );
    fill(
      this.sides,
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h("tr", {}, h("td", {}), h("th", { scope: "col" }, "before ", word("repair")), h("th", { scope: "col" }, "as released")),
        ),
        h(
          "tbody",
          {},
          row(word("exposed"), "exposed", (side) => short(side.exposed.length), (side) => side.exposed.length > 0),
          row(word("degree of protection", "hides among"), "least", (side) => short(side.least)),
          row(word("error", "off by"), "error", (side) => this.off(side.mean_error)),
          row(
            word("edge", "links"),
            "links",
            (side) =>
              `${this.effects.edges.exact ? "" : "≤ "}${short(this.effects.edges.count + (side === released ? released.added.length : 0))}`,
          ),
        ),
      ),
      h("p", { className: "note", id: "possible-note" }, `${count(this.effects.n_possible, "place")} of ${short(this.world.n_states)} ${this.effects.n_possible === 1 ? "is" : "are"} ${this.effects.called}.`),
    );
  }

  showExposure() {
    const { before, n_possible: possible } = this.effects;
    const { exposed } = before;
    const left = this.answer.released?.exposed;
    document.getElementById("exposure-card").classList.toggle("alarm", Boolean(left?.length) && possible > 1);
    const few = exposed.slice(0, 12);
    const repaired = left && !left.length && exposed.length;
    fill(
      this.exposure,
      possible === 1
        ? h("p", {}, h("strong", {}, `${this.name(exposed[0])} is the only place that is ${this.effects.called}`), ": its answer is public, and nothing can hide it.")
        : !exposed.length
          ? h("p", { className: "good" }, `Nobody: every place that is ${this.effects.called} is hidden by another one.`)
          : h(
              "p",
              {},
              h("strong", {}, exposed.length === 1 ? `${this.name(exposed[0])} is exposed` : `${count(exposed.length, "place")} are exposed`),
              repaired
                ? ` by the policy alone; repair adds ${count(this.answer.released.added.length, "link")} and hides ${exposed.length === 1 ? "it" : "them all"}.`
                : `: no other possible place hides ${exposed.length === 1 ? "it" : "them"}.`,
            ),
      exposed.length > 1 && possible > 1
        ? h(
            "p",
            { className: "chips" },
            few.map((state) =>
              h("button", { type: "button", className: "chip", onclick: () => this.act.state(state) }, this.name(state)),
            ),
            exposed.length > few.length ? ` and ${short(exposed.length - few.length)} more` : null,
          )
        : null,
    );
  }

  showDetails() {
    const { before, guarantee } = this.effects;
    const side = this.answer.released ?? before;
    this.drawHull(null);
    const { hull } = side;
    this.svg.setAttribute("aria-label", `Sensitivity hull with ${hull.corners} corners and area ${number(side.area)}.`);
    const step = this.answer.released?.step;
    const unit = this.world.unit;
    const fact = (name, id, text) => [h("dt", {}, name), h("dd", { id }, text)];
    fill(
      this.facts,
      h(
        "dl",
        { className: "facts" },
        fact(word("root mean square", "root mean squared error"), "stat-error", `${short(side.error)} ${unit}`),
        fact(word("mean squared error"), "stat-squared", number(side.squared_error)),
        step ? fact(word("least error", "least possible"), "stat-bound", `${short(step.least_error)} ${unit}`) : [],
        step ? fact(word("silence", "a guess without an answer"), "stat-silent", `${short(step.silent_error)} ${unit}`) : [],
        fact(word("area"), "stat-area", `${number(side.area)}${unit ? ` ${unit}${hull.dimension > 1 ? "²" : ""}` : ""}`),
        fact(word("rank"), "stat-rank", `${side.rank} of ${hull.dimension}`),
        step
          ? fact(
              word("worst pair"),
              "stat-worst",
              step.constrained_epsilon === null ? "told apart for certain" : ["e", h("sup", {}, atMost(step.constrained_epsilon)), " in odds"],
            )
          : [],
      ),
      h("p", { className: "note" }, guarantee),
    );
  }

  drawHull(preview) {
    const side = this.answer.released ?? this.effects.before;
    drawHullPanel(this.svg, side.hull, preview, this.world.axes);
  }

  showRepairs(answer) {
    const waits = this.effects.before.exposed.length && this.effects.n_possible > 1;
    if (!answer) return fill(this.repairs, waits ? h("p", { className: "note" }, "Working out what a repair would cost…") : null);
    if (answer.error) return fill(this.repairs, h("p", { className: "note" }, answer.error));
    if (!answer.methods.some(({ edges }) => edges.length)) return fill(this.repairs);
    const hint = (outline, edges) => ({
      onmouseenter: () => this.preview(outline, edges),
      onmouseleave: () => this.preview(null, null),
      onfocusin: () => this.preview(outline, edges),
      onfocusout: () => this.preview(null, null),
    });
    const chosen = valueOf(this.view, this.world, "repair");
    // The last column holds buttons, whose own texts say what they do.
    const head = (...names) => h("thead", {}, h("tr", {}, names.map((text) => h("th", { scope: "col" }, text)), h("td", {})));
    const methods = h(
      "table",
      { className: "repair-table", id: "methods" },
      h("caption", {}, "What each ", word("repair"), " does"),
      head("method", "links", "off by"),
      h(
        "tbody",
        {},
        answer.methods.map(({ method, edges, mean_error: error, outline }) =>
          h(
            "tr",
            { "data-method": method, ...hint(outline, edges) },
            h("th", { scope: "row" }, word(method, METHODS[method])),
            h("td", {}, edges.length === 1 ? `${this.name(edges[0][0])}–${this.name(edges[0][1])}` : short(edges.length)),
            h("td", {}, this.off(error)),
            h(
              "td",
              {},
              chosen === method
                ? "in use"
                : h("button", { type: "button", className: "small", onclick: () => this.done(() => this.act.repair(method)) }, "Use"),
            ),
          ),
        ),
      ),
    );
    const partners = answer.candidates.length
      ? h(
          "table",
          { className: "repair-table", id: "candidates" },
          h("caption", {}, `Partners for ${this.name(answer.state)}`, answer.n_candidates > answer.candidates.length ? ` (the nearest of ${short(answer.n_candidates)})` : ""),
          head("partner", "area", "off by"),
          h(
            "tbody",
            {},
            answer.candidates.map(({ state, area, mean_error: error, squared_error: squared, outline, picked_by: picked }) =>
              h(
                "tr",
                { "data-state": this.name(state), "data-squared": squared.exact, ...hint(outline, [[answer.state, state]]) },
                h("th", { scope: "row" }, this.name(state), picked.length ? h("span", { className: "picks" }, picked.map((method) => METHODS[method]).join(", ")) : null),
                h("td", {}, number(area)),
                h("td", {}, this.off(error)),
                h("td", {}, h("button", { type: "button", className: "small", onclick: () => this.done(() => this.act.link(answer.state, state)) }, "Link")),
              ),
            ),
          ),
        )
      : null;
    return fill(
      this.repairs,
      this.effects.before.exposed.length ? null : h("p", { className: "note" }, "The hull is flat, so some places are told apart for certain; a repair widens it."),
      methods,
      partners ? h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": `Partners for ${this.name(answer.state)}` }, partners) : null,
    );
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
    if (!this.table.open || !this.effects) return;
    const { degree, exposed } = this.answer.released ?? this.effects.before;
    const alone = new Set(exposed);
    const order = degree
      .map((_, state) => state)
      .toSorted((a, b) => alone.has(b) - alone.has(a) || (degree[b] > 0) - (degree[a] > 0) || a - b);
    fill(
      this.list,
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ["place", "category", "hidden by", "note"].map((text) => h("th", { scope: "col" }, text)))),
        h(
          "tbody",
          {},
          order.slice(0, MOST_ROWS).map((state) =>
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
      order.length > MOST_ROWS ? h("p", { className: "note" }, `The first ${MOST_ROWS} of ${short(order.length)}.`) : null,
    );
  }
}

// What the last edit did to the error: an arrow, a share, and both numbers.
function change(earlier, now, unit) {
  if (!earlier.mean_error || !now.mean_error || earlier.mean_error === now.mean_error) return null;
  const share = now.mean_error / earlier.mean_error - 1;
  const grew = share > 0;
  const percent = Math.abs(share) >= 0.005 ? `${grew ? "+" : "−"}${Math.round(Math.abs(share) * 100)}%` : "hardly changed";
  const [from, to] = [length(earlier.mean_error, unit), length(now.mean_error, unit)];
  return h(
    "p",
    { className: `change ${grew ? "worse" : "better"}`, id: "change" },
    `${grew ? "▲" : "▼"} ${percent} error since the last edit (${from === to ? `still about ${to}` : `${from} → ${to}`})`,
  );
}
